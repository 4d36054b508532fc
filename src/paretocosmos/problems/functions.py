"""Problems without data: functions of decision variables (Pareto set learning), and two toys."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import GaussianWell, MeanSquaredError, Objective
from paretocosmos.objectives.base import pick, weighted_mean, weighted_sums
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.problems.base import InMemoryProblem, Protocol, Split
from paretocosmos.types import Batch, Measure, Outputs, Targets

# Constant inputs, which say nothing: the ray is all that a network can learn from.
FEATURES = 4
# The inputs are all the same: a step needs one per ray, an evaluation needs one.
SIZES: dict[Split, int] = {"train": 512, "val": 2, "test": 2}

Function = Callable[[Tensor], Tensor]
"""Decision variables ``[B, D]`` to objectives ``[B, J]``, differentiable."""


def make_constant_splits(
    targets: Mapping[str, Sequence[float]], sizes: Mapping[Split, int]
) -> dict[Split, Batch]:
    """Return splits whose inputs are all the same, so that answers depend on the ray alone.

    Noise would not do: a network could answer one half of the samples with each end of the front,
    which beats the middle of a concave one.

    Args:
        targets: by name, the same for every sample.
        sizes: samples of each split.
    """
    return {
        split: Batch(
            torch.ones(size, FEATURES),
            {n: torch.tensor(point).expand(size, -1).contiguous() for n, point in targets.items()},
        )
        for split, size in sizes.items()
    }


@dataclass(frozen=True, eq=False)
class Bounds:
    """The box that decision variables lie in; a sine brings any output into it.

    Attributes:
        lower: ``[D]``.
        upper: ``[D]``.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        pairs = list(zip(self.lower, self.upper, strict=True))
        if not pairs or not all(math.isfinite(b - a) and a < b for a, b in pairs):
            raise ConfigurationError(
                f"`bounds` need a finite pair (lower, upper) for each variable, found {pairs}"
            )

    def inside(self, outputs: Tensor) -> Tensor:
        """Bring outputs ``[..., D]`` of a network into the box."""
        lower = torch.tensor(self.lower, dtype=outputs.dtype, device=outputs.device)
        upper = torch.tensor(self.upper, dtype=outputs.dtype, device=outputs.device)
        # a sine reaches both bounds at finite outputs, which a sigmoid does not
        return lower + (upper - lower) * (1 + outputs.sin()) / 2


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionValue(Objective):
    """One value of a function of decision variables, which the network's outputs encode.

    Args:
        function: variables ``[B, D]`` to all objectives ``[B, J]``.
        bounds: of the variables.
        index: which of the objectives.
        best: its smallest value.
        worst: its largest value on the front; the loss is 0 at `best` and 1 here.
    """

    measure = Measure("value", "a smaller value", "The value of a function; smaller is better.")

    function: Function
    bounds: Bounds
    index: int
    best: float
    worst: float
    # a batch needs some target, though the value of a function has none
    target: str = "none"

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        # a preference means the same wherever the front lies, and in whatever unit
        share = (self._each(outputs) - self.best) / (self.worst - self.best)
        return weighted_mean(share, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._each(outputs), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs), targets)

    def _each(self, outputs: Outputs) -> Tensor:
        return self.function(self.bounds.inside(pick(outputs, self.output)))[..., self.index]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstantProblem(InMemoryProblem):
    """A problem whose inputs are constant, so that answers depend on the ray alone."""

    def _make_front(self, rays: Array, values: Array) -> Front:
        return Front(
            rays=rays,
            values=values,
            names=self.names,
            reference=np.array(self.reference),
            provenance={"problem": self.name, "exact": True},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionProblem(ConstantProblem):
    """Decision variables within bounds, and a function that gives their objectives: no data.

    The network maps a ray to decision variables, so that one training gives the Pareto set: for
    every preference the variables, and their objectives. Build it with `FunctionProblem.of`.

    Attributes:
        function: variables ``[B, D]`` to objectives ``[B, J]``, differentiable.
        bounds: of the variables.
        exact: gives about so many points ``[N, J]`` of the true front, evenly spread; `None` where
            it is not known.

    >>> import torch
    >>> def cost_and_wear(x):  # [B, 2] to [B, 2]
    ...     return torch.stack([x.square().sum(-1), (x - 1).square().sum(-1)], dim=-1)
    >>> problem = FunctionProblem.of(
    ...     cost_and_wear, bounds=[(-1, 2), (-1, 2)], names=("cost", "wear"), reference=(3, 3)
    ... )
    >>> problem.names, problem.outputs
    (('cost', 'wear'), 2)
    """

    function: Function = field(repr=False)
    bounds: Bounds = field(repr=False)
    exact: Callable[[int], Array] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        function: Function,
        *,
        bounds: Sequence[tuple[float, float]],
        reference: Sequence[float],
        names: Sequence[str] | None = None,
        name: str = "function",
        exact: Callable[[int], Array] | None = None,
        protocol: Protocol = "clean",
        traceable: bool = False,
    ) -> "FunctionProblem":
        """Make a problem of a function.

        Args:
            function: variables ``[B, D]`` to objectives ``[B, J]``, all to be small; torch
                operations, so that it can be differentiated.
            bounds: ``(lower, upper)`` of each variable.
            reference: a point worse than the front in everything, from which hypervolume is
                measured.
            names: of the J objectives; ``f1``, ``f2`` and so on if `None`.
            name: how runs call it.
            exact: gives points of the true front, where it is known.
            protocol: ``"paper"`` scores a split in batches, as the published code does.
            traceable: promises that `function` decides nothing in Python from values of tensors.
        """
        names = [f"f{index + 1}" for index in range(len(reference))] if names is None else names
        # of no pairs `zip` leaves nothing to unpack; `Bounds` then explains
        lower, upper = zip(*bounds, strict=True) if len(bounds) else ((), ())
        box = Bounds(tuple(map(float, lower)), tuple(map(float, upper)))
        # tried on two rows now, so that a mistake does not first show up in the training
        middle = box.inside(torch.zeros(2, len(bounds)))
        try:
            values = function(middle)
            shape = tuple(values.shape)
        except Exception as error:
            raise ConfigurationError(
                f"`function` cannot be evaluated at variables of shape (2, {len(bounds)}): {error}"
            ) from error
        if shape != (2, len(names)) or len(reference) != len(names):
            raise ConfigurationError(
                f"`function` gives {shape} for variables of shape (2, {len(bounds)}), with "
                f"{len(names)} `names` and {len(reference)} numbers in `reference`: it must give "
                "one column per name, stacked with torch.stack([...], dim=-1)"
            )
        ends = _find_ends(function, box) if exact is None else torch.from_numpy(exact(100))
        ranges = _check_ranges(ends, names, reference)
        objectives = []
        for index, (label, (best, worst)) in enumerate(zip(names, ranges, strict=True)):
            objectives.append(
                FunctionValue(
                    name=label, function=function, bounds=box, index=index, best=best, worst=worst
                )
            )
            # no argument of an objective, since usually its class declares it
            objectives[-1].traceable = traceable
        return cls(
            name=name,
            objectives=tuple(objectives),
            reference=tuple(map(float, reference)),
            input_shape=(FEATURES,),
            outputs=len(bounds),
            protocol=protocol,
            function=function,
            bounds=box,
            splits=make_constant_splits({"none": [0.0]}, SIZES),
            exact=exact,
        )

    def variables(self, model: nn.Module, rays: Rays) -> Tensor:
        """Return the decision variables ``[N, D]`` that a trained network has for rays ``[N, J]``.

        Args:
            model: a run's `model`.
            rays: one or several.
        """
        wanted = as_rays(rays, len(self.objectives), names=self.names)
        parameter = next(model.parameters())
        # on the network's device and in its type
        inputs = torch.ones(1, FEATURES).to(parameter)
        with torch.no_grad():
            outputs = [model(inputs, ray.to(parameter))[0] for ray in wanted]
        return self.bounds.inside(torch.stack(outputs)).cpu()

    def exact_front(self, count: int = 25) -> Front:
        """Return about `count` points of the true front, which must be known.

        Their rays are those whose inverses point from the front's ideal point to them.
        """
        if count < 2:
            raise ConfigurationError(f"`count` must be at least 2, found {count}")
        if self.exact is None:
            raise ConfigurationError(
                f"the true front of `{self.name}` is not known: pass `exact` where it is"
            )
        values = self.exact(count)
        # clipped, since the ends of a front would have infinite weights
        above = np.clip(values - values.min(axis=0), 1e-6, None)
        rays = (1 / above) / (1 / above).sum(axis=1, keepdims=True)
        return self._make_front(rays, values)


