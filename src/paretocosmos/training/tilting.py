"""What a network that leans by a formula learns, and how far it leans at every preference."""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.conditioning import ANSWER, OF_NO, OF_YES, PLACES, likely, tilted
from paretocosmos.conditioning.tilt import Tilt
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.learned import learned_outputs
from paretocosmos.evaluation.samples import Shares
from paretocosmos.objectives import Objective, RateObjective, weighted_mean
from paretocosmos.pareto.front import Array
from paretocosmos.problems import Problem, split_of
from paretocosmos.types import Batch, Outputs, Targets, map_tensors

__all__ = ["FEW", "lean", "learned_quality", "trained"]

# Rows the path is found on at most, and for a first look while the network still learns.
ROWS, FEW = 65_536, 8_192
# Steps against the largest gap, each a share of it, until it is closed. The steps of a kind of rows
# grow while its gap has one direction, and are halved when they went too far (as in Rprop).
STEPS, SHARE, BOLDER, CLOSED = 200, 0.1, 1.1, 0.001
# The rarer answer stays at least so frequent as this share of what it is without a wish: a gap can
# always be closed by giving everybody the same answer.
RAREST = 0.02
# Points at which the way is looked at again, of which those are kept that have a smaller gap; and
# how many will do for a first look.
FINE, COARSE = 200, 40


class GroupEntropy(Objective):
    """Cross-entropy of the groups, given the inputs and the class: what closing a gap takes."""

    traceable = True

    def __init__(self, gap: RateObjective) -> None:
        super().__init__(name="group_entropy", target=gap.target)
        self.sensitive = gap.sensitive

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        assert not isinstance(outputs, Tensor)
        yes = targets[self.target].reshape(-1, 1) > 0.5
        logits = torch.where(yes, outputs[OF_YES], outputs[OF_NO])
        groups = targets[self.sensitive].reshape(-1).long()
        return weighted_mean(F.cross_entropy(logits, groups, reduction="none"), targets)


