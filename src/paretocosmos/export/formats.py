"""ONNX files: traced, written, compared with PyTorch, and used on data frames."""

import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    ParetoCosmosError,
    RunError,
    require_extra,
)
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.export.network import (
    KEY,
    ExportPlan,
    FrozenNetwork,
    GroupedNetwork,
    Output,
    Takes,
)
from paretocosmos.io.files import one_line, user_path
from paretocosmos.pareto.front import Array
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.problems.tables import DECISION, Table

if TYPE_CHECKING:
    import pandas as pd

# The largest difference that float32 and another order of summation explain.
TOLERANCE = 1e-5

# Numbers of rows and preferences that are compared.
COMPARED_SIZES: dict[Takes, tuple[tuple[int, int], ...]] = {
    "any": ((1, 1), (2, 1), (2, 2), (7, 1), (7, 7), (33, 1)),
    "one": ((1, 1), (2, 1), (7, 1), (33, 1)),
    "none": ((1, 1), (2, 1), (7, 1), (33, 1)),
}

# Sizes to trace with; torch would take 0 and 1 for fixed ones.
TRACED_SIZES = {"rows": 3, "groups": 2, "each": 3}

GROUPED = "grouped_x"

# Bytes of weights: an ONNX file is one protobuf message, which cannot exceed 2^31 bytes.
MOST_WEIGHT_BYTES = 2_000_000_000


# ---------------------------------------------------------------- tracing


def trace_network(plan: ExportPlan) -> tuple[ExportedProgram, Takes]:
    """Return the network as a graph, and how many preferences it takes.

    It takes rows ``[groups, each, ...]`` with a preference for each group if it can be traced that
    way; a hypernetwork of convolutions cannot, and takes rows with one preference for all. One
    that is frozen takes rows alone.
    """
    network: nn.Module = plan.network
    takes: Takes = "one"
    if plan.frozen_at is not None:
        network, takes = FrozenNetwork(plan.network, plan.frozen_at), "none"
    else:
        try:
            grouped = GroupedNetwork(plan.network)
            return _trace_with_sizes(plan, grouped, ("groups", "each"), "groups"), "any"
        except Exception:  # torch.export has no family of errors of its own
            pass
    try:
        return _trace_with_sizes(plan, network, ("rows",), None), takes
    except Exception as error:
        raise RunError(
            f"torch.export cannot follow this network ({one_line(error)[:300]}): the network must "
            "not branch on the values or sizes of tensors"
        ) from error


def _trace_with_sizes(
    plan: ExportPlan, network: nn.Module, rows: tuple[str, ...], preferences: str | None
) -> ExportedProgram:
    """Trace a network with free sizes for rows and, unless `None`, preferences."""
    # sizes of one name share one symbol: torch then knows that they are equal
    free = {name: Dim(name) for name in rows}
    count = 1 if preferences is None else TRACED_SIZES[preferences]
    example = [
        torch.zeros(*(TRACED_SIZES[name] for name in rows), *plan.row),
        torch.full((count, plan.objectives), 1 / plan.objectives),
    ]
    shapes = [
        {axis: free[name] for axis, name in enumerate(rows)},
        {} if preferences is None else {0: free[preferences]},
    ]
    inputs = 2 if plan.frozen_at is None else 1
    with hide_exporter_messages(), torch.no_grad():
        return torch.export.export(
            network,
            tuple(example[:inputs]),
            dynamic_shapes=tuple(shapes[:inputs]),
            strict=False,  # run the code of the network: Dynamo follows less of what people write
            # what torch cannot prove about sizes stays open: other sizes are compared afterwards
            prefer_deferred_runtime_asserts_over_guards=True,
        )


@contextmanager
def hide_exporter_messages() -> Iterator[None]:
    """Hide the messages of torch's exporters, which are for their developers."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


# ---------------------------------------------------------------- writing


def require_onnx() -> None:
    """Raise if a package that writes or runs ONNX files is missing."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        require_extra(package, "onnx", "`export`")


def write_onnx(plan: ExportPlan, describe: Callable[[Takes], str]) -> tuple[bytes, Takes]:
    """Return the file, and how many preferences it takes.

    Args:
        plan: what is exported.
        describe: the file's metadata, given how many preferences it takes.
    """
    size = sum(t.numel() * t.element_size() for t in plan.network.state_dict().values())
    if size > MOST_WEIGHT_BYTES:
        raise RunError(
            f"an ONNX file of one piece holds at most 2 GB, found weights of {size / 1e9:.1f} GB: "
            "call torch.export yourself"
        )
    traced, takes = trace_network(plan)
    several = takes == "any"
    try:
        with hide_exporter_messages():
            program = torch.onnx.export(
                traced,
                dynamo=True,
                verbose=False,
                input_names=[GROUPED if several else "x", "preference"][: 1 + (takes != "none")],
                output_names=list(plan.outputs),
            )
    except torch.onnx.OnnxExporterError as error:
        cause = error.__cause__ or error  # torch's own message is a page of instructions
        raise RunError(
            f"torch cannot write this network as ONNX ({one_line(cause)[:300]}): call torch.export "
            "yourself"
        ) from error
    assert program is not None
    model: Any = program.model_proto
    # without locations of the source on this machine, and generated names of sizes
    graph = model.graph
    del graph.value_info[:], model.metadata_props[:], graph.metadata_props[:]
    for element in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        element.doc_string = ""
        del element.metadata_props[:]
    if several:
        _reshape_rows(model, plan)
    # users read the names of sizes: generated ones, such as `s77`, become `rows`
    rows = "rows" if several else graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for value in (*graph.input, *graph.output):
        first = value.type.tensor_type.shape.dim[0]
        if value.name != "preference" and (several or first.dim_param == rows):
            first.dim_param = "rows"
    model.metadata_props.add(key=KEY, value=describe(takes))
    content: bytes = model.SerializeToString(deterministic=True)
    return content, takes


