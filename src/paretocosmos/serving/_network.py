"""The network that answers: rows of many requests, a ray for each, in one pass."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from paretocosmos.conditioning import PerRayEnsemble
from paretocosmos.conditioning.hypernet import Hypernet
from paretocosmos.errors import ConfigurationError
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.run import Run
from paretocosmos.serving._rows import Numbers, Rows
from paretocosmos.types import Outputs

__all__ = ["Answers", "Network", "Rays", "TorchNetwork", "activated"]

Rays = npt.NDArray[np.float32]

Answers = dict[str, npt.NDArray[np.float32]]
"""What a network says of rows ``[N, ...]``, by head; the only one of a table is `probability`."""

# Rows of a pass at most, and numbers of their inputs: an image grows in its first convolution.
ROWS, NUMBERS = 4096, 550_000
# Weights that a hypernetwork may emit in a pass, which it does for every row: 64 MB.
EMITTED = 16_000_000
# Rows per ray from which a pass for each ray beats one with a ray for each row, and rows below
# which it is not worth looking.
SHARED, FEW = 8, 64


class Network(ABC):
    """Answers rows, whichever library computes them.

    Attributes:
        limit: rows of one pass at most.
        mixes: whether one pass takes a ray for each row.
    """

    limit: int
    mixes: bool = True

    @abstractmethod
    def call(self, rows: Numbers, rays: Rays) -> Answers:
        """One pass: rows ``[N, ...]``, rays ``[1, J]`` or ``[N, J]``."""

    def used(self, rays: Rays) -> Rays:
        """The rays that really answer: the same, unless there is a network for each of a few."""
        return rays

    def answer(self, rows: Numbers, rays: Rays) -> Answers:
        """As many passes as it takes: rows ``[N, ...]``, rays ``[1, J]`` or ``[N, J]``."""
        if len(rays) > 1 and (not self.mixes or len(rays) > FEW):
            distinct, which = np.unique(rays, axis=0, return_inverse=True)
            if not self.mixes or len(distinct) * SHARED <= len(rows):
                return self._by_ray(rows, distinct, which.reshape(-1))
        parts = []
        for start in range(0, len(rows), self.limit):
            few = slice(start, start + self.limit)
            parts.append(self.call(rows[few], rays if len(rays) == 1 else rays[few]))
        if len(parts) == 1:
            return parts[0]
        return {head: np.concatenate([part[head] for part in parts]) for head in parts[0]}

    def _by_ray(self, rows: Numbers, rays: Rays, which: npt.NDArray[np.int64]) -> Answers:
        whole: Answers = {}
        for at in range(len(rays)):
            mine = np.flatnonzero(which == at)
            for head, part in self.answer(rows[mine], rays[at : at + 1]).items():
                room = whole.setdefault(head, np.empty((len(rows), *part.shape[1:]), part.dtype))
                room[mine] = part
        return whole


@final
class TorchNetwork(Network):
    """A run's own network.

    Args:
        run: what is served.
        rows: how its rows become inputs.
    """

    def __init__(self, run: Run, rows: Rows) -> None:
        self._model, self._rows = run.model, rows
        self._table, self._answer = run.table is not None, Answer.from_about(run.record["about"])
        if self._answer.task != "binary":
            raise ConfigurationError(
                f"a server supports only two classes, but `{run.folder}` predicts "
                f"{'a number' if self._answer.task == 'number' else 'several'}: use `paretocosmos "
                "predict`, or export it"
            )
        parameter = next(run.model.parameters())
        self._device, self._dtype = parameter.device, parameter.dtype
        self._several = run.model if isinstance(run.model, PerRayEnsemble) else None
        self.mixes = self._several is None
        self.limit = rows_of_a_pass(run)

    def used(self, rays: Rays) -> Rays:
        if self._several is None:
            return rays
        held = self._several.rays.cpu()
        given = torch.from_numpy(rays).to(held)
        near = F.cosine_similarity(given[:, None], held[None], dim=2).argmax(dim=1)
        return held[near].float().numpy()

    def call(self, rows: Numbers, rays: Rays) -> Answers:
        features = self._rows.features(rows)
        with torch.inference_mode():
            inputs = torch.from_numpy(features).to(self._device, self._dtype)
            ray = torch.from_numpy(rays[0] if len(rays) == 1 else rays)
            outputs: Outputs = self._model(inputs, ray.to(self._device, self._dtype))
            if self._table:
                outputs = {self._answer.called: self._answer.read(outputs)}
            named = outputs if isinstance(outputs, Mapping) else {"outputs": outputs}
            return {head: out.float().cpu().numpy() for head, out in named.items()}


def rows_of_a_pass(run: Run) -> int:
    """How many rows go through a run's network at once, so that memory stays bounded."""
    limit: int = min(ROWS, NUMBERS // math.prod(run.record["input_shape"]))
    if isinstance(run.model, Hypernet):
        even = torch.full((run.front.objectives,), 1 / run.front.objectives)
        with torch.inference_mode():
            weights = run.model.weights(even.to(next(run.model.parameters())))
        limit = min(limit, EMITTED // sum(weight.numel() for weight in weights.values()))
    return max(1, limit)


def activated(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Probabilities: of the positive class for one logit a row, of every class for several."""
    given = torch.from_numpy(logits)
    several = given.ndim > 1 and given.shape[-1] > 1
    likely = given.softmax(dim=-1) if several else given.reshape(len(given)).sigmoid()
    found: npt.NDArray[np.float32] = likely.numpy()
    return found
