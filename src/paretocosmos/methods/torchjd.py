"""TorchJD's aggregators and scalarisers as methods: `torchjd:UPGrad`."""

import dataclasses
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretocosmos.errors import ConfigurationError, MissingExtraError, unknown
from paretocosmos.methods.base import DirichletRays, Gram, Method, State, like_losses

# As TorchJD has them: below the first a Gram matrix is 0; the second makes it definite.
NO_GRADIENT, RIDGE = 1e-4, 1e-4
SLACK = 1e-12

Numbers = NDArray[np.float64]


def project(vectors: Tensor, gram: Tensor) -> Tensor:
    r"""Weights of the projections of combinations of gradients onto the cone that harms none.

    .. math:: \arg\min_v v^\top G v \quad\text{subject to}\quad v \ge u

    for every row u (Quinton and Rey 2024, proposition 1).

    Args:
        vectors: the rows u, ``[..., J]``.
        gram: G, the Gram matrix of the gradients ``[J, J]``.

    >>> conflict = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])
    >>> project(torch.tensor([[1.0, 0.0]]), conflict).round(decimals=2)
    tensor([[1.0000, 0.5000]])
    """
    matrix = gram.detach().cpu().double().numpy()
    trace = float(np.trace(matrix))
    matrix = matrix / trace if trace > NO_GRADIENT**2 else np.zeros_like(matrix)
    matrix = matrix + RIDGE * np.eye(len(matrix))
    rows = vectors.detach().cpu().double().numpy().reshape(-1, len(matrix))
    found = np.stack([row + _raised(matrix, matrix @ row) for row in rows])
    return torch.from_numpy(found).to(gram).reshape(vectors.shape)


def _raised(matrix: Numbers, pull: Numbers) -> Numbers:
    """What to add: argmin of s·Gs / 2 + s·p over s >= 0, by Lawson and Hanson's active sets."""
    raised = np.zeros_like(pull)
    free = np.zeros(len(pull), dtype=bool)
    for _ in range(3 * len(pull)):
        gain = np.where(free, -np.inf, -(matrix @ raised + pull))
        if gain.max() <= SLACK:
            break
        free[gain.argmax()] = True
        while True:
            best = np.zeros_like(raised)
            best[free] = np.linalg.solve(matrix[np.ix_(free, free)], -pull[free])
            if best[free].min(initial=np.inf) > 0:
                break
            out = free & (best <= 0)
            step = (raised[out] / (raised[out] - best[out] + SLACK)).min()
            raised = raised + step * (best - raised)
            free &= raised > SLACK
        raised = best
    return raised


# How their classes call a preference; the ray is given for it.
PREFERENCES = ("pref_vector", "weights")
# Of theirs, what is a tensor or an object, and no setting.
OBJECTS = ("projector", "reference")


@dataclass(frozen=True, kw_only=True)
class TorchJd(DirichletRays):
    r"""What TorchJD's aggregator or scalariser weighs, for one network that is given every ray.

    One that takes a preference is given the ray: `UPGrad`, `DualProj`, `AlignedMTL`, `COSMOS`,
    `PBI`, `STCH`. The weights w of any other are multiplied by it:

    .. math:: J \, r_j \, w_j

    so that `Mean` is `linear`. An aggregator is asked for weights with the Gram matrix of the
    gradients over all parameters, a scalariser with the losses.

    Args:
        part: the name of the class.
        options: what it is built with.
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.
    """

    traceable: ClassVar[bool] = False  # theirs decide in Python, and leave the device

    part: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def init(self, objectives: int) -> State:
        return {"steps": torch.zeros((), dtype=torch.float64)}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        count = losses.shape[-1]
        given = losses.detach().reshape(-1, count)
        matrices = None if _scalarises(self.part) else gram().reshape(-1, count, count)
        every = []
        # some of theirs draw numbers: a step draws the same again where a training is resumed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(state["steps"].max()))
            for place, ray in enumerate(rays.reshape(-1, count).expand(len(given), count)):
                matrix = None if matrices is None else matrices[place]
                every.append(self._weights_at(given[place], ray.to(given), matrix))
        after = {"steps": state["steps"] + 1}
        return like_losses(torch.stack(every).reshape(losses.shape), losses), after

    def _weights_at(self, losses: Tensor, ray: Tensor, gram: Tensor | None) -> Tensor:
        """Those of one ray ``[J]``."""
        kind = class_of(self.part)
        own = _preference(kind)
        given: dict[str, Any] = {} if own is None else {own: ray}
        if "projector" in inspect.signature(kind).parameters:
            given["projector"] = project
        built = kind(**self.options, **given)
        if gram is None:
            with torch.enable_grad():
                leaf = losses.clone().requires_grad_()
                (found,) = torch.autograd.grad(built(leaf), leaf)
        else:
            found = built.gramian_weighting(gram)
        return found if own is not None else len(ray) * ray * found