def trained(model: nn.Module, objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """What a network is trained on: the objectives, unless it follows them by a formula."""
    if not isinstance(model, Tilt):
        return tuple(objectives)
    gap = _gap(objectives[1])
    if gap.groups != model.sensitive_groups:
        raise ConfigurationError(
            f"`sensitive_groups` is {model.sensitive_groups}, but `{gap.name}` compares "
            f"{gap.groups} groups: leave it out"
        )
    answer = copy.copy(objectives[0])
    answer.output = ANSWER
    return answer, GroupEntropy(gap)


def lean(model: nn.Module, problem: Problem, *, rows: int = ROWS) -> None:
    """Let a network that leans by a formula find out how far, on the training rows.

    The multipliers start at 0 and grow step by step against the gaps, until these are closed: steps
    up the dual of the constrained problem. Then the places of the path are spread so that the gap
    of the training rows falls evenly, and never rises.

    Args:
        model: any network; others are left alone.
        problem: what it is trained on.
        rows: how many of its training rows to look at.
    """
    if not isinstance(model, Tilt):
        return
    gap, some = _gap(problem.objectives[1]), _some(split_of(problem, "train"), rows)
    answer, joint = likely(learned_outputs(model, problem, some))
    targets = {name: target.to(answer.device) for name, target in some.targets.items()}

    def rates_at(against: Tensor) -> tuple[Tensor, float]:
        """The rates with these multipliers, and how frequent the rarer answer is."""
        decided = (tilted(answer, (joint * against).sum(dim=(-2, -1))) > 0).double()
        yes = float(decided.mean())
        return gap.rates(decided, targets), min(yes, 1 - yes)

    way = _walked(_pull(gap, targets, answer), rates_at)
    if not way:  # the same answer for nearly everybody, as a network in its first epoch gives
        model.follow(torch.zeros_like(model.path))
    else:
        points = FINE if rows > FEW else COARSE
        fine = _between(torch.stack(way), np.linspace(0, len(way) - 1, points))
        gaps = np.array([float(_apart(rates_at(one)[0]).max()) for one in fine])
        falls = gaps < np.minimum.accumulate(np.r_[np.inf, gaps[:-1]])
        model.follow(_spread(fine[torch.from_numpy(falls)], gaps[falls]))


def learned_quality(model: nn.Module, problem: Problem, val: Shares) -> float | None:
    """How well a network that leans by a formula knows held-out rows; `None` for any other.

    Minus the sum of the two cross-entropies it learns. Epochs are compared by this, not by the
    front: a gap counted on a few hundred rows is noise, and would select an epoch by chance.
    """
    if not isinstance(model, Tilt):
        return None
    ((_, samples),) = val  # both objectives are of the same rows
    rows = [(learned_outputs(model, problem, batch), batch.targets) for batch in samples]
    found: Outputs = map_tensors(lambda *parts: torch.cat(parts), *(own for own, _ in rows))
    targets: Targets = map_tensors(lambda *parts: torch.cat(parts), *(own for _, own in rows))
    losses = [one.loss(found, targets) for one in trained(model, problem.objectives)]
    return -float(torch.stack(losses).sum())


def _walked(pull: Tensor, rates_at: Callable[[Tensor], tuple[Tensor, float]]) -> list[Tensor]:
    """Multipliers ``[2, groups]`` from none to those that close the gap, a smaller one each."""
    multipliers = torch.zeros_like(pull[0])
    way: list[Tensor] = []
    shares, before = [SHARE] * len(multipliers), [(0, 0)] * len(multipliers)
    smallest, rarest = np.inf, 0.0
    for _ in range(STEPS):
        against = torch.einsum("kg,ykg->yg", multipliers, pull)
        rates, rarer = rates_at(against)
        apart = _apart(rates)
        largest = float(apart.max())
        if not np.isfinite(largest) or rarer <= rarest:
            break  # nothing can be said, or hardly anything is decided
        if largest < smallest:
            way.append(against)
            smallest = largest
        if largest <= CLOSED:
            break
        rarest = rarest or RAREST * rarer
        kind = int(apart.argmax())
        high, low = int(rates[kind].argmax()), int(rates[kind].argmin())
        if before[kind] == (high, low):
            shares[kind] *= BOLDER
        elif before[kind] == (low, high):
            shares[kind] /= 2
        before[kind] = (high, low)
        multipliers[kind, high] += shares[kind] * largest
        multipliers[kind, low] -= shares[kind] * largest
    return way


def _apart(rates: Tensor) -> Tensor:
    """The gap of every kind of rows, of rates ``[kinds, groups]``."""
    return rates.amax(dim=-1) - rates.amin(dim=-1)


def _gap(objective: Objective) -> RateObjective:
    if not (isinstance(objective, RateObjective) and objective.linear):
        raise ConfigurationError(
            f"`tilt` needs a gap between rates of groups, found `{objective.name}`: leave "
            "`conditioning` out"
        )
    return objective


def _some(train: Batch, rows: int) -> Batch:
    """As many rows as are needed, always the same."""
    if len(train) <= rows:
        return train
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:rows]

    def picked(part: Tensor) -> Tensor:
        return part[order.to(part.device)]

    return Batch(map_tensors(picked, train.inputs), map_tensors(picked, train.targets))


def _pull(gap: RateObjective, targets: Targets, like: Tensor) -> Tensor:
    """What a yes adds to every rate, by class: ``[2, kinds of rows, groups]``.

    A rate is the mean of something over some rows; the probability of class and group times this,
    summed over the classes, is what the rate gains by a yes.
    """
    size = gap.sizes(like, targets)
    share = size / targets.get("weight", torch.ones_like(like)).sum().to(like)
    classes = torch.tensor([0.0, 1.0]).to(like)
    label = {gap.target: classes}
    slope = gap.counted(torch.ones_like(classes), label) - gap.counted(
        torch.zeros_like(classes), label
    )
    of = {"all": torch.ones_like(classes), "positives": classes, "negatives": 1 - classes}
    chosen = torch.stack([of[rows] * slope for rows in gap.over], dim=-1)
    return chosen.unsqueeze(-1) / share


def _spread(way: Tensor, gaps: Array) -> Tensor:
    """Places ``[PLACES, ...]`` of a way whose gaps fall: each the first with a gap so small."""
    wanted = np.linspace(gaps[0], gaps[-1], PLACES)
    # against rounding, which could put the last one beyond the end
    places = np.searchsorted(-gaps, -wanted - 1e-12).clip(max=len(gaps) - 1)
    return way[torch.from_numpy(places)]


def _between(way: Tensor, at: Array) -> Tensor:
    """Points of a way at these places, straight between its own, which are 0, 1, 2 and so on."""
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, len(way) - 1)
    part = torch.from_numpy(at - low).to(way).reshape(-1, *[1] * (way.ndim - 1))
    return torch.lerp(way[low], way[high], part)
