"""The network of a run as a file holds it: `x` and `preference` in, named tensors out."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.conditioning import Conditioning, PerRayEnsemble
from paretocosmos.errors import ConfigurationError
from paretocosmos.export._preprocessing import Preprocessing
from paretocosmos.io.files import one_line
from paretocosmos.problems.tables import DECISION, Answer
from paretocosmos.runs.run import Run
from paretocosmos.types import Outputs, map_tensors

Output = np.ndarray[Any, Any]

Call = Callable[[Tensor, Tensor], list[Output]]
"""A file that was loaded: `x` and `preference` to the outputs."""


class Deployed(nn.Module):
    """``forward(x, preference)``: rows ``[N, ...]``, preferences ``[G, J]``, a tuple of tensors.

    The rows are G groups of N/G neighbours with one preference each: one for all, or one each.

    Args:
        model: ``forward(inputs, ray) -> outputs``; float32, on the CPU.
        preprocessing: what comes before it, where the rows are those of a table.
        answer: what the output then is, such as the probability of the positive class.
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
            # a network of one's own may know a ray for each sample, but no groups
            rows = (preference.shape[0], x.shape[0] // preference.shape[0], -1)
            preference = preference.unsqueeze(1).expand(rows).flatten(0, 1)
        return tuple(self.by_name(x, preference).values())

    def by_name(self, x: Tensor, preference: Tensor) -> dict[str, Tensor]:
        """The outputs by their names."""
        ray = preference[0] if preference.shape[0] == 1 else preference
        if self.preprocessing is not None:
            outputs: Outputs = self.model(self.preprocessing(x), ray)
            found = self.answer.read(outputs)
            return {self.answer.called: found, **self.decided(found)}
        # a dataclass becomes a mapping, a list a tuple
        plain = map_tensors(lambda out: out, self.model(x, ray))
        if isinstance(plain, Tensor):
            return {"logits": plain}
        named = plain if isinstance(plain, Mapping) else dict(enumerate(plain))
        return {str(name): out for name, out in named.items() if isinstance(out, Tensor)}

    def decided(self, found: Tensor) -> dict[str, Tensor]:
        """The place of the class that follows from probabilities ``[N]`` or ``[N, K]``, if any."""
        if self.answer.task == "number":
            return {}
        if self.answer.task == "classes":
            return {DECISION: found.argmax(dim=-1)}
        return {DECISION: (found > self.threshold).long()}


class Grouped(nn.Module):
    """`Deployed` as it is traced: rows ``[G, K, ...]``, so that both sizes may be any."""

    def __init__(self, whole: Deployed) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, x: Tensor, preference: Tensor) -> tuple[Tensor, ...]:
        """Rows ``[G, K, ...]`` and preferences ``[G, J]`` to outputs ``[G * K, ...]``."""
        outputs: tuple[Tensor, ...] = self.whole(x.flatten(0, 1), preference)
        return outputs


@dataclass(frozen=True)
class Shared:
    """What the ways of writing and checking a file share.

    Attributes:
        network: what is exported.
        row: the shape of one row of `x`.
        objectives: entries in a preference, J.
        outputs: their names.
    """

    network: Deployed
    row: tuple[int, ...]
    objectives: int
    outputs: tuple[str, ...]


def deployed(run: Run, threshold: float) -> Shared:
    """The network of a run in float32 on the CPU; one that cannot be exported is refused."""
    if isinstance(run.model, PerRayEnsemble):
        raise ConfigurationError(
            f"an exported file can hold only one network, found one network for each of "
            f"{len(run.model.rays)} rays in `{run.folder}`: export a run of a method that trains "
            "one network for all rays, such as `cosmos`"
        )
    model = copy.deepcopy(run.model).cpu().float().eval().requires_grad_(False)
    table = run.table
    preprocessing = None if table is None else Preprocessing(table)
    answer = Answer.from_about(run.record["about"])
    network = Deployed(model, preprocessing, answer, threshold).eval()
    shape = run.record["input_shape"] if table is None else [len(table.columns)]
    row, objectives = tuple(shape), run.front.objectives
    even = torch.full((1, objectives), 1 / objectives)
    try:
        with torch.inference_mode():
            names = tuple(network.by_name(torch.zeros(2, *row), even))
    except Exception as error:  # somebody's network may fail in any way
        raise ConfigurationError(
            f"an exported network takes one tensor of floats, here [N, {', '.join(map(str, row))}],"
            f" which this one does not ({one_line(error)}): call torch.onnx.export yourself, with "
            "inputs that fit"
        ) from error
    return Shared(network, row, objectives, names)