def _reshape_rows(model: Any, plan: ExportPlan) -> None:
    """Make `x` plain rows, which the graph cuts into as many groups as there are preferences."""
    from onnx import TensorProto, helper

    graph = model.graph
    _, preference = graph.input
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", *plan.row]),
        helper.make_tensor_value_info(
            "preference", TensorProto.FLOAT, ["preferences", plan.objectives]
        ),
    ]
    row_shape = helper.make_tensor(
        "each_row", TensorProto.INT64, [1 + len(plan.row)], [-1, *plan.row]
    )
    reshape = [
        helper.make_node("Shape", [preference.name], ["preferences"], start=0, end=1),
        helper.make_node("Concat", ["preferences", "each_row"], ["grouped_shape"], axis=0),
        helper.make_node("Reshape", ["x", "grouped_shape"], [GROUPED]),
    ]
    nodes = [*reshape, *graph.node]
    del graph.input[:], graph.node[:]
    graph.input.extend(inputs)
    graph.node.extend(nodes)
    graph.initializer.append(row_shape)


def open_session(file: str | bytes, threads: int = 0) -> Any:
    """Return a session of onnxruntime that runs a file, or its content, on the CPU.

    Args:
        file: its path or its content.
        threads: 0 for one per core.
    """
    require_onnx()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _run_session(session: Any, **inputs: Output) -> list[Output]:
    # a frozen file takes no preference
    taken = {node.name: inputs[node.name] for node in session.get_inputs()}
    outputs: list[Output] = session.run(None, taken)
    return outputs


# ---------------------------------------------------------------- comparison


def _measure_difference(
    plan: ExportPlan, written: Path, takes: Takes, table: Table | None
) -> float:
    """Return the largest difference between a file and PyTorch on random rows and rays.

    It is relative if outputs are above 1: a logit of 100 has no more digits than a probability.
    """
    session, generator = open_session(str(written)), torch.Generator().manual_seed(0)
    worst = 0.0
    for rows, count in COMPARED_SIZES[takes]:
        x = draw_rows(rows, plan.row, table, generator)
        # exponential variables over their sum are uniform on the simplex
        ray = torch.rand(count, plan.objectives, generator=generator).log().neg()
        ray /= ray.sum(dim=1, keepdim=True)
        if plan.frozen_at is not None:
            ray = plan.frozen_at
        with torch.inference_mode():
            expected = [output.numpy() for output in plan.network(x, ray)]
        outputs = _run_session(session, x=x.numpy(), preference=ray.numpy())
        actual = dict(zip(plan.outputs, outputs, strict=True))
        wanted = dict(zip(plan.outputs, expected, strict=True))
        if DECISION in actual:  # rounding may flip one at the threshold: ask for consistency
            predictions = torch.from_numpy(actual[plan.network.answer.output_name])
            wanted[DECISION] = plan.network.decide(predictions)[DECISION].numpy()
        worst = max(
            worst,
            *(compute_relative_difference(actual[name], wanted[name]) for name in plan.outputs),
        )
    return worst


def compute_relative_difference(actual: Output, wanted: Output) -> float:
    """Return the largest difference, relative to the largest of `wanted` if that is above 1.

    >>> compute_relative_difference(np.array([200.0, 3.0]), np.array([202.0, 3.0]))
    0.009900990099009901
    """
    if actual.shape != wanted.shape:
        return float("inf")
    # NaN would compare as smaller than any tolerance
    largest = np.abs(actual - wanted).max() / max(1.0, np.abs(wanted).max())
    return float(np.nan_to_num(largest, nan=np.inf))


def draw_rows(
    rows: int, row: tuple[int, ...], table: Table | None, generator: torch.Generator
) -> Tensor:
    """Draw noise; for a table, numbers like its own, categories, missing and unknown values."""
    noise = torch.randn(rows, *row, generator=generator)
    if table is None:
        return noise
    count = len(table.numeric)
    x = noise.double()
    x[:, :count] = x[:, :count] * torch.tensor(table.scale[:count]) + torch.tensor(
        table.mean[:count]
    )
    for column, categories in enumerate(table.categorical.values(), start=count):
        x[:, column] = torch.randint(-1, len(categories) + 1, (rows,), generator=generator)
    chance = torch.rand(x.shape, generator=generator)
    x[chance < 0.1] = torch.nan
    x[chance > 0.95] = torch.inf
    largest = torch.finfo(torch.float32).max
    return torch.where(x.isfinite(), x.clamp(-largest, largest), x).float()


