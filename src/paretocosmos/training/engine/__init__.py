"""Engines: how one training step is run. The step itself is one pure function of tensors."""

from paretocosmos.training.engine._choose import ENGINES, Engine, check_engine, choose, feed_of
from paretocosmos.training.engine.checks import FrozenError
from paretocosmos.training.engine.feed import Feed, Resident
from paretocosmos.training.engine.optimizer import Optimizer, Recipe
from paretocosmos.training.engine.step import Result, Step, make_step
from paretocosmos.training.engine.streamed import Streamed
from paretocosmos.training.engine.work import Work

__all__ = [
    "ENGINES",
    "Engine",
    "Feed",
    "FrozenError",
    "Optimizer",
    "Recipe",
    "Resident",
    "Result",
    "Step",
    "Streamed",
    "Work",
    "check_engine",
    "choose",
    "feed_of",
    "make_step",
]
