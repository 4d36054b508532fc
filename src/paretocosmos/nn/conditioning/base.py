"""The contract of a conditioning, and networks that do not read the ray."""

import copy
import functools
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.sample_layout import (
    can_probe,
    check_group_count,
    join_outputs,
    stack_outputs,
)
from paretocosmos.types import Inputs, Outputs, Targets, first, map_tensors

# Names of the parameters that torch's old `weight_norm` and `spectral_norm` compute a weight from.
SOURCE_ENDINGS = ("_g", "_orig")


def find_heads(network: nn.Module) -> tuple[str, ...]:
    """Return the modules that serve single objectives, by dotted name, if a network declares them.

    Its attribute `heads` holds their names, or is the module itself. Anything else of that name,
    such as a number of attention heads, is ignored.
    """
    heads = getattr(network, "heads", ())
    if isinstance(heads, nn.Module):
        return ("heads",)
    names = (heads,) if isinstance(heads, str) else heads
    are_names = isinstance(names, tuple | list) and all(isinstance(n, str) for n in names)
    return tuple(names) if are_names else ()


def is_inside(name: str, modules: tuple[str, ...]) -> bool:
    """Return True if a module or parameter is, or belongs to, one of these, by dotted names."""
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


@dataclass(frozen=True)
class TrainingTask:
    """The network and objectives that training optimises, if not a network's own outputs.

    Attributes:
        network: ``forward(inputs, ray) -> outputs``; shares its parameters, and their names, with
            the whole network.
        objectives: what reads these outputs.
        fit: called after an epoch with outputs and targets of training rows, sets the numbers
            through which the ray acts; with ``quick=True`` while training goes on. `None` if the
            ray enters the network; else training sees no ray.
        at_rays: with `fit`, turns these outputs into those of the whole network at N rays.
        cross_fit: with `fit`, takes outputs and targets of rows and returns a function of rays: the
            outputs of the whole network for these rows, each fitted without the row.
        held_out: whether the outputs of training rows are as good as those of new ones.
    """

    network: nn.Module
    objectives: tuple[Any, ...]
    fit: Callable[..., None] | None = None
    at_rays: Callable[[Outputs, Tensor], Outputs] | None = None
    cross_fit: Callable[[Outputs, Targets], Callable[[Tensor], Outputs]] | None = None
    held_out: bool = False


def training_task(model: nn.Module, objectives: Sequence[Any]) -> TrainingTask:
    """Return `Conditioning.training_task`, or the usual task for any other network."""
    if isinstance(model, Conditioning):
        return model.training_task(objectives)
    return TrainingTask(model, tuple(objectives))


