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
from paretocosmos.methods.base import DirichletRays, Gram, Method, State, expand_weights

# TorchJD's defaults (`norm_eps`, `reg_eps`): a Gram matrix below the first counts as 0; the second,
# on the diagonal, makes it positive definite.
NORM_EPS, REG_EPS = 1e-4, 1e-4
# Rounding errors below this neither enter nor leave the active set.
TOLERANCE = 1e-12

Numbers = NDArray[np.float64]


def project_onto_dual_cone(vectors: Tensor, gram: Tensor) -> Tensor:
    r"""Project combinations of gradients onto the dual cone, where no step raises a loss.

    .. math:: \arg\min_v v^\top G v \quad\text{subject to}\quad v \ge u

    for every row u (Quinton and Rey 2024, proposition 1). Passed to TorchJD as its projector, in
    place of one that needs a QP solver as another dependency.

    Args:
        vectors: the rows u, ``[..., J]``.
        gram: G, the Gram matrix of the gradients ``[J, J]``.

    >>> conflict = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])
    >>> project_onto_dual_cone(torch.tensor([[1.0, 0.0]]), conflict).round(decimals=2)
    tensor([[1.0000, 0.5000]])
    """
    matrix = gram.detach().cpu().double().numpy()
    trace = float(np.trace(matrix))
    # normalised, so that the ridge is relative to the gradients' size
    matrix = matrix / trace if trace > NORM_EPS**2 else np.zeros_like(matrix)
    matrix = matrix + REG_EPS * np.eye(len(matrix))
    rows = vectors.detach().cpu().double().numpy().reshape(-1, len(matrix))
    # v = u + s with s >= 0, which turns the problem into a non-negative one
    projected = np.stack([row + _solve_nonnegative_quadratic(matrix, matrix @ row) for row in rows])
    return torch.from_numpy(projected).to(gram).reshape(vectors.shape)


def _solve_nonnegative_quadratic(matrix: Numbers, linear: Numbers) -> Numbers:
    """Minimise s·Gs / 2 + s·p over s >= 0 with the active-set method of Lawson and Hanson 1974."""
    solution = np.zeros_like(linear)
    free = np.zeros(len(linear), dtype=bool)  # the passive set P, where s may be above 0
    for _ in range(3 * len(linear)):  # their bound on the iterations of NNLS
        # the negative gradient: how much a row would gain by leaving 0
        gain = np.where(free, -np.inf, -(matrix @ solution + linear))
        if gain.max() <= TOLERANCE:
            break
        free[gain.argmax()] = True
        while True:
            candidate = np.zeros_like(solution)
            candidate[free] = np.linalg.solve(matrix[np.ix_(free, free)], -linear[free])
            if candidate[free].min(initial=np.inf) > 0:
                break
            # go as far as s >= 0 allows, and fix at 0 whatever reached it
            negative = free & (candidate <= 0)
            length = solution[negative] - candidate[negative] + TOLERANCE
            step = (solution[negative] / length).min()
            solution = solution + step * (candidate - solution)
            free &= solution > TOLERANCE
        solution = candidate
    return solution


# TorchJD's names of arguments that are a preference: they get the ray.
PREFERENCES = ("pref_vector", "weights")
# TorchJD's arguments that are tensors or objects, and so no settings.
OBJECTS = ("projector", "reference")


@dataclass(frozen=True, kw_only=True)
class TorchJd(DirichletRays):
    r"""The weights of one of TorchJD's aggregators or scalarizers, for one conditioned network.

    A class that takes a preference gets the ray: `UPGrad`, `DualProj`, `AlignedMTL`, `COSMOS`,
    `PBI`, `STCH`. The weights w of any other are multiplied by it:

    .. math:: J \, r_j \, w_j

    so that `Mean` is `linear`. An aggregator computes its weights from the Gram matrix of the
    gradients over all parameters, a scalarizer from the losses.

    Args:
        part: the name of the class.
        options: its arguments.
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.
    """

    traceable: ClassVar[bool] = False  # TorchJD branches in Python and moves tensors to the CPU

    part: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def init(self, objectives: int) -> State:
        return {"steps": torch.zeros((), dtype=torch.float64)}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        count = losses.shape[-1]
        rows = losses.detach().reshape(-1, count)
        from torchjd.scalarization import Scalarizer

        scalarizes = issubclass(get_class(self.part), Scalarizer)
        grams = None if scalarizes else gram().reshape(-1, count, count)
        weights = []
        # Some classes draw random numbers. The seed is the number of the step, so that a resumed
        # training draws what an uninterrupted one would.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(state["steps"].max()))
            for index, ray in enumerate(rays.reshape(-1, count).expand(len(rows), count)):
                matrix = None if grams is None else grams[index]
                weights.append(self._compute_ray_weights(rows[index], ray.to(rows), matrix))
        after = {"steps": state["steps"] + 1}
        return expand_weights(torch.stack(weights).reshape(losses.shape), losses), after

    def _compute_ray_weights(self, losses: Tensor, ray: Tensor, gram: Tensor | None) -> Tensor:
        """Compute the weights ``[J]`` of one ray ``[J]``."""
        torchjd_class = get_class(self.part)
        parameters = inspect.signature(torchjd_class).parameters
        preference = next((name for name in PREFERENCES if name in parameters), None)
        arguments: dict[str, Any] = {} if preference is None else {preference: ray}
        # TorchJD's own projector needs a QP solver, another dependency
        if "projector" in parameters:
            arguments["projector"] = project_onto_dual_cone
        weighting = torchjd_class(**self.options, **arguments)
        if gram is None:
            # a scalarizer returns one number: its gradient by the losses is their weights
            with torch.enable_grad():
                leaf = losses.clone().requires_grad_()
                (weights,) = torch.autograd.grad(weighting(leaf), leaf)
        else:
            weights = weighting.gramian_weighting(gram)
        return weights if preference is not None else len(ray) * ray * weights


