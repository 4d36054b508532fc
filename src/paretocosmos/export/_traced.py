"""Tracing a network with sizes that stay free, quietly."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from paretocosmos.errors import RunError
from paretocosmos.export._deployed import Grouped, Shared
from paretocosmos.io.files import one_line

# What a network is traced with: sizes other than 0 and 1, which torch takes for fixed ones.
SIZES = {"rows": 3, "groups": 2, "each": 3}


def traced(shared: Shared, *, grouped: bool) -> tuple[ExportedProgram, bool]:
    """The network as a graph, and whether it takes several preferences or one for all rows.

    Several are taken where the network can be traced so; a hypernetwork of convolutions cannot.

    Args:
        shared: what is exported.
        grouped: whether it takes rows ``[groups, each, ...]`` with a preference for each group, or
            rows ``[rows, ...]`` with one for each.
    """
    network = shared.network
    try:
        if grouped:
            return _trace(shared, Grouped(network), ("groups", "each"), "groups"), True
        return _trace(shared, network, ("rows",), "rows"), True
    except Exception:  # torch.export has no family of errors of its own
        pass
    try:
        return _trace(shared, network, ("rows",), None), False
    except Exception as error:
        raise RunError(
            f"torch.export cannot follow this network ({one_line(error)[:300]}): the network must "
            "not branch on the values or sizes of tensors"
        ) from error


def _trace(
    shared: Shared, network: nn.Module, rows: tuple[str, ...], preferences: str | None
) -> ExportedProgram:
    free = {name: Dim(name) for name in rows}
    count = 1 if preferences is None else SIZES[preferences]
    example = (
        torch.zeros(*(SIZES[name] for name in rows), *shared.row),
        torch.full((count, shared.objectives), 1 / shared.objectives),
    )
    shapes = (
        {at: free[name] for at, name in enumerate(rows)},
        {} if preferences is None else {0: free[preferences]},
    )
    with quiet(), torch.no_grad():
        return torch.export.export(
            network,
            example,
            dynamic_shapes=shapes,
            strict=False,
            # what torch cannot prove of the sizes is left open; other sizes are compared afterwards
            prefer_deferred_runtime_asserts_over_guards=True,
        )


@contextmanager
def quiet() -> Iterator[None]:
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