class Conditioning(nn.Module, ABC):
    """A network that also takes a ray: ``forward(inputs, ray) -> outputs``.

    Args:
        backbone: the network; a copy is conditioned, the one handed over is left alone.
        objectives: entries in a ray, J.

    >>> from paretocosmos import condition
    >>> model = condition(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), objectives=2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.3, 0.7])).shape
    torch.Size([4, 1])
    """

    traceable: ClassVar[bool] = False
    """`True` promises that its code, and that of all modules inside, decides nothing in Python from
    values of tensors and keeps no Python state between steps, so that fast engines and stacks of
    seeds may run it; a subclass declares it anew."""

    settings: Mapping[str, Any]
    """The keyword arguments it was built with, for whoever saves it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        build = vars(cls).get("__init__")
        if build is None:
            return

        @functools.wraps(build)
        def build_and_record(self: Conditioning, *args: Any, **named: Any) -> None:
            arguments = ("backbone", "objectives")
            settings = {name: value for name, value in named.items() if name not in arguments}
            # a subclass's constructor comes first and calls that of its base with other settings
            self.__dict__.setdefault("settings", settings)
            build(self, *args, **named)

        cls.__init__ = build_and_record  # type: ignore[method-assign]

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__()
        # empty unless a subclass's constructor has recorded its own (`__init_subclass__`)
        self.__dict__.setdefault("settings", {})
        self.ends: Tensor | None  # a buffer, so that it is saved and moves with the weights
        self.register_buffer("ends", None)
        try:  # numpy's integers too
            self.objectives = operator.index(objectives)
        except TypeError as error:
            raise ConfigurationError(
                f"`objectives` must be a whole number, found {objectives!r}"
            ) from error
        if self.objectives < 1:
            raise ConfigurationError(f"`objectives` must be at least 1, found {objectives}")
        lazy = [name for name, p in backbone.named_parameters() if is_lazy(p)]
        if lazy:
            raise ConfigurationError(
                f"a network must have its weights before it is conditioned, found `{lazy[0]}` of a "
                "lazy layer without a shape: call the network on a batch once"
            )
        parameters = inspect.signature(backbone.forward).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self._keywords = None if takes_any else frozenset(parameters)
        # a language model of `transformers`, or of PEFT, may keep keys and values between calls
        base: Any = getattr(backbone, "get_base_model", lambda: backbone)()
        self.has_cache = "use_cache" in inspect.signature(base.forward).parameters
        # weights that a hook computes anew at each call, as the old `weight_norm` does, carry
        # gradients, and such a tensor cannot be copied otherwise
        computed = {
            id(weight): weight.detach().clone()
            for module in backbone.modules()
            for name, weight in vars(module).items()
            if isinstance(weight, Tensor)
            if any(hasattr(module, name + ending) for ending in SOURCE_ENDINGS)
        }
        try:
            self.backbone = copy.deepcopy(backbone, computed)
        except (RuntimeError, TypeError) as error:
            raise ConfigurationError(
                f"a network is copied before it is conditioned, which {type(backbone).__name__} "
                f"does not allow ({error}): remove what earlier calls stored in it"
            ) from error

    @classmethod
    def outputs_for(
        cls, outputs: int | Mapping[str, int], settings: Mapping[str, Any]
    ) -> int | Mapping[str, int]:
        """Return the outputs that the backbone needs for a problem's; the same by default."""
        del settings
        return outputs

    @property
    def disclosure(self) -> str:
        """A sentence for model cards where groups are compared; `{columns}` are what it reads."""
        return ""

    @property
    def heads(self) -> tuple[str, ...]:
        """The modules that serve single objectives, by dotted name, where the backbone says so."""
        return tuple(f"backbone.{name}" for name in find_heads(self.backbone))

    @property
    def includes_ends(self) -> bool:
        """True if the ends of the simplex are worth asking for, once the network is trained."""
        return self.ends is not None

    @property
    def ray_parameters(self) -> tuple[str, ...]:
        """The parameters that read the ray, by dotted name: with all of them 0 it changes nothing.

        The others are the backbone's own. By default, all that the conditioning has beside it; one
        that puts parameters into the backbone names those too.
        """
        names = (name for name, _ in self.named_parameters())
        return tuple(name for name in names if not is_inside(name, ("backbone",)))

    @abstractmethod
    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        """Map inputs ``[B, ...]`` and rays ``[J]``, ``[G, J]`` or ``[B, J]`` to outputs.

        With G rays the batch is G groups of B/G neighbouring samples, one ray each.
        """

    @abstractmethod
    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        """Map inputs ``[B, ...]`` under every one of N rays ``[N, J]`` to outputs ``[N, B, ...]``.

        What does not depend on the ray is computed once.
        """

    def at(self, ray: Tensor | Sequence[float], *, merge: bool = False) -> nn.Module:
        """Return the network at one ray: an ordinary module that is called without a ray.

        It shares its weights with this one. Methods and attributes of the network, such as
        `generate` and `config`, are there too.

        Args:
            ray: one ray, ``[J]``.
            merge: fold what the ray amounts to into a copy of the network's own weights, and give
                that copy, of the network's own class; refused where that would not be exact.

        >>> from paretocosmos.nn.conditioning.low_rank import Lora
        >>> model = Lora(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
        >>> model.at([0.7, 0.3])(torch.zeros(4, 3)).shape
        torch.Size([4, 1])
        >>> type(model.at([0.7, 0.3], merge=True)).__name__
        'Sequential'
        """
        # imported late: that module imports all conditionings, which import this one
        from paretocosmos.nn.conditioning.fixed_ray import fix_ray

        return fix_ray(self, ray, merge=merge)

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        """Call a function of the backbone while the backbone is at a ray, ``[J]``."""
        raise ConfigurationError(
            f"{type(self).__name__} works on the outputs of the network, so its other methods "
            "cannot be called at a ray: define `with_ray`"
        )

    def _call_method(
        self, name: str, ray: Tensor, args: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:
        """Call a method of the backbone at a ray, such as `generate`."""
        return self.with_ray(ray, lambda network: getattr(network, name)(*args, **named))

    def training_task(self, objectives: Sequence[Any]) -> TrainingTask:
        """Return what is optimised: by default the objectives of this network's own outputs."""
        return TrainingTask(self, tuple(objectives))

    def call(self, inputs: Inputs) -> Outputs:
        """Call the backbone; a mapping is passed on as keywords, or as a whole."""
        args, named = self._arguments(inputs)
        outputs: Outputs = self.backbone(*args, **named)
        return outputs

    def _arguments(self, inputs: Inputs) -> tuple[tuple[Inputs, ...], dict[str, Any]]:
        """Return the arguments with which to call the backbone.

        A mapping becomes keywords. It stays one argument where `forward` has no parameters of
        these names, as in ``forward(batch: dict)``.
        """
        # each call sees whole inputs: a cache would only take memory, and vmap cannot return one
        defaults: dict[str, Any] = {"use_cache": False} if self.has_cache else {}
        if not isinstance(inputs, Mapping):
            return (inputs,), defaults
        names = self._keywords
        as_one = names is not None and inputs and not any(name in names for name in inputs)
        return ((inputs,), defaults) if as_one else ((), defaults | dict(inputs))

    def rays_for(self, ray: Tensor) -> Tensor:
        """Check a ray's last axis and bring it to ``[G, J]``, between the useful ends."""
        if not isinstance(ray, Tensor):
            raise ConfigurationError(
                f"a ray must be a tensor, found {type(ray).__name__}: wrap it in torch.tensor(...)"
            )
        if ray.ndim not in (1, 2) or ray.shape[-1] != self.objectives:
            raise ConfigurationError(
                f"a ray must have shape [{self.objectives}], or [G, {self.objectives}] with one "
                f"ray per group of samples; found {tuple(ray.shape)}"
            )
        # reading numbers from a GPU would hold up every step
        readable = ray.device.type == "cpu" and can_probe([ray])
        if readable and not bool((allowed := (ray >= 0) & ray.isfinite()).all()):
            bad_rays = ray[~allowed.all(dim=-1)].reshape(-1, self.objectives)
            raise ConfigurationError(
                f"a ray must have finite entries >= 0, found {bad_rays[0].tolist()}: use weights "
                f"that sum to 1, such as {[round(1 / self.objectives, 3)] * self.objectives}"
            )
        rays = ray.unsqueeze(0) if ray.ndim == 1 else ray
        return rays if self.ends is None else rays @ self.ends.to(rays)

    def calibrate(self, ends: Tensor) -> None:
        """Map the simplex onto the rays between these ends, ``[J, J]``, one for each objective."""
        self.ends = ends.to(next(self.parameters()).device)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        # a trained network is calibrated; a new one has `None`, which torch would not load into
        if f"{prefix}ends" in state_dict and self.ends is None:
            self.calibrate(torch.empty(self.objectives, self.objectives))
        super()._load_from_state_dict(state_dict, prefix, *args)


class PerRayEnsemble(Conditioning):
    """Networks trained for one ray each; a ray is answered by the network of the nearest one.

    Args:
        networks: K of them, ``forward(inputs, ray) -> outputs``; copied.
        rays: ``[K, J]``.

    >>> networks = [Unconditioned(nn.Linear(3, 1), 2) for _ in range(2)]
    >>> PerRayEnsemble(networks, torch.eye(2))(torch.zeros(4, 3), torch.tensor([0.3, 0.7])).shape
    torch.Size([4, 1])
    """

    rays: Tensor

    def __init__(self, networks: Sequence[nn.Module], rays: Tensor) -> None:
        if len(networks) != len(rays):
            raise ConfigurationError(
                f"there must be one network per ray, found {len(networks)} networks and "
                f"{len(rays)} rays"
            )
        super().__init__(nn.ModuleList(), rays.shape[-1])
        # one by one: copied together, a network that comes twice would stay one
        self.backbone = nn.ModuleList(copy.deepcopy(network) for network in networks)
        self.register_buffer("rays", rays.clone())

    @property
    def ray_parameters(self) -> tuple[str, ...]:
        return tuple(
            f"backbone.{index}.{name}"
            for index, network in self.backbone.named_children()
            if isinstance(network, Conditioning)
            for name in network.ray_parameters
        )

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        rays = self.rays_for(ray)
        samples = len(first(inputs))
        check_group_count(samples, len(rays))
        share = samples // len(rays)
        outputs = [
            self._call_nearest(
                map_tensors(lambda x, i=i: x[i * share : (i + 1) * share], inputs), r
            )
            for i, r in enumerate(rays)
        ]
        return join_outputs(outputs)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return stack_outputs(self._call_nearest(inputs, ray) for ray in self.rays_for(rays))

    def nearest(self, ray: Tensor) -> tuple[nn.Module, Tensor]:
        """Return the network that answers a ray ``[J]``, and the ray that it was trained for."""
        nearest = F.cosine_similarity(self.rays, ray.to(self.rays).unsqueeze(0)).argmax()
        network: nn.Module = self.backbone[int(nearest)]  # type: ignore[index]
        return network, self.rays[nearest]

    def _call_nearest(self, inputs: Inputs, ray: Tensor) -> Outputs:
        network, its_ray = self.nearest(ray)
        outputs: Outputs = network(inputs, its_ray)
        return outputs

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, networks={len(self.rays)}"


def list_networks(model: nn.Module) -> list[nn.Module]:
    """Return the networks of a `PerRayEnsemble`, or a list of the model alone."""
    return list(model.backbone.children()) if isinstance(model, PerRayEnsemble) else [model]


class Unconditioned(Conditioning):
    """The network as it is, which ignores the ray: one point instead of a front, a baseline.

    >>> model = Unconditioned(torch.nn.Linear(3, 1), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        self.rays_for(ray)  # only to refuse a wrong one
        return self.call(inputs)

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        self.rays_for(ray)
        return function(self.backbone)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        count = len(self.rays_for(rays))
        # a view: the same numbers for all rays take no more memory than for one
        expanded: Outputs = map_tensors(
            lambda out: out.expand(count, *out.shape), self.call(inputs), keep_classes=True
        )
        return expanded
