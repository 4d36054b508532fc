"""Rays: preferences on the simplex, drawn at random for training or spread evenly for a front."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.schema import MOST
from paretocosmos.runtime.torch_private import standard_gamma

Alpha = float | Sequence[float]

# The paper's test rays stop this far (in radians) from the axes; its section 5.3 and code.
MARGIN = 0.1
# As far as the sum of a ray may be from 1.
CLOSE = 1e-3
OFF_SIMPLEX = ("refuse", "normalise")


def sample_rays(
    count: int,
    objectives: int,
    *,
    alpha: Alpha = 1.0,
    generator: torch.Generator | int | None = None,
) -> Tensor:
    r"""Draw rays from a Dirichlet distribution.

    .. math:: r \sim \mathrm{Dir}(\alpha)

    Args:
        count: how many rays, N.
        objectives: entries in a ray, J.
        alpha: the Dirichlet parameter; one number, or one per objective. Below 1 the rays crowd at
            the corners of the simplex, above 1 at its centre.
        generator: a CPU generator or a seed; `None` draws from torch's global one.

    Returns:
        Rays ``[N, J]`` in float32 on the CPU: the same seed gives the same rays for every device.

    >>> sample_rays(3, 2, alpha=0.5, generator=1).sum(dim=1)
    tensor([1., 1., 1.])
    """
    if count < 1 or objectives < 1:
        raise ConfigurationError(
            f"`count` and `objectives` must be at least 1, found {count} and {objectives}"
        )
    if isinstance(generator, int):
        generator = torch.Generator().manual_seed(generator)
    # float64, for the digits of log(U) / alpha where alpha is small
    concentration = torch.tensor(check_alpha(alpha, objectives), dtype=torch.float64)
    shape = concentration.expand(count, objectives)
    # Gamma(a) = Gamma(a + 1) * U^(1/a), kept as a logarithm: for a small alpha the plain draws
    # underflow to a row of zeros. torch.distributions takes no generator, hence `standard_gamma`.
    draws: Tensor = standard_gamma(shape + 1, generator=generator).log()
    uniform = torch.rand(shape.shape, generator=generator, dtype=torch.float64)
    draws += uniform.clamp_min(torch.finfo(torch.float64).tiny).log() / shape
    return draws.softmax(dim=1).float()


def even_rays(count: int, objectives: int, *, ends: bool = False) -> Tensor:
    """Return rays spread evenly, for evaluating a front.

    Two objectives: equal angles from 0.1 to pi/2 - 0.1, as in the paper. Three: a Fibonacci lattice
    on the positive octant of the sphere. More: a fixed stratified draw from the Dirichlet
    distribution of parameter 0.5, near corners and near the centre; rays as far from each other as
    possible would all lie at the edges there.

    Args:
        count: how many rays, N.
        objectives: entries in a ray, J.
        ends: include the corners of the simplex, and for more than three objectives its centre;
            else stop short of the corners, as the paper's.

    Returns:
        Rays ``[N, J]`` in float32, each summing to one.

    >>> even_rays(3, 2)
    tensor([[0.9088, 0.0912],
            [0.5000, 0.5000],
            [0.0912, 0.9088]])
    """
    if count < 1 or objectives < 2:
        raise ConfigurationError(
            f"even rays need `count` >= 1 and `objectives` >= 2, found {count} and {objectives}"
        )
    if count > MOST:
        raise ConfigurationError(f"`rays` must be at most {MOST:,}, found {count}")
    if count == 1:
        return torch.full((1, objectives), 1 / objectives)
    if ends:
        return _spread_to_corners(count, objectives)
    if objectives == 2:
        angles = torch.linspace(MARGIN, math.pi / 2 - MARGIN, count, dtype=torch.float64)
        points = torch.stack([angles.cos(), angles.sin()], dim=1)
    elif objectives == 3:
        # A Fibonacci lattice, equal-area: the height is uniform on a sphere, and the golden ratio
        # spreads the azimuth.
        index = torch.arange(count, dtype=torch.float64)
        height = (index + 0.5) / count
        # half a step on, so that no ray lies on the edge, where an entry is 0
        azimuth = ((index + 0.5) * (math.sqrt(5) - 1) / 2 % 1) * math.pi / 2
        radius = (1 - height**2).sqrt()
        points = torch.stack([radius * azimuth.cos(), radius * azimuth.sin(), height], dim=1)
    else:
        generator = torch.Generator().manual_seed(0)
        points = stratified_rays(1, count, objectives, alpha=0.5, generator=generator).double()
    return (points / points.sum(dim=1, keepdim=True)).float()


def _spread_to_corners(count: int, objectives: int) -> Tensor:
    """Return even rays, of which the corners of the simplex are the first and the last."""
    if objectives == 2:
        weights = torch.linspace(1, 0, count)
        return torch.stack([weights, 1 - weights], dim=1)
    # the lattice of three objectives comes close to the centre anyway
    centre = torch.full((int(objectives > 3), objectives), 1 / objectives)
    fixed = torch.cat([torch.eye(objectives), centre])[:count]
    inner = count - len(fixed)
    return torch.cat([fixed, even_rays(inner, objectives)]) if inner else fixed


Rays = Tensor | np.ndarray | Sequence[object] | Mapping[str, float]
"""What a caller may give: numbers in the order of the objectives, or weights by their names."""


def as_rays(
    rays: Rays, objectives: int, *, names: Sequence[str] = (), off_simplex: str = "refuse"
) -> Tensor:
    """Check rays and bring them to ``[N, J]`` float32; a single ``[J]`` becomes ``[1, J]``.

    Args:
        rays: one ``[J]``, or several ``[N, J]``; or the weights of one by name, where those that
            are left out are 0. ``"accuracy"`` is the weight of a cross-entropy.
        objectives: entries in a ray, J.
        names: of the objectives, where weights may have them.
        off_simplex: ``"refuse"`` a ray that does not sum to 1, or ``"normalise"`` it and warn.

    >>> as_rays([0.25, 0.75], 2)
    tensor([[0.2500, 0.7500]])
    >>> as_rays({"tpr_gap": 0.75, "accuracy": 0.25}, 2, names=("binary_cross_entropy", "tpr_gap"))
    tensor([[0.2500, 0.7500]])
    """
    if isinstance(rays, Mapping):
        rays = _order_by_name(rays, names)
    if off_simplex not in OFF_SIMPLEX:
        raise ConfigurationError(
            f"`off_simplex` must be `refuse` or `normalise`, found `{off_simplex}`"
        )
    try:
        # an array is copied, or torch would warn of one that cannot be written to
        values = rays.copy() if isinstance(rays, np.ndarray) else rays
        tensor = torch.as_tensor(values, dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"a ray must be {objectives} numbers that sum to 1, found {rays!r}"
        ) from error
    if tensor.ndim == 1:
        tensor = tensor.unsqueeze(0)
    if tensor.ndim != 2 or tensor.shape[1] != objectives or len(tensor) == 0:
        raise ConfigurationError(
            f"a ray must have one entry per objective, here {objectives}; found shape "
            f"{tuple(torch.as_tensor(rays).shape)}"
        )
    is_bad = ~torch.isfinite(tensor).all(dim=1) | (tensor < 0).any(dim=1)
    if bool(is_bad.any()):
        bad = [round(value, 6) for value in tensor[is_bad][0].tolist()]
        raise ConfigurationError(
            f"a ray must have finite entries >= 0; found {bad}: use values such as "
            + ",".join(f"{1 / objectives:.3g}" for _ in range(objectives))
        )
    total = tensor.sum(dim=1, keepdim=True)
    worst = float(total[(total - 1).abs().argmax()])
    # left as they are: dividing would change rays that were read from a file by a digit
    if abs(worst - 1) <= CLOSE:
        return tensor
    problem = f"the entries of a ray sum to 1, found a sum of {worst:g}"
    if off_simplex == "refuse" or not bool((total > 0).all()):
        raise ConfigurationError(f"{problem}: divide the ray by its sum")
    warnings.warn(f"{problem}: they are divided by it", UserWarning, stacklevel=3)
    return tensor / total


def _order_by_name(weights: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return weights in the order of the objectives."""
    if not names:
        raise ConfigurationError(f"a ray must be numbers, one per objective, found {weights!r}")
    by_objective = dict.fromkeys(names, 0.0)
    entropies = [name for name in names if name.endswith("cross_entropy")]
    for name, weight in weights.items():
        if name == "accuracy" and name not in by_objective and len(entropies) == 1:
            name = entropies[0]
        if name not in by_objective:
            raise unknown("objective", str(name), names)
        by_objective[name] = weight
    return list(by_objective.values())