def adapt_class(name: str) -> Callable[..., Method]:
    """Return a function that builds the method of a TorchJD class, whose arguments are settings.

    If an argument of TorchJD has the name of one of our settings, the class's name is put before
    it: ``fairgrad_alpha``.
    """
    parameters = inspect.signature(get_class(name)).parameters
    ray_settings = {"alpha": DirichletRays.alpha, "stratified": DirichletRays.stratified}
    arguments = {  # the name of the setting -> TorchJD's name
        f"{name.lower()}_{argument}" if argument in ray_settings else argument: argument
        for argument in parameters
        if argument not in (*PREFERENCES, *OBJECTS)
    }
    empty = inspect.Parameter.empty

    def build(**settings: Any) -> Method:
        for setting, argument in arguments.items():
            if parameters[argument].default is empty and setting not in settings:
                raise ConfigurationError(
                    f"`torchjd:{name}` needs `{setting}`, which has no default: pass it in "
                    "`settings`"
                )
        options = {arguments[key]: settings.pop(key) for key in arguments if key in settings}
        method = TorchJd(part=name, options=options, **settings)
        # TorchJD validates its arguments when it is called: raise now rather than in the first step
        ray = torch.full((2,), 0.5)
        try:
            method.weights(torch.ones(2), ray, lambda: torch.eye(2), method.init(2))
        except (ImportError, TypeError, ValueError) as error:
            raise ConfigurationError(f"`torchjd:{name}` cannot be used: {error}") from error
        return method

    defaults = ray_settings | {key: parameters[arguments[key]].default for key in arguments}
    # the registry reads settings and their types from the signature, as it does for a class
    build.__doc__ = f"TorchJD's {name}, with the ray as the preference."
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default)
            for key, default in defaults.items()
        ]
    )
    hints = {field.name: field.type for field in dataclasses.fields(DirichletRays)}
    build.__annotations__ = {
        **{key: hints[key] for key in ray_settings},
        **dict.fromkeys(arguments, float | str),
    }
    return build


def get_class(name: str) -> Any:
    """Return TorchJD's class of that name if it can be a method here."""
    for package in ("scalarization", "aggregation"):
        candidate = getattr(_import_torchjd(name, package), name, None)
        if isinstance(candidate, type):
            obstacle = _find_obstacle(candidate, name)
            if obstacle is None:
                return candidate
            raise ConfigurationError(
                f"`torchjd:{name}` cannot be a method here, because it {obstacle}: use one of "
                f"{', '.join(list_usable_classes())}"
            )
    raise unknown("part of torchjd", name, list_usable_classes())


def list_usable_classes() -> list[str]:
    """List the names of TorchJD's classes that can be methods here."""
    # scalarizers last: where both packages have a name, these win, since they need no Gram matrix
    packages = [_import_torchjd("methods", name) for name in ("aggregation", "scalarization")]
    classes = {name: getattr(package, name) for package in packages for name in package.__all__}
    return sorted(name for name, cls in classes.items() if _find_obstacle(cls, name) is None)


def _find_obstacle(cls: Any, name: str) -> str | None:
    """Return the reason why a class cannot be a method, or `None`."""
    from torchjd import Stateful
    from torchjd.aggregation import Aggregator, GramianWeightedAggregator
    from torchjd.scalarization import Scalarizer

    if cls in (Aggregator, GramianWeightedAggregator, Scalarizer) or inspect.isabstract(cls):
        return "is a base class"
    if not issubclass(cls, Aggregator | Scalarizer):
        return "is neither an aggregator nor a scalarizer"
    if name == "Krum":
        return "picks gradients of workers, some of which may lie, not of objectives"
    if name == "Constant":
        return "has fixed weights, which would ignore the ray"
    if issubclass(cls, Stateful):
        return "keeps a state between steps, which no checkpoint would have"
    if issubclass(cls, Aggregator) and not issubclass(cls, GramianWeightedAggregator):
        return "needs the Jacobian, and a method sees only its Gram matrix"
    return None


def _import_torchjd(name: str, package: str) -> Any:
    # an import that fails would not say which extra to install
    if importlib.util.find_spec("torchjd") is None:
        raise MissingExtraError("torchjd", "torchjd", f"`torchjd:{name}`")
    return importlib.import_module(f"torchjd.{package}")
