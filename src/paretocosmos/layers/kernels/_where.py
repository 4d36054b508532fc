"""Where the kernels can be used at all."""

import importlib.util
import os
import shutil
import warnings
from functools import cache

import torch
from torch import Tensor

from paretocosmos.errors import EngineWarning

__all__ = ["runs_on", "taken"]


def taken(first: Tensor, *rest: Tensor) -> bool:
    """Float32, in one place where the kernels run, and nobody asks for half precision.

    Nor compiles or exports the network from outside: a compiler has kernels of its own.
    """
    return (
        not torch.compiler.is_compiling()
        and runs_on(first.device.type)
        and first.dtype == torch.float32
        and all(t.dtype == first.dtype and t.device == first.device for t in rest)
        and not torch.is_autocast_enabled(first.device.type)
    )


def runs_on(device: str) -> bool:
    """Whether Triton is at hand for a kind of device.

    With TRITON_INTERPRET=1 a CPU will do, slowly: that is for the tests.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device != "cuda" and not interpreted:
        return False
    if importlib.util.find_spec("triton") is None:
        return False
    return interpreted or compiles()


@cache
def compiles() -> bool:
    """Whether Triton will find the C compiler it builds its launchers with."""
    if os.environ.get("CC") or any(map(shutil.which, ("gcc", "clang", "cc"))):
        return True
    warnings.warn(
        "the fused kernels need a C compiler, found none: training continues with the library's "
        "kernels, which are slower but give the same results; install gcc",
        EngineWarning,
        stacklevel=2,
    )
    return False
