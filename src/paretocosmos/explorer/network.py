"""The network of a run on a table as the page's script computes it: arrays, by their layers."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.explorer.page_model import PageModel
from paretocosmos.fairness import AdjustedNetwork
from paretocosmos.fairness.network import GROUPS_IF_NEGATIVE, GROUPS_IF_POSITIVE, LABEL
from paretocosmos.nn.backbones import Mlp, Tabular
from paretocosmos.nn.conditioning import (
    Concat,
    ConditionedLayer,
    Film,
    Unconditioned,
    list_networks,
)
from paretocosmos.nn.conditioning.concat import SplitLinear
from paretocosmos.nn.conditioning.film import Modulated
from paretocosmos.nn.conditioning.low_rank import LowRankLinear
from paretocosmos.problems.tables import BASE_SCORE, MISSING, Answer, Table
from paretocosmos.runs.run import Run

# Weights that a page holds; with the rest of it they still fit into a mail.
MAX_WEIGHTS = 500_000


def add_networks(page: PageModel, runs: Sequence[Run], *, wanted: bool) -> PageModel:
    """Add what the page's script needs to answer for new rows of the table, or why it cannot."""
    views = []
    for view, run in zip(page.runs, runs, strict=True):
        try:
            if not wanted:
                raise ConfigurationError("a network that was left out of it")
            views.append(dataclasses.replace(view, network=describe_network(run)))
        except ConfigurationError as error:
            note = f"This page cannot answer for a case of yours: it does not compute {error}."
            views.append(dataclasses.replace(view, network_note=note))
    assert runs[0].table is not None
    columns = describe_table(runs[0].table) if wanted else ()
    # how outputs are read: the task, the names of classes, the scale of a number
    about = runs[0].record["about"]
    answer = Answer.from_about(about).to_dict()
    if answer["task"] == "binary":
        positive = str(about.get("positive", 1))
        answer["classes"] = [str(about.get("negative", f"not {positive}")), positive]
    return dataclasses.replace(page, runs=views, columns=columns, answer=answer)


def describe_network(run: Run) -> dict[str, Any]:
    """Return the arrays of a run's network; raise where the page's script could not compute it.

    It computes `mlp` and `tabular`, each with `concat`, `film`, `fairness_adjustment` or no
    conditioning. All arrays are float32.
    """
    model, *others = list_networks(run.model)
    if run.table is None or any(name.startswith(BASE_SCORE) for name in run.table.columns):
        raise ConfigurationError("the classifier that was given as `base`")
    if others or type(model) not in (AdjustedNetwork, Concat, Film, Unconditioned):
        raise ConfigurationError(f"`{type(run.model).__name__}` networks")
    assert isinstance(model, AdjustedNetwork | Concat | Film | Unconditioned)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > MAX_WEIGHTS:
        raise ConfigurationError(f"networks of {count:,} weights")
    offsets = _find_offsets(model) if isinstance(model, Film) else {}
    backbone: Any = model.backbone
    if type(backbone) is Mlp:
        linear = [layer for layer in backbone.layers if not isinstance(layer, nn.ReLU)]
        content = {"members": 1, "layers": [_describe_layer(layer, offsets) for layer in linear]}
    elif type(backbone) is Tabular:
        content = _describe_tabular(backbone, offsets)
    else:
        raise ConfigurationError(f"`{type(backbone).__name__}` networks")
    content |= {
        "objectives": model.objectives,
        "ends": _to_array(model.ends),
        "heads": list(backbone.cut.widths),
    }
    if isinstance(model, Film):
        content["perceptron"] = [_describe_layer(model.perceptron[i], {}) for i in (0, 2)]
    if isinstance(model, AdjustedNetwork):
        if model.group_features is not None:
            raise ConfigurationError("an adjustment by the group itself")
        if backbone.cut.names != (LABEL, GROUPS_IF_NEGATIVE, GROUPS_IF_POSITIVE):
            raise ConfigurationError("networks with heads in another order")
        content["multipliers"] = _to_array(model.adjustment.multiplier_path)
    return content


def _describe_tabular(backbone: Tabular, offsets: Mapping[nn.Module, int]) -> dict[str, Any]:
    return {
        # pieces of the encoding, by the columns that they read; the other columns as they are
        **{name: _to_array(getattr(backbone, name)) for name in ("read", "starts", "widths")},
        "rest": _to_array(backbone.rest),
        "embed": _describe_layer(backbone.embed, offsets),
        "layers": [_describe_layer(layer, offsets) for layer in backbone.layers],
        "members": backbone.members,
        "scales": [_to_array(numbers) for numbers in backbone.scales.parameters()],
        "shifts": [_to_array(numbers) for numbers in backbone.shifts.parameters()],
        "straight": backbone.linear and _describe_layer(backbone.linear, offsets),
        "averages_probabilities": backbone.averages == "probabilities",
    }


def _find_offsets(model: Film) -> dict[nn.Module, int]:
    """Return where the scales and shifts of each block begin in what the perceptron gives."""
    offsets: dict[nn.Module, int] = {}
    start = 0
    for place in model.places:
        block = model.backbone.get_submodule(place)
        if isinstance(block, Modulated):
            offsets[block] = start
            start += 2 * block.channels
    return offsets


def _describe_layer(layer: Any, offsets: Mapping[nn.Module, int]) -> dict[str, Any]:
    """Return the arrays of a linear layer and of what makes it depend on the ray."""
    content: dict[str, Any] = {}
    while isinstance(layer, ConditionedLayer):
        if type(layer) is SplitLinear:
            content["ray"] = _to_array(layer.ray.weight)
        elif type(layer) is LowRankLinear:
            content |= {"reads": _to_array(layer.reads.weight), "writes": _to_array(layer.writes)}
            content["ray_shifts"] = _to_array(layer.shifts)
        elif type(layer) is Modulated:
            content["modulation"] = offsets[layer]
        else:
            raise ConfigurationError(f"`{type(layer).__name__}` layers")
        layer = layer.layer
    if type(layer) is not nn.Linear:
        raise ConfigurationError(f"`{type(layer).__name__}` layers")
    content |= {"inputs": layer.in_features, "outputs": layer.out_features}
    return content | {"weight": _to_array(layer.weight), "bias": _to_array(layer.bias)}


def _to_array(tensor: Tensor | None) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    return None if tensor is None else tensor.detach().cpu().float().numpy()


def describe_table(table: Table) -> list[dict[str, Any]]:
    """Return the columns of a table, in order, with what turns a value into features.

    The mean of a category is its share of the training rows, and `fill` is the median there: the
    page begins with the most frequent category and the median of each column.
    """
    flags, start = len(table.numeric), len(table.numeric) + len(table.flagged)
    columns: list[dict[str, Any]] = []
    for index, (name, fill) in enumerate(table.numeric.items()):
        column = {"name": name, "fill": fill, "moments": [table.mean[index], table.scale[index]]}
        if name in table.flagged:
            flag = flags + table.flagged.index(name)
            column["flag"] = [flag, table.mean[flag], table.scale[flag]]
        columns.append(column)
    for name, labels in table.categorical.items():
        span = slice(start, start + len(labels))
        missing = labels.index(MISSING) if MISSING in labels else -1
        column = {"name": name, "labels": list(labels), "start": start, "missing": missing}
        columns.append(column | {"means": table.mean[span], "scales": table.scale[span]})
        start += len(labels)
    return columns
