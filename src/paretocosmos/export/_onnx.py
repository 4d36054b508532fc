"""ONNX: one file for any runtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import RunError, need
from paretocosmos.export._deployed import Call, Output, Shared
from paretocosmos.export._traced import quiet, traced
from paretocosmos.export.metadata import KEY
from paretocosmos.io.files import one_line

GROUPED = "grouped_x"

# Bytes of weights; a file is one message of protobuf, which ends at 2^31.
LARGEST = 2_000_000_000


def need_onnx() -> None:
    """Refuse to go on without what writes and runs ONNX files."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        need(package, "onnx", 'format="onnx"')


def onnx_bytes(shared: Shared, about: Callable[[bool], str]) -> tuple[bytes, bool]:
    """The file, and whether it takes several preferences.

    Args:
        shared: what is exported.
        about: what it says of itself, given whether it takes several preferences.
    """
    size = sum(t.numel() * t.element_size() for t in shared.network.state_dict().values())
    if size > LARGEST:
        raise RunError(
            f"an ONNX file of one piece holds at most 2 GB, found weights of {size / 1e9:.1f} GB: "
            'use format="torch"'
        )
    graph, several = traced(shared, grouped=True)
    try:
        with quiet():
            program = torch.onnx.export(
                graph,
                dynamo=True,
                verbose=False,
                input_names=[GROUPED if several else "x", "preference"],
                output_names=list(shared.outputs),
            )
    except torch.onnx.OnnxExporterError as error:
        cause = error.__cause__ or error
        raise RunError(
            f'torch cannot write this network as ONNX ({one_line(cause)[:300]}): use format="torch"'
        ) from error
    assert program is not None
    model: Any = program.model_proto
    _forget(model)
    if several:
        _ungroup(model, shared)
    rows = "rows" if several else model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for value in (*model.graph.input, *model.graph.output):
        first = value.type.tensor_type.shape.dim[0]
        if value.name != "preference" and (several or first.dim_param == rows):
            first.dim_param = "rows"
    model.metadata_props.add(key=KEY, value=about(several))
    content: bytes = model.SerializeToString(deterministic=True)
    return content, several


def _forget(model: Any) -> None:
    """Take out the places on this machine that nodes came from, and made-up names of sizes."""
    graph = model.graph
    del graph.value_info[:]
    del model.metadata_props[:]
    del graph.metadata_props[:]
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        part.doc_string = ""
        del part.metadata_props[:]


def _ungroup(model: Any, shared: Shared) -> None:
    """Let `x` be plain rows, cut into as many groups as there are preferences."""
    from onnx import TensorProto, helper

    graph = model.graph
    _, preference = graph.input
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", *shared.row]),
        helper.make_tensor_value_info(
            "preference", TensorProto.FLOAT, ["preferences", shared.objectives]
        ),
    ]
    rest = helper.make_tensor(
        "each_row", TensorProto.INT64, [1 + len(shared.row)], [-1, *shared.row]
    )
    before = [
        helper.make_node("Shape", [preference.name], ["preferences"], start=0, end=1),
        helper.make_node("Concat", ["preferences", "each_row"], ["grouped_shape"], axis=0),
        helper.make_node("Reshape", ["x", "grouped_shape"], [GROUPED]),
    ]
    nodes = [*before, *graph.node]
    del graph.input[:], graph.node[:]
    graph.input.extend(inputs)
    graph.node.extend(nodes)
    graph.initializer.append(rest)


def loaded_onnx(path: Path) -> Call:
    """The network in a file, run by onnxruntime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def call(x: Tensor, preference: Tensor) -> list[Output]:
        given = {"x": x.numpy(), "preference": preference.numpy()}
        found: list[Output] = session.run(None, given)
        return found

    return call
