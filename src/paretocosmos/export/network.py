"""The network of a run as an exported file holds it: `x` and `preference` in, named tensors out.

A file also describes itself in its metadata, so that its user needs nothing else.
"""

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos._version import __version__
from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import one_line
from paretocosmos.nn.conditioning import Conditioning, PerRayEnsemble, list_networks
from paretocosmos.pareto.front import get_point
from paretocosmos.problems.tables import DECISION, MISSING, Answer, Table
from paretocosmos.runs.run import Run, predicts_at
from paretocosmos.types import Outputs, map_tensors

Output = np.ndarray[Any, Any]

KEY = "paretocosmos"
"""The key of the description in the file's metadata."""

Takes = Literal["any", "one", "none"]

TAKES: dict[Takes, str] = {
    "any": "one for all rows, [1, {j}], or one for each, [N, {j}]",
    "one": "one for all rows, [1, {j}]",
    "none": "none: the file is frozen at one",
}
"""How many preferences a file takes, in words."""


class Preprocessing(nn.Module):
    """A table's preprocessing: ``[N, columns]`` of `Table.encode` to what `Table.transform` gives.

    As a part of the network, so that an exported file needs nothing else.

    A number that is NaN or infinite is missing. So is such a category, which then is the category
    `(missing)` where the fitting rows had one; anything else that is no place in the column's list
    of categories is none of them. Numbers are standardised in float64, as there, so that large ones
    with a small spread stay exact. A feature that is 0 or 1 has two values when standardised, which
    are known beforehand.

    Args:
        table: the fitted preprocessing.
    """

    fill: Tensor
    mean: Tensor
    scale: Tensor
    flagged: Tensor
    unknown: Tensor
    spread: Tensor
    place: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, table: Table) -> None:
        super().__init__()
        lists = list(table.categorical.values())
        # encoded rows hold the numeric columns first, then one code per categorical column
        self.numbers, self.flags = len(table.numeric), len(table.flagged)
        mean, scale = np.array(table.mean), np.array(table.scale)
        # the two values of a standardised 0 or 1, for the features after the numbers
        low, high = (((bit - mean) / scale).astype(np.float32)[self.numbers :] for bit in (0, 1))
        names, lengths = list(table.numeric), [len(categories) for categories in lists]
        buffers = {
            "fill": np.array(list(table.numeric.values()), dtype=np.float64),
            "mean": mean[: self.numbers],
            "scale": scale[: self.numbers],
            "flagged": np.array([names.index(name) for name in table.flagged], dtype=np.int64),
            "unknown": np.array(
                [c.index(MISSING) if MISSING in c else -1 for c in lists],
                dtype=np.float32,
            ),
            "spread": np.repeat(np.eye(len(lists), dtype=np.float32), lengths, axis=1),
            "place": np.array([index for length in lengths for index in range(length)], np.float32),
            "low": low,
            "high": high,
        }
        for name, values in buffers.items():
            if values.size:  # torch.export cannot save an empty buffer
                self.register_buffer(name, torch.tensor(values))

    def forward(self, x: Tensor) -> Tensor:
        """Float32 ``[N, columns]`` to float32 ``[N, features]``."""
        present = x.abs() < math.inf  # False for NaN, too
        features = []
        if self.numbers:
            numbers = x[:, : self.numbers].double()
            filled = torch.where(present[:, : self.numbers], numbers, self.fill)
            features.append(((filled - self.mean) / self.scale).float())
        flags = self.flags
        if flags:  # "is missing", standardised: low where the number is there
            flags_low = present.index_select(1, self.flagged)
            features.append(torch.where(flags_low, self.low[:flags], self.high[:flags]))
        if x.shape[1] > self.numbers:
            codes = torch.where(present[:, self.numbers :], x[:, self.numbers :], self.unknown)
            # each code once per category of its column: a product with zeros and ones is exact,
            # and onnxruntime gathers columns more slowly than it multiplies
            hit = codes @ self.spread == self.place
            features.append(torch.where(hit, self.high[flags:], self.low[flags:]))
        return torch.cat(features, dim=1)


