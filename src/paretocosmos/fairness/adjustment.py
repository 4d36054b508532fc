r"""Post-processing of probabilities that trades accuracy for a gap between rates of groups.

Let p = P(y = 1 | x), and let μ_yg be a multiplier for each class y and group g. A positive decision
costs m = Σ μ_yg P(y, g | x). The probability q that minimises the cross-entropy plus this cost,
-p log q - (1 - p) log(1 - q) + m q, solves

    m q² - (1 + m) q + p = 0.                                                                    (1)

It is above 1/2 where 2p - 1 > m / 2, as the most accurate decisions with a given gap are (Menon and
Williamson 2018). The joint probabilities P(y, g | x), ``[B, 2, groups]``, may be estimated by a
network, follow from groups that are known, or come from another classifier.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.objectives import RateObjective
from paretocosmos.pareto.front import Array
from paretocosmos.types import Targets

# Places on the path from no weight on the gap to all of it. Between two of them multipliers are not
# interpolated, so that every weight has multipliers whose gap was counted.
PLACES = 257
# Dual ascent ends after so many steps, or when the largest gap is closed.
STEPS, CLOSED = 200, 0.001
# A step is this share of the largest gap. The share of a rate grows while its gap keeps its
# direction, and is halved when a step went too far (as in Rprop).
STEP_SHARE, GROWTH, SHRINKAGE = 0.1, 1.1, 0.5
# The rarer decision stays at least so frequent, relative to decisions without an adjustment: a gap
# can always be closed by the same decision for everybody.
RAREST = 0.02
# Points of the ascent's path at which the gap is counted again; fewer while training goes on, where
# the fit only tells how the front looks so far.
POINTS, POINTS_QUICK = 200, 40
# Parts of the rows, each of which is adjusted by multipliers fitted to the others.
FOLDS = 5


def joint_probabilities(label_logits: Tensor, group_logits: Tensor) -> Tensor:
    """Return P(y, g | x) = P(y | x) P(g | x, y), ``[B, 2, groups]``.

    Args:
        label_logits: of P(y = 1 | x), ``[B]``.
        group_logits: of P(g | x, y) for y = 0 and y = 1, ``[B, 2, groups]``.
    """
    both = torch.stack([label_logits, -label_logits], dim=-1)
    label_log_probabilities = -F.softplus(both).unsqueeze(-1)
    return (label_log_probabilities + group_logits.log_softmax(dim=-1)).exp()


def adjusted_logits(label_logits: Tensor, costs: Tensor) -> Tensor:
    """Return the logits of the q in [0, 1] that solve equation (1).

    Args:
        label_logits: of p.
        costs: m, the costs of a positive decision; without any, q is p.

    >>> adjusted_logits(torch.tensor(0.0), torch.tensor([0.0, 1.5])).sigmoid()
    tensor([0.5000, 0.2324])
    """
    # Small probabilities need digits of their own: ONNX Runtime's sigmoid is 0 below 1e-7.
    positive, negative = (-F.softplus(-label_logits)).exp(), (-F.softplus(label_logits)).exp()
    # Of two equal forms of each term, the one that does not subtract nearly equal numbers is taken.
    root = torch.where(
        costs > 0,
        (1 - costs).square() + 4 * costs * negative,
        (1 + costs).square() - 4 * costs * positive,
    ).sqrt()
    numerator = torch.where(
        costs > 1, 4 * costs * negative / (root + costs - 1).clamp(min=1e-30), root + 1 - costs
    )
    denominator = torch.where(
        costs < -1, -4 * costs * positive / (root - costs - 1).clamp(min=1e-30), root + 1 + costs
    )
    return label_logits + numerator.clamp(min=1e-30).log() - denominator.clamp(min=1e-30).log()


class FairnessAdjustment(nn.Module):
    """Adjusts logits to a ray; its parameters are multipliers for every weight of the gap.

    Args:
        groups: how many sensitive groups are compared.

    Attributes:
        multiplier_path: multipliers ``[places, 2, groups]`` by the weight of the gap, from 0 to 1;
            0 until they are fitted.
    """

    multiplier_path: Tensor

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.register_buffer("multiplier_path", torch.zeros(PLACES, 2, groups))

    def fit(
        self,
        label_logits: Tensor,
        joint: Tensor,
        targets: Targets,
        gap: RateObjective,
        *,
        points: int = POINTS,
    ) -> None:
        """Fit the multipliers to rows with known labels and groups (`fit_multipliers`)."""
        path = fit_multipliers(label_logits, joint, targets, gap, points=points)
        self.multiplier_path = path.to(self.multiplier_path)

    def forward(self, label_logits: Tensor, joint: Tensor, rays: Tensor) -> Tensor:
        """Return adjusted logits ``[B]``.

        Args:
            label_logits: of P(y = 1 | x), ``[B]``.
            joint: P(y, g | x), ``[B, 2, groups]``.
            rays: weights of the cross-entropy and of the gap, ``[1, 2]``, ``[B, 2]``, or
                ``[G, 2]`` for G parts of B/G neighbouring rows.
        """
        multipliers = self._multipliers_at(rays)
        rows, count = label_logits.shape[0], multipliers.shape[0]
        if count not in (1, rows):
            multipliers = multipliers.repeat_interleave(rows // count, dim=0)
        return adjusted_logits(label_logits, (joint * multipliers).sum(dim=(-2, -1)))

    def each_ray(self, label_logits: Tensor, joint: Tensor, rays: Tensor) -> Tensor:
        """Return the adjusted logits of all rows at each of N rays, ``[N, B]``."""
        multipliers = self._multipliers_at(rays.to(joint))
        return adjusted_logits(label_logits, multipliers.flatten(1) @ joint.flatten(1).T)

    def _multipliers_at(self, rays: Tensor) -> Tensor:
        """Return the multipliers ``[N, 2, groups]`` of rays ``[N, 2]``."""
        path = self.multiplier_path
        places = torch.arange(len(path), device=rays.device, dtype=rays.dtype)
        positions = rays[:, 1:] / rays.sum(dim=-1, keepdim=True) * (len(path) - 1)
        # the nearest: between two places the gap need not lie between theirs
        nearest = (positions.round() == places).to(rays)
        multipliers: Tensor = (nearest @ path.flatten(1).to(rays)).unflatten(1, path.shape[1:])
        return multipliers

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *args: object
    ) -> None:
        stored = state_dict.get(f"{prefix}multiplier_path")
        if stored is not None and stored.shape[1:] == self.multiplier_path.shape[1:]:
            # a path may have another number of places
            self.multiplier_path = self.multiplier_path.new_empty(stored.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


def cross_fit(
    label_logits: Tensor, joint: Tensor, targets: Targets, gap: RateObjective
) -> Callable[[Tensor], Tensor]:
    """Return a function of N rays that adjusts the logits of these rows, ``[N, B]``.

    Each row is adjusted by multipliers that were fitted without it and its fold. By those fitted to
    it, the gap would be smaller than on new rows.

    Args:
        label_logits: of P(y = 1 | x), ``[B]``.
        joint: P(y, g | x), ``[B, 2, groups]``.
        targets: what the gap reads: labels, groups, and weights where there are any.
        gap: what is to be closed.
    """
    # rows that are alike may lie side by side in a file
    order = torch.randperm(len(label_logits), generator=torch.Generator().manual_seed(0))
    folds = order.to(joint.device) % FOLDS
    adjustments = []
    for fold in range(FOLDS):
        others = folds != fold
        known = {name: values[others] for name, values in targets.items()}
        adjustment = FairnessAdjustment(joint.shape[-1]).to(joint)
        adjustment.fit(label_logits[others], joint[others], known, gap)
        adjustments.append(adjustment)

    def predict(rays: Tensor) -> Tensor:
        logits = label_logits.new_empty(len(rays), len(label_logits))
        for fold, adjustment in enumerate(adjustments):
            rows = folds == fold
            logits[:, rows] = adjustment.each_ray(label_logits[rows], joint[rows], rays)
        return logits

    return predict


def fit_multipliers(
    label_logits: Tensor,
    joint: Tensor,
    targets: Targets,
    gap: RateObjective,
    *,
    points: int = POINTS,
) -> Tensor:
    """Return multipliers ``[places, 2, groups]`` at which the gap falls evenly from place to place.

    Dual ascent from 0 closes the gap on these rows. Then the gap is counted at points along its
    path, those that raise it are dropped, and the places are spread over the rest.

    Args:
        label_logits: of P(y = 1 | x), ``[B]``.
        joint: P(y, g | x), ``[B, 2, groups]``.
        targets: what the gap reads: labels, groups, and weights where there are any.
        gap: what is to be closed.
        points: at how many points of the path the gap is counted.
    """

    def evaluate(multipliers: Tensor) -> tuple[Tensor, float]:
        """Return the rates, and how frequent the rarer decision is."""
        logits = adjusted_logits(label_logits, (joint * multipliers).sum(dim=(-2, -1)))
        decisions = (logits > 0).double()
        positive_share = float(decisions.mean())
        return gap.rates(decisions, targets), min(positive_share, 1 - positive_share)

    ascent = _run_dual_ascent(_compute_rate_gradients(gap, targets, label_logits), evaluate)
    if not ascent:  # nearly everybody gets the same decision, as after a first epoch
        return joint.new_zeros(PLACES, *joint.shape[1:])
    fine = _interpolate_path(torch.stack(ascent), np.linspace(0, len(ascent) - 1, points))
    gaps = np.array([float(_compute_gaps(evaluate(multipliers)[0]).max()) for multipliers in fine])
    # between two points of the ascent the gap can rise: such points are no better than their start
    falls = gaps < np.minimum.accumulate(np.r_[np.inf, gaps[:-1]])
    return _select_even_places(fine[torch.from_numpy(falls)], gaps[falls])


def _run_dual_ascent(
    gradients: Tensor, evaluate: Callable[[Tensor], tuple[Tensor, float]]
) -> list[Tensor]:
    """Return multipliers ``[2, groups]`` from 0 to those that close the gap, which falls each time.

    Steps up the dual of "minimise the cross-entropy subject to equal rates": the multiplier of the
    group with the highest rate grows, and that with the lowest shrinks. Step sizes follow Rprop.

    Args:
        gradients: of rates by positive decisions, ``[2, rates, groups]``.
        evaluate: gives the rates ``[rates, groups]`` and the frequency of the rarer decision.
    """
    dual = torch.zeros_like(gradients[0])
    path: list[Tensor] = []
    step_shares = [STEP_SHARE] * len(dual)
    previous = [(0, 0)] * len(dual)  # the groups with the highest and the lowest rate
    smallest_gap, rarest = np.inf, 0.0
    for _ in range(STEPS):
        multipliers = torch.einsum("kg,ykg->yg", dual, gradients)
        rates, rarer = evaluate(multipliers)
        gaps = _compute_gaps(rates)
        largest = float(gaps.max())
        if not np.isfinite(largest) or rarer <= rarest:
            break  # the gap is NaN, or the rarer decision fell below its floor
        if largest < smallest_gap:
            path.append(multipliers)
            smallest_gap = largest
        if largest <= CLOSED:
            break
        rarest = rarest or RAREST * rarer  # relative to the first step, without an adjustment
        rate = int(gaps.argmax())
        high, low = int(rates[rate].argmax()), int(rates[rate].argmin())
        if previous[rate] == (high, low):
            step_shares[rate] *= GROWTH
        elif previous[rate] == (low, high):
            step_shares[rate] *= SHRINKAGE
        previous[rate] = (high, low)
        # only the largest gap moves; the others follow when they become the largest
        dual[rate, high] += step_shares[rate] * largest
        dual[rate, low] -= step_shares[rate] * largest
    return path


def _compute_gaps(rates: Tensor) -> Tensor:
    """Return the gap of each rate, of rates ``[rates, groups]``."""
    return rates.amax(dim=-1) - rates.amin(dim=-1)


def _compute_rate_gradients(gap: RateObjective, targets: Targets, like: Tensor) -> Tensor:
    """Return how much a positive decision adds to every rate, by class: ``[2, rates, groups]``.

    A rate is a mean over some rows. A positive decision for x adds Σ_y P(y, g | x) times this
    to the rate of group g.
    """
    size = gap.sizes(like, targets)
    # of all rows, the share that each rate is a mean over
    share = size / targets.get("weight", torch.ones_like(like)).sum().to(like)
    classes = torch.tensor([0.0, 1.0]).to(like)
    label = {gap.target: classes}
    # the change of what is averaged when a decision becomes positive, by class
    slope = gap.counted(torch.ones_like(classes), label) - gap.counted(
        torch.zeros_like(classes), label
    )
    members = {"all": torch.ones_like(classes), "positives": classes, "negatives": 1 - classes}
    by_rate = torch.stack([members[rows] * slope for rows in gap.over], dim=-1)
    return by_rate.unsqueeze(-1) / share


def _select_even_places(path: Tensor, gaps: Array) -> Tensor:
    """Return `PLACES` points of a path: for evenly falling gaps, the first with so small a gap."""
    wanted = np.linspace(gaps[0], gaps[-1], PLACES)
    # rounding could put the last one beyond the end
    places = np.searchsorted(-gaps, -wanted - 1e-12).clip(max=len(gaps) - 1)
    return path[torch.from_numpy(places)]


def _interpolate_path(path: Tensor, positions: Array) -> Tensor:
    """Return the points of a piecewise linear path at positions, which count its own points."""
    low = np.floor(positions).astype(int)
    high = np.minimum(low + 1, len(path) - 1)
    fraction = torch.from_numpy(positions - low).to(path).reshape(-1, *[1] * (path.ndim - 1))
    return torch.lerp(path[low], path[high], fraction)
