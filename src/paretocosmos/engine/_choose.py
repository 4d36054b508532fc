"""Which engine runs a step."""

from torch import nn

from paretocosmos.engine.step import Step
from paretocosmos.engine.traced import Traced
from paretocosmos.errors import unknown

__all__ = ["ENGINES", "choose", "describe"]

ENGINES = ("auto", "eager", "traced")


def choose(engine: str, step: Step, model: nn.Module, *, traceable: bool) -> Step:
    """The step as the engine of that name runs it.

    Args:
        engine: ``"eager"``, ``"traced"``, or ``"auto"``: traced where everything a step calls is
            this package's own, eager otherwise: other code may decide things in Python that a
            trace would freeze.
        step: the pure step.
        model: the network it runs.
        traceable: whether everything a step calls is known to decide nothing in Python.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine == "traced" or (engine == "auto" and traceable):
        return Traced(step, model)
    return step


def describe(step: Step) -> str:
    """Which engine a step runs on, for the run's record."""
    if not isinstance(step, Traced):
        return "eager"
    return "traced" if step.failure is None else f"eager: {step.failure}"
