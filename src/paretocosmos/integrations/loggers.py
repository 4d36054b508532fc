"""Loggers by name, for the command line."""

from importlib import import_module
from typing import Any

from paretocosmos.errors import unknown
from paretocosmos.training.callbacks import Callback

__all__ = ["LOGGERS", "logger_of"]

LOGGERS = {"tensorboard": "TensorBoard", "wandb": "WandB", "mlflow": "MLflow"}
"""Names, each of a module here, and the class in it."""


def logger_of(text: str) -> Callback:
    """A logger from its name, or from NAME=WHERE.

    Args:
        text: ``tensorboard``, ``wandb`` or ``mlflow``; where is a folder, a project or a store.
    """
    name, _, where = text.partition("=")
    if name not in LOGGERS:
        raise unknown("logger", name, LOGGERS)
    made: Any = getattr(import_module(f"paretocosmos.integrations.{name}"), LOGGERS[name])
    logger: Callback = made(where) if where else made()
    return logger
