"""Engines: how one training step is run. The step itself is one pure function of tensors."""

from paretocosmos.engine._choose import ENGINES, Engine, check_engine, choose, feed_of
from paretocosmos.engine.adam import Adam
from paretocosmos.engine.checks import FrozenError
from paretocosmos.engine.feed import Feed, Resident
from paretocosmos.engine.step import Result, Step, make_step
from paretocosmos.engine.streamed import Streamed
from paretocosmos.engine.work import Work

__all__ = [
    "ENGINES",
    "Adam",
    "Engine",
    "Feed",
    "FrozenError",
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
