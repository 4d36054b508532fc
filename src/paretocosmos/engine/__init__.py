"""Engines: how one training step is run. The step itself is one pure function of tensors."""

from paretocosmos.engine._choose import ENGINES, choose, describe
from paretocosmos.engine.step import Result, Step, make_step

__all__ = ["ENGINES", "Result", "Step", "choose", "describe", "make_step"]