def has_only_corners(rays: npt.ArrayLike | None) -> bool:
    """Return True if rays are the corners of the simplex, a network for each objective alone.

    Such points are no front, but their ideal point counts.

    >>> has_only_corners([[1, 0], [0, 1]]), has_only_corners([[0.5, 0.5]]), has_only_corners(None)
    (True, False, False)
    """
    values = np.asarray([] if rays is None else rays)
    return len(values) > 1 and np.array_equal(values, np.eye(len(values)))


def check_alpha(alpha: Alpha, objectives: int | None = None) -> tuple[float, ...]:
    """Return the Dirichlet parameter as a tuple, one number per objective if known; check it."""
    try:
        values = tuple(float(a) for a in (alpha if isinstance(alpha, Iterable) else (alpha,)))
    except (TypeError, ValueError):
        values = ()
    if not values or not all(math.isfinite(a) and a > 0 for a in values):
        raise ConfigurationError(f"`alpha` must be positive, found {alpha!r}: try 0.5")
    if objectives is None:
        return values
    if len(values) == 1:
        return values * objectives
    if len(values) != objectives:
        raise ConfigurationError(
            f"`alpha` must be one number or one per objective, here {objectives}; found "
            f"{len(values)}"
        )
    return values


# Places of a table of the Beta distribution.
POINTS = 2**14
# exp(-37) is the smallest number that float64 can tell from 0 beside 1.
TAIL = 37.0