def adapted(part: str) -> Callable[..., Method]:
    """What builds the method of TorchJD's class of that name; its settings are that class's.

    A setting of theirs that is called as one of ours has the class's name before it:
    ``fairgrad_alpha``.
    """
    kind = class_of(part)
    ours = {"alpha": DirichletRays.alpha, "stratified": DirichletRays.stratified}
    theirs = {
        f"{part.lower()}_{name}" if name in ours else name: name
        for name in inspect.signature(kind).parameters
        if name not in (*PREFERENCES, *OBJECTS)
    }

    taken = inspect.signature(kind).parameters

    def needed(name: str) -> bool:
        return taken[name].default is inspect.Parameter.empty

    def build(**given: Any) -> Method:
        absent = [called for called, name in theirs.items() if needed(name) and called not in given]
        if absent:
            raise ConfigurationError(
                f"`torchjd:{part}` needs `{absent[0]}`, which has no default: pass it in `settings`"
            )
        options = {name: given.pop(called) for called, name in theirs.items() if called in given}
        made = TorchJd(part=part, options=options, **given)
        ray = torch.full((2,), 0.5)
        try:
            made.weights(torch.ones(2), ray, lambda: torch.eye(2), made.init(2))
        except (ImportError, TypeError, ValueError) as error:
            raise ConfigurationError(f"`torchjd:{part}` cannot be used: {error}") from error
        return made

    build.__doc__ = f"TorchJD's {part}, with the ray as the preference."
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_keyword(name, default) for name, default in ours.items()]
        + [_keyword(called, taken[name].default) for called, name in theirs.items()]
    )
    hints = {one.name: one.type for one in dataclasses.fields(DirichletRays) if one.name in ours}
    build.__annotations__ = {**hints, **dict.fromkeys(theirs, float | str)}
    return build


def _keyword(name: str, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def class_of(part: str) -> Any:
    """TorchJD's class of that name, if it can be a method here."""
    for package in ("scalarization", "aggregation"):
        kind = getattr(_torchjd(part, package), part, None)
        if isinstance(kind, type):
            why = _refusal(kind, part)
            if why is None:
                return kind
            raise ConfigurationError(
                f"`torchjd:{part}` cannot be a method here, because it {why}: use one of "
                f"{', '.join(accepted())}"
            )
    raise unknown("part of torchjd", part, accepted())


def accepted() -> list[str]:
    """The names of TorchJD's classes that can be methods here."""
    # a name of both is a scalariser, which costs no Gram matrix
    every = (_torchjd("methods", package) for package in ("aggregation", "scalarization"))
    found = {name: getattr(package, name) for package in every for name in package.__all__}
    return sorted(name for name, kind in found.items() if _refusal(kind, name) is None)


def _refusal(kind: Any, part: str) -> str | None:
    """Why a class cannot be a method; `None` if it can."""
    from torchjd import Stateful
    from torchjd.aggregation import Aggregator, GramianWeightedAggregator
    from torchjd.scalarization import Scalarizer

    if kind in (Aggregator, GramianWeightedAggregator, Scalarizer) or inspect.isabstract(kind):
        return "is a base class"
    if not issubclass(kind, Aggregator | Scalarizer):
        return "is neither an aggregator nor a scalariser"
    if part == "Krum":
        return "picks gradients of workers of which some may lie, not of objectives"
    if part == "Constant":
        return "has weights of its own, where a ray is given"
    if issubclass(kind, Stateful):
        return "keeps a state between steps, which no checkpoint would have"
    if issubclass(kind, Aggregator) and not issubclass(kind, GramianWeightedAggregator):
        return "reads the whole Jacobian, of which a method sees the Gram matrix"
    return None


def _scalarises(part: str) -> bool:
    from torchjd.scalarization import Scalarizer

    return issubclass(class_of(part), Scalarizer)


def _preference(kind: Any) -> str | None:
    """What its argument for a preference is called, if it has one."""
    taken = inspect.signature(kind).parameters
    return next((name for name in PREFERENCES if name in taken), None)


def _torchjd(part: str, package: str) -> Any:
    if importlib.util.find_spec("torchjd") is None:
        raise MissingExtraError("torchjd", "torchjd", f"`torchjd:{part}`")
    return importlib.import_module(f"torchjd.{package}")