def compare_file(
    plan: ExportPlan, written: Path, path: Path, takes: Takes, table: Table | None
) -> float:
    """Return the difference between a written file and PyTorch; raise if it is too large."""
    remedy = "so it was removed: try other versions of torch and onnxruntime"
    try:
        difference = _measure_difference(plan, written, takes, table)
    except ParetoCosmosError:
        raise
    except Exception as error:  # runtimes have no common base of errors
        raise RunError(
            f"the file for `{path}` cannot be run ({one_line(error)[:300]}), {remedy}"
        ) from error
    if difference > TOLERANCE:
        raise RunError(
            f"the file for `{path}` differs from PyTorch by up to {difference:.2g} where at most "
            f"{TOLERANCE:g} is allowed, {remedy}"
        )
    return difference


class FramePredictor:
    """Adds the predictions of an exported file to data frames.

    It holds the content of the file, so that it can be pickled and sent to machines that have
    this package and onnxruntime, but not the file: as a map function of ``ray.data``, and with
    `map_frames` as one of Spark's ``mapInPandas``.

    Args:
        file: an ONNX file that `export` wrote for a table.
        preference: one entry per objective, or weights by name; by default that of the estimator
            that was exported.
        threads: of onnxruntime; a cluster has a process per core.
    """

    def __init__(
        self, file: str | PathLike[str], preference: Rays | None = None, *, threads: int = 1
    ) -> None:
        self._content, self._threads = user_path(fspath(file)).read_bytes(), threads
        self._session: Any = None
        metadata = self._get_session().get_modelmeta().custom_metadata_map
        about = json.loads(metadata.get(KEY, "{}"))
        if "columns" not in about:
            raise ConfigurationError(
                f"`file` must be an ONNX file that `export` wrote for a table, found `{file}`: "
                "export a run on a table"
            )
        if preference is not None and "reached" in about:
            raise ConfigurationError(
                f"`preference` cannot be given for `{fspath(file)}`, which is frozen at "
                f"{about['predicts_at']}: leave it out"
            )
        preference = about.get("predicts_at") if preference is None else preference
        if preference is None:
            raise ConfigurationError(
                "`preference` must be given, since the file has none of its own: "
                f"try {[1 / len(about['objectives'])] * len(about['objectives'])}"
            )
        ray = as_rays(preference, len(about["objectives"]), names=about["objectives"])
        self._preference = ray.numpy().astype(np.float32)
        self._classes, self._threshold = about["classes"], about.get("threshold", MIDDLE)
        categories = {column["name"]: column["categories"] for column in about["columns"]}
        numbers = [name for name, labels in categories.items() if labels is None]
        # the file standardises: here the columns need only be read
        self._table = Table(
            numeric=dict.fromkeys(numbers, 0.0),
            flagged=(),
            categorical={name: labels for name, labels in categories.items() if labels is not None},
            mean=(),
            scale=(float("inf"),) * len(numbers),
        )

    def __call__(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return the rows with their predictions, in the columns that `predict` writes."""
        x, session = self._table.encode(frame), self._get_session()
        outputs = _run_session(session, x=x, preference=self._preference)[0].astype(np.float64)
        return add_predictions(frame, outputs, self._classes, self._threshold)

    def map_frames(self, frames: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        """Yield each frame with its predictions."""
        return map(self, frames)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_session": None}

    def _get_session(self) -> Any:
        """Return the session, which is built again after pickling."""
        if self._session is None:
            self._session = open_session(self._content, self._threads)
        return self._session


def add_predictions(
    frame: "pd.DataFrame", outputs: Array, classes: Sequence[str], threshold: float
) -> "pd.DataFrame":
    """Return rows with a column `prediction`, and the probabilities of classes.

    Args:
        frame: the rows.
        outputs: as `Run.predict` returns them.
        classes: the names of the classes; empty if a number is predicted.
        threshold: the probability above which the second of two classes is predicted.
    """
    names, added = np.array(classes, object), dict[str, Any]()
    if not classes:
        added["prediction"] = outputs
    elif outputs.ndim > 1:
        added |= {f"probability_{n}": p for n, p in zip(classes, outputs.T, strict=True)}
        added["prediction"] = names[outputs.argmax(axis=1)]
    else:
        chosen = (outputs > threshold).astype(np.int64)
        added |= {"probability": outputs, "prediction": names[chosen]}
    # the caller's own columns are never overwritten
    duplicates = [name for name in added if name in frame.columns]
    if duplicates:
        raise DataError(f"the table already has a column `{duplicates[0]}`: rename it")
    return frame.assign(**added)
