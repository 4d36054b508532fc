"""A program of torch.export: one file for users of PyTorch."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from paretocosmos.errors import RunError
from paretocosmos.export._deployed import Call, Output, Shared
from paretocosmos.export._traced import quiet, traced
from paretocosmos.export.metadata import KEY


def program_bytes(shared: Shared, about: Callable[[bool], str]) -> tuple[bytes, bool]:
    """The file, and whether it takes a preference for each row or one for all.

    Args:
        shared: what is exported.
        about: what it says of itself, given whether it takes several preferences.
    """
    program, several = traced(shared, grouped=False)
    program.example_inputs = None  # the one thing that torch would pickle
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            node.meta.pop("stack_trace", None)  # where on this machine it came from
    stream = io.BytesIO()
    with quiet():
        torch.export.save(program, stream, extra_files={KEY: about(several)})
    return stream.getvalue(), several


def loaded_program(path: Path) -> Call:
    """The program in a file; one with anything pickled in it is refused."""
    _refuse_pickles(path)
    with quiet():
        module = torch.export.load(io.BytesIO(path.read_bytes())).module()

    def call(x: Tensor, preference: Tensor) -> list[Output]:
        with torch.inference_mode():
            return [output.numpy() for output in module(x, preference)]

    return call


def _refuse_pickles(path: Path) -> None:
    """`torch.export.load` unpickles what it finds pickled, so there must be nothing."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            listed = name.endswith(("weights_config.json", "constants_config.json"))
            pickled = name.endswith((".pt", ".pkl")) and len(content) > 0
            if listed:
                parts = json.loads(content)["config"].values()
                pickled = any(part["use_pickle"] for part in parts)
            if pickled:
                raise RunError(
                    f"torch {torch.__version__} pickles `{name}` into an exported program, and "
                    'paretocosmos never unpickles: upgrade torch, or use format="onnx"'
                )