def stratified_rays(
    steps: int,
    rays_per_batch: int,
    objectives: int,
    *,
    alpha: Alpha = 1.0,
    generator: torch.Generator,
) -> Tensor:
    r"""Draw the rays of several steps from a Dirichlet distribution, spread within each step.

    .. math:: r_j = x_j \prod_{i < j} (1 - x_i), \qquad
        x_j \sim \mathrm{Beta}\Big(\alpha_j, \sum_{i > j} \alpha_i\Big)

    Each x_j is a quantile, and a step's uniform numbers for it lie one in each of the G intervals
    [k/G, (k+1)/G), in an order of their own (a Latin hypercube). So every ray by itself is a
    Dirichlet draw, and the mean of a step's rays varies less than that of independent ones.

    Args:
        steps: how many.
        rays_per_batch: rays of a step, G.
        objectives: entries in a ray, J.
        alpha: the Dirichlet parameter; one number, or one per objective.
        generator: a CPU generator.

    Returns:
        Rays ``[steps * G, J]`` in float32 on the CPU, those of a step beside each other.

    >>> rays = stratified_rays(1, 2, 2, generator=torch.Generator().manual_seed(1))
    >>> sorted((rays[:, 0] > 0.5).tolist())
    [False, True]
    """
    if min(steps, rays_per_batch, objectives) < 1:
        raise ConfigurationError(
            f"`steps`, `rays_per_batch` and `objectives` must be at least 1, found {steps}, "
            f"{rays_per_batch} and {objectives}"
        )
    concentration = check_alpha(alpha, objectives)
    shape = (steps, rays_per_batch, objectives - 1)
    # a random permutation of the G strata for each step and entry
    order = torch.rand(shape, generator=generator, dtype=torch.float64).argsort(dim=1)
    within = torch.rand(shape, generator=generator, dtype=torch.float64)
    uniform = ((order + within) / rays_per_batch).flatten(0, 1).numpy()
    remaining = np.ones(steps * rays_per_batch)
    rays = np.empty((steps * rays_per_batch, objectives))
    for j in range(objectives - 1):  # stick breaking, from the first objective on
        shares, logits = _tabulate_beta(concentration[j], sum(concentration[j + 1 :]))
        quantiles = np.interp(uniform[:, j], shares, logits)
        rays[:, j] = remaining * _compute_sigmoid(quantiles)
        # not 1 - x, which has few digits where x is close to 1
        remaining = remaining * _compute_sigmoid(-quantiles)
    rays[:, -1] = remaining
    return torch.from_numpy(rays).float()


@cache
def _tabulate_beta(a: float, b: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Tabulate the distribution function of Beta(a, b) at even steps of log(x / (1 - x)).

    There the density is x^a (1 - x)^b: smooth, and exponential in both tails, also where that of x
    has poles.
    """
    middle, width = np.log(a / b), 9 * np.sqrt(1 / a + 1 / b)
    # as wide as the tails of x^a and (1 - x)^b, beyond which the density is 0 in float64
    logits = np.linspace(middle - TAIL / a - width, middle + TAIL / b + width, POINTS)
    # log x and log(1 - x), whichever is near 0 to full precision
    log_density = -a * np.logaddexp(0, -logits) - b * np.logaddexp(0, logits)
    density = np.exp(log_density - log_density.max())
    shares = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return shares / shares[-1], logits


def _compute_sigmoid(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.exp(-np.logaddexp(0, -logits))