# Random variables that are tried, the best of which an optimiser starts from, and its steps.
TRIED, STARTS, STEPS = 1024, 16, 200
# A range below this share of that up to the reference is none.
LEAST = 1e-6


def _find_ends(function: Function, bounds: Bounds) -> Tensor:
    """Find about the ends of a front: all objectives ``[J, J]`` where each one is smallest.

    By gradient descent from several starts.

    Args:
        function: variables ``[B, D]`` to objectives ``[B, J]``.
        bounds: of the variables.
    """
    generator = torch.Generator().manual_seed(0)
    # around the middle, some closely: far from it a function of many variables may be flat
    width = torch.linspace(0, 1, TRIED)[:, None]
    share = torch.rand(TRIED, len(bounds.lower), generator=generator)
    angles = (width * (2 * share - 1)).asin()
    with torch.no_grad():
        values = function(bounds.inside(angles)).nan_to_num(nan=math.inf)
    starts = angles[values.topk(STARTS, dim=0, largest=False).indices.T]  # [J, STARTS, D]
    ends = values[values.argmin(dim=0)]
    # steps of many lengths, since nobody knows how steep the function is
    lengths = torch.logspace(-3, -1, STARTS)[:, None]
    moved = torch.zeros_like(starts, requires_grad=True)
    optimizer = torch.optim.Adam([moved], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    objectives = torch.arange(len(starts))
    with torch.enable_grad():
        for _ in range(STEPS):
            variables = bounds.inside((starts + lengths * moved).flatten(0, 1))
            values = function(variables).unflatten(0, (-1, STARTS))  # [J, STARTS, J]
            own = values.diagonal(dim1=0, dim2=2)  # [STARTS, J]
            lowest = own.detach().nan_to_num(nan=math.inf).argmin(dim=0)
            reached = values.detach()[objectives, lowest]
            is_lower = reached.diagonal() < ends.diagonal()
            ends = torch.where(is_lower[:, None], reached, ends)
            optimizer.zero_grad()
            try:
                own.sum().backward()
            except RuntimeError as error:
                raise ConfigurationError(
                    f"`function` cannot be differentiated: {error}; use torch operations throughout"
                ) from error
            optimizer.step()
            schedule.step()
    return ends


def _check_ranges(
    ends: Tensor, names: Sequence[str], reference: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the best and the worst value of each objective on a front, given points of it."""
    ranges = []
    for name, limit, values in zip(names, reference, ends.T.tolist(), strict=True):
        best, worst = min(values), max(values)
        if not limit > best:
            raise ConfigurationError(
                f"`reference` must be worse than the front in everything, found {limit:g} for "
                f"`{name}`, whose smallest value is about {best:g}"
            )
        # without any range, one answer is best for all objectives
        flat = worst - best < LEAST * (limit - best)
        ranges.append((best, float(limit if flat else min(limit, worst))))
    return ranges


TOY_SIZES: dict[Split, int] = {"train": 512, "val": 128, "test": 128}


@dataclass(frozen=True, kw_only=True, eq=False)
class ToyProblem(ConstantProblem):
    """Two fixed points of the plane; a network trades the distance to one for that to the other.

    The inputs are constant, so that the answer can depend on the ray alone; the best answers lie on
    the segment between the points. The ray r belongs to y = r₁ a + r₂ b; `exact_values` gives both
    objectives there.

    Attributes:
        curve: both objectives at y = s a + (1 - s) b, ``[N]`` to ``[N, 2]``.
    """

    input_shape: tuple[int, ...] = (FEATURES,)
    outputs: int = 2
    curve: Callable[[Array], Array] = field(repr=False)

    def exact_values(self, rays: Array) -> Array:
        """Both objectives on the front: rays ``[N, 2]`` to ``[N, 2]``."""
        return self.curve(np.asarray(rays, dtype=np.float64)[:, 0])

    def exact_front(self, count: int = 25) -> Front:
        """Return points of the true front, from the first objective's best to the second's."""
        if count < 2:
            raise ConfigurationError(f"`count` must be at least 2, found {count}")
        first = np.linspace(1, 0, count)
        rays = np.stack([first, 1 - first], axis=1)
        return self._make_front(rays, self.exact_values(rays))


def toy_convex(*, protocol: Protocol = "clean") -> ToyProblem:
    r"""Two squared distances; the convex front L₁ = (1 - s)², L₂ = s², known in closed form.

    .. math:: L_1 = \tfrac12 \|y - a\|^2, \quad L_2 = \tfrac12 \|y - b\|^2

    with a = (0, 0) and b = (1, 1). The weighted sum with ray r is smallest at y = r₁ a + r₂ b, so
    r₁ = s: even a linear method finds every point of this front.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> toy_convex().exact_front(3).values.tolist()
    [[0.0, 1.0], [0.25, 0.25], [1.0, 0.0]]
    """
    points = {"first": (0.0, 0.0), "second": (1.0, 1.0)}
    return ToyProblem(
        name="toy_convex",
        objectives=tuple(MeanSquaredError(name=name, target=name) for name in points),
        reference=(2.0, 2.0),
        protocol=protocol,
        splits=make_constant_splits(points, TOY_SIZES),
        curve=_square_distances,
    )


def toy_concave(*, protocol: Protocol = "clean") -> ToyProblem:
    r"""Two wells (Fonseca and Fleming 1995); a concave front that no weighted sum can follow.

    .. math:: L_1 = 1 - e^{-\|y - a\|^2}, \quad L_2 = 1 - e^{-\|y - b\|^2}

    with a = (1, 1)/√2 and b = -a. The front is L₁ = 1 - exp(-4(1 - s)²), L₂ = 1 - exp(-4s²) at
    y = s a + (1 - s) b. A weighted sum is smallest near one of the ends for every ray; a better
    method also finds the middle.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> toy_concave().exact_front(3).values.round(3).tolist()
    [[0.0, 0.982], [0.632, 0.632], [0.982, 0.0]]
    """
    end = 1 / math.sqrt(2)
    points = {"first": (end, end), "second": (-end, -end)}
    return ToyProblem(
        name="toy_concave",
        objectives=tuple(GaussianWell(name=name, target=name) for name in points),
        # both losses stay below 1, so every model dominates it
        reference=(1.1, 1.1),
        protocol=protocol,
        splits=make_constant_splits(points, TOY_SIZES),
        curve=lambda share: -np.expm1(-4 * _square_distances(share)),
    )


def _square_distances(share: Array) -> Array:
    """Return the squared distances to both points at shares of the way, where they are 1 apart."""
    return np.stack([(1 - share) ** 2, share**2], axis=1)
