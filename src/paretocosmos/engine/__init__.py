"""Engines: how one training step is run. The step itself is one pure function of tensors."""

from paretocosmos.engine._choose import ENGINES, Engine, check_engine, choose
from paretocosmos.engine.adam import Adam
from paretocosmos.engine.step import Result, Step, make_step
from paretocosmos.engine.work import Work

__all__ = [
    "ENGINES",
    "Adam",
    "Engine",
    "Result",
    "Step",
    "Work",
    "check_engine",
    "choose",
    "make_step",
]