class ExportedNetwork(nn.Module):
    """``forward(x, preference)``: rows ``[N, ...]``, preferences ``[G, J]``, a tuple of tensors.

    The rows are G groups of N/G neighbours with one preference each: one for all, or one each.

    Args:
        model: ``forward(inputs, ray) -> outputs``; float32, on the CPU.
        preprocessing: runs before it, if the rows are those of a table.
        answer: the meaning of the output, such as the probability of the positive class.
        threshold: the probability above which a decision between two classes is positive.
    """

    def __init__(
        self,
        model: nn.Module,
        preprocessing: Preprocessing | None,
        answer: Answer,
        threshold: float,
    ) -> None:
        super().__init__()
        self.answer = answer
        self.model = model
        self.preprocessing = preprocessing
        self.threshold = threshold

    def forward(self, x: Tensor, preference: Tensor) -> tuple[Tensor, ...]:
        """Rows ``[N, ...]`` and preferences ``[G, J]`` to outputs ``[N, ...]``."""
        if preference.shape[0] != 1 and not isinstance(self.model, Conditioning):
            # a user's own network may take a ray for each sample, but no groups
            rows = (preference.shape[0], x.shape[0] // preference.shape[0], -1)
            preference = preference.unsqueeze(1).expand(rows).flatten(0, 1)
        return tuple(self.compute_named(x, preference).values())

    def compute_named(self, x: Tensor, preference: Tensor) -> dict[str, Tensor]:
        """Compute the outputs by their names."""
        # [J] for all rows, which every network takes; [G, J] only where there are several
        ray = preference[0] if preference.shape[0] == 1 else preference
        if self.preprocessing is not None:
            outputs: Outputs = self.model(self.preprocessing(x), ray)
            predictions = self.answer.read(outputs)
            return {self.answer.output_name: predictions, **self.decide(predictions)}
        # a dataclass becomes a mapping, a list a tuple
        plain = map_tensors(lambda out: out, self.model(x, ray))
        if isinstance(plain, Tensor):
            return {"logits": plain}
        named = plain if isinstance(plain, Mapping) else dict(enumerate(plain))
        return {str(name): out for name, out in named.items() if isinstance(out, Tensor)}

    def decide(self, predictions: Tensor) -> dict[str, Tensor]:
        """Return the index of the predicted class for ``[N]`` or ``[N, K]``, or nothing."""
        if self.answer.task == "number":
            return {}
        if self.answer.task == "classes":
            return {DECISION: predictions.argmax(dim=-1)}
        return {DECISION: (predictions > self.threshold).long()}


class FrozenNetwork(nn.Module):
    """`ExportedNetwork` at one preference ``[1, J]``: ``forward(x)``."""

    def __init__(self, network: ExportedNetwork, preference: Tensor) -> None:
        super().__init__()
        self.whole = network
        self.register_buffer("preference", preference)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Rows ``[N, ...]`` to outputs ``[N, ...]``."""
        outputs: tuple[Tensor, ...] = self.whole(x, self.preference)
        return outputs


class GroupedNetwork(nn.Module):
    """`ExportedNetwork` as it is traced: with rows ``[G, K, ...]`` both sizes stay free."""

    def __init__(self, network: ExportedNetwork) -> None:
        super().__init__()
        self.whole = network  # the name is part of the exported file: its weights are `whole....`

    def forward(self, x: Tensor, preference: Tensor) -> tuple[Tensor, ...]:
        """Rows ``[G, K, ...]`` and preferences ``[G, J]`` to outputs ``[G * K, ...]``."""
        outputs: tuple[Tensor, ...] = self.whole(x.flatten(0, 1), preference)
        return outputs


@dataclass(frozen=True)
class ExportPlan:
    """A network to export, with what writing and checking a file need to know of it.

    Attributes:
        network: what is exported.
        row: the shape of one row of `x`.
        objectives: entries in a preference, J.
        outputs: their names.
        frozen_at: the only preference ``[1, J]`` of a network that is frozen at it.
    """

    network: ExportedNetwork
    row: tuple[int, ...]
    objectives: int
    outputs: tuple[str, ...]
    frozen_at: Tensor | None = None


def plan_export(run: Run, threshold: float) -> ExportPlan:
    """Copy the network of a run to float32 on the CPU; raise if it cannot be exported."""
    trained, frozen_at = run.model, None
    if isinstance(trained, PerRayEnsemble):
        if len(trained.rays) > 1:
            raise ConfigurationError(
                f"an exported file can hold only one network, found one network for each of "
                f"{len(trained.rays)} rays in `{run.folder}`: choose one of them with `at`"
            )
        frozen_at = trained.rays.cpu().float()
        (trained,) = list_networks(trained)
    # float32 whatever it was trained in: few runtimes have float64 kernels
    model = copy.deepcopy(trained).cpu().float().eval().requires_grad_(False)
    table = run.table
    preprocessing = None if table is None else Preprocessing(table)
    answer = Answer.from_about(run.record["about"])
    network = ExportedNetwork(model, preprocessing, answer, threshold).eval()
    shape = run.record["input_shape"] if table is None else [len(table.columns)]
    row, objectives = tuple(shape), run.front.objectives
    even = torch.full((1, objectives), 1 / objectives)
    # a call on zeros gives the names of the outputs, and shows early what cannot be exported
    try:
        with torch.inference_mode():
            names = tuple(network.compute_named(torch.zeros(2, *row), even))
    except Exception as error:  # a user's network may fail in any way
        raise ConfigurationError(
            f"an exported network takes one tensor of floats, here [N, {', '.join(map(str, row))}],"
            f" which this one does not ({one_line(error)}): call torch.onnx.export yourself, with "
            "inputs that fit"
        ) from error
    return ExportPlan(network, row, objectives, names, frozen_at)


def has_threshold(run: Run) -> bool:
    """Return True if decisions follow from the probability of one class."""
    return run.table is not None and Answer.from_about(run.record["about"]).task == "binary"


def list_classes(run: Run) -> list[str]:
    """Return the classes in the order of their indices; empty if a number is predicted."""
    about = run.record["about"]
    answer = Answer.from_about(about)
    if answer.task != "binary":
        return list(answer.classes)
    positive = str(about.get("positive", 1))
    return [str(about.get("negative", f"not {positive}")), positive]


def describe_file(run: Run, plan: ExportPlan, takes: Takes, threshold: float) -> str:
    """Return JSON: columns and categories, objectives, meaning of the output, version."""
    record = run.record
    description: dict[str, Any] = {
        "version": __version__,
        "problem": record["name"],
        "objectives": list(run.front.names),
        "x": ["N", *plan.row],
        "preference": TAKES[takes].format(j=plan.objectives),
        "outputs": list(plan.outputs),
    }
    default_ray = predicts_at(run).ray
    if default_ray is not None:
        description["predicts_at"] = list(default_ray)
    if plan.frozen_at is not None:
        points = {front.split: get_point(front, 0) for front in (run.front_val, run.front)}
        description["reached"] = {
            split: {**point.values, **point.metrics} for split, point in points.items()
        }
    if run.table is not None:
        description |= {key: record["about"].get(key) for key in ("target", "positive")}
        description["classes"] = list_classes(run)
        if has_threshold(run):
            description["threshold"] = threshold
        description["columns"] = [
            {"name": name, "categories": run.table.categorical.get(name)}
            for name in run.table.columns
        ]
    return json.dumps(description)
