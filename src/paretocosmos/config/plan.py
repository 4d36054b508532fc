"""`Plan`: a training with everything it needs, before any file is written.

Its networks are built from names and settings, with the ray's way in. A traced step repeats its
tensor operations and nothing else, so a branch that Python took while it was traced is taken ever
after: a plan is traceable if everything that a step calls promises, with `traceable = True` in its
class, to decide nothing in Python from values of tensors and to keep no Python state between steps.
"""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.config.settings import Configuration, Training
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Method
from paretocosmos.nn.backbones import Backbone
from paretocosmos.nn.conditioning import Conditioning, PerRayEnsemble, list_networks
from paretocosmos.problems import Problem, hash_data, split_of
from paretocosmos.registry import Spec
from paretocosmos.runtime.device import lacks_memory
from paretocosmos.runtime.torch_private import Dropout, has_hooks

LONGEST = 200  # letters of settings in a sentence
# Packages whose code is known to decide nothing in Python during a step.
FIRST_PARTY = ("paretocosmos", "torch")
# Modules that draw random numbers in their forward. Under vmap, the networks of a stack would share
# these draws or need a generator each, and would not be what each is when trained alone.
RANDOM_MODULES = (
    Dropout,
    nn.RNNBase,
    nn.RReLU,
    nn.MultiheadAttention,
    nn.FractionalMaxPool2d,
    nn.FractionalMaxPool3d,
)


@dataclass(frozen=True)
class Plan:
    """A training, ready to begin.

    Attributes:
        problem: the data and the objectives.
        method: how losses are weighted.
        model: the network, or several of them, with fresh weights drawn from the seed.
        configuration: all that decides the result.
        device: where it runs.
        source: the caller's network or backbone, or the name of the backbone.
    """

    problem: Problem
    method: Method
    model: nn.Module
    configuration: Configuration
    device: torch.device
    source: str | nn.Module | None = None

    def for_seed(self, seed: int) -> "Plan":
        """Return this plan with another seed: fresh weights, except in a network of the caller."""
        check_seed(seed)
        configuration = dataclasses.replace(self.configuration, seed=seed)
        network = build_networks(self.problem, self.method, configuration, self.source)
        return dataclasses.replace(self, configuration=configuration, model=network)

    @property
    def training(self) -> Training:
        """The settings of the optimiser and of evaluation."""
        return self.configuration.training

    @property
    def seed(self) -> int:
        """The seed of the weights, the shuffling and the rays."""
        return self.configuration.seed

    @cached_property
    def data_hash(self) -> str:
        """The hash of the training data."""
        return hash_data(self.problem)

    @property
    def rebuildable(self) -> bool:
        """True if the run folder can build the network again from its names."""
        # a network that the caller passed has no name
        return self.configuration.backbone is not None

    @property
    def stackable(self) -> bool:
        """True if networks that train as one stack are each what they would be alone.

        Stacked networks would share buffers of the state dict, frozen weights and random draws.
        """
        network = list_networks(self.model)[0]
        return (
            self.traceable
            and network.state_dict().keys() <= dict(network.named_parameters()).keys()
            and all(p.requires_grad for p in network.parameters())
            and not any(isinstance(module, RANDOM_MODULES) for module in network.modules())
        )

    @property
    def traceable(self) -> bool:
        """True if everything a step calls promises to decide nothing in Python.

        Code of this package and of torch does, and classes with `traceable = True`. Any other
        method, objective, network, hook or `prepare` may branch on a step's number or on a value,
        and a trace would freeze the branch.
        """
        return self.eager_reason is None

    @property
    def eager_reason(self) -> str | None:
        """The reason why steps run eagerly unless an engine is named; `None` if there is none."""
        if self.problem.source("train") is not None:
            return (
                "samples are read while it trains, and their shapes may change: a dataset without "
                "random transforms can be read once, with gather=True"
            )
        untraceable = [thing for thing in self.step_components if not keeps_promise(thing)]
        untraceable += find_untraceable(self.model)
        if untraceable:
            # each class or function once, in order
            functions = [getattr(thing, "function", type(thing)) for thing in untraceable]
            names = " and ".join(
                dict.fromkeys(f"`{getattr(f, '__name__', type(f).__name__)}`" for f in functions)
            )
            return (
                f"{names} may branch in Python on values, which faster engines would freeze: if "
                "not, declare `traceable = True` in the class, or on the function"
            )
        for module in self.model.modules():
            if has_hooks(module, backward=True):
                return (
                    f"a hook on `{type(module).__name__}` may branch in Python on values, which "
                    "faster engines would freeze: remove it, or name an engine if it does not"
                )
        return None

    @property
    def step_components(self) -> list[object]:
        """The objects that a step calls, apart from the network."""
        # a problem counts only if it overrides `prepare`, the one method that a step calls
        overrides = not type(self.problem).prepare.__module__.startswith("paretocosmos.")
        return [self.method, *self.problem.objectives, *([self.problem] if overrides else [])]


# ---------------------------------------------------------------- networks


def build_networks(
    problem: Problem, method: Method, configuration: Configuration, source: str | nn.Module | None
) -> nn.Module:
    """Build the networks a method trains, with fresh weights drawn from the seed."""
    objectives = len(problem.objectives)
    rays = method.fixed_rays(objectives)
    if rays is None:
        # drawing a ray raises now, not in the first step, if the settings do not fit the objectives
        method.sample(objectives, 1, torch.Generator())
    spec = NetworkSpec(
        conditioning=configuration.conditioning,
        backbone=configuration.backbone,
        input_shape=problem.input_shape,
        outputs=problem.outputs,
        objectives=objectives,
        rays=None if rays is None else rays.tolist(),
        module=source if isinstance(source, nn.Module) else None,
    )
    # on the CPU alone, where weights are drawn, so that they are the same for every device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(configuration.seed)
        return spec.build()


def check_seed(seed: int) -> None:
    """Validate the seed."""
    if type(seed) is not int:  # True is an int too
        raise ConfigurationError(f"`seed` must be a whole number, found {seed!r}")
    if not 0 <= seed < 2**63:  # what torch's generators accept
        raise ConfigurationError(f"`seed` must be at least 0 and below 2**63, found {seed}")


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """The description of a run's networks, by names or by a module that the caller passed.

    Attributes:
        conditioning: how the ray enters; `None` where `module` is the whole network.
        backbone: the backbone by name; `None` where `module` is it, or the whole network.
        input_shape: the shape of one sample.
        outputs: numbers per sample, or numbers per head.
        objectives: entries in a ray, J.
        rays: those with a network each; `None` if one serves all.
        module: the caller's network or backbone; it is copied.
        blank: set where weights are loaded afterwards: a backbone then need not look for any.
    """

    conditioning: Spec | None
    backbone: Spec | None
    input_shape: Sequence[int]
    outputs: int | Mapping[str, int]
    objectives: int
    rays: Sequence[Sequence[float]] | None
    module: nn.Module | None = None
    blank: bool = False

    def build(self) -> nn.Module:
        """Build the network, or one per ray in an ensemble, with fresh weights if it has a name."""
        spec = self.backbone
        if self.blank and spec is not None:
            backbone_class: Any = registry.find("backbones", spec.name)
            spec = Spec(spec.name, {**spec.settings, **getattr(backbone_class, "blank", {})})
        network = self._build_one(spec)
        if self.rays is None:
            return network
        # The first network may have read a file or a table to settle an open setting: once is
        # enough, and all networks of an ensemble are then alike.
        spec = resolve_from_network(spec, network)
        rest = [self._build_one(spec) for _ in self.rays[1:]]
        return PerRayEnsemble([network, *rest], torch.tensor(self.rays))

    def _build_one(self, spec: Spec | None) -> nn.Module:
        backbone = self.module
        if spec is not None:
            outputs = self.outputs
            if self.conditioning is not None:
                # a conditioning may need more outputs of the backbone than the problem has
                conditioning: Any = registry.find("conditioning", self.conditioning.name)
                if (outputs_for := getattr(conditioning, "outputs_for", None)) is not None:
                    outputs = outputs_for(outputs, self.conditioning.settings)
            shapes = {"input_shape": tuple(self.input_shape), "outputs": outputs}
            backbone = build_checked(nn.Module, spec, "backbones", **shapes)
        assert backbone is not None
        if self.conditioning is None:
            # a copy: training must not change the caller's network, nor one seed another's
            network = copy.deepcopy(backbone)
            if isinstance(network, Conditioning):
                # calibrated ends belong to a training: found anew, or loaded with the weights
                network.ends = None
            return network
        conditioned: Conditioning = build_checked(
            Conditioning,
            self.conditioning,
            "conditioning",
            backbone=backbone,
            objectives=self.objectives,
        )
        return conditioned


def build_checked(base: type, spec: Spec, kind: str, **fixed: Any) -> Any:
    """Build what a spec names and check its class, which for third-party code is not certain."""
    try:
        built = registry.build(kind, spec, **fixed)
    except (MemoryError, OverflowError, RuntimeError) as error:
        # a size beyond 64 bits overflows before any memory is asked for
        too_large = isinstance(error, OverflowError) or "overflowed" in str(error)
        if not too_large and not lacks_memory(error):
            raise
        settings = ", ".join(f"{k}={v}" for k, v in spec.settings.items() if v is not None)
        raise ConfigurationError(
            f"`{spec.name}` needs more memory than is available with "
            f"{settings[:LONGEST] or 'these inputs'}: make it smaller"
        ) from error
    if not isinstance(built, base):
        raise ConfigurationError(
            f"`{spec.name}` must give a {base.__name__}, found {type(built).__name__}"
        )
    return built


def resolve_from_network(spec: Spec | None, network: nn.Module) -> Spec | None:
    """Fill the open settings of a backbone's spec with the values a network was built with."""
    backbone = next((module for module in network.modules() if isinstance(module, Backbone)), None)
    if spec is None or backbone is None:
        return spec
    settings = {key: backbone.resolved.get(key, value) for key, value in spec.settings.items()}
    return Spec(spec.name, settings)


def resolve_from_data(spec: Spec | None, problem: Problem) -> Spec | None:
    """Fill the open settings of a backbone's spec with values for the rows of a problem."""
    if spec is None or None not in spec.settings.values():
        return spec
    backbone_class: Any = registry.find("backbones", spec.name)
    # a backbone may also be a function, which has no base classes
    lineage: tuple[type, ...] = getattr(backbone_class, "__mro__", ())
    if not any("fitted" in vars(base) for base in lineage if base is not Backbone):
        return spec  # do not read the rows for a backbone that would not look at them
    values = backbone_class.fitted(split_of(problem, "train"), problem.outputs)
    settings = {key: values.get(key) if v is None else v for key, v in spec.settings.items()}
    return Spec(spec.name, settings)


# ---------------------------------------------------------------- traceability


def get_declaration(thing: object, promise: str = "traceable") -> bool | None:
    """Return the value that an object or its own class declares; `None` if neither does.

    A declaration is not inherited: a subclass has code of its own, for which nobody has promised
    anything yet.

    >>> class Declares:
    ...     traceable = True
    >>> class Subclass(Declares): ...
    >>> get_declaration(Declares()), get_declaration(Subclass())
    (True, None)
    """
    # vars() rather than getattr(), which would also look in base classes
    value = getattr(thing, "__dict__", {}).get(promise, vars(type(thing)).get(promise))
    return None if value is None else bool(value)


def keeps_promise(thing: object, promise: str = "traceable") -> bool:
    """Return the declaration of an object; without one, True for code of this package or torch.

    This package's classes are recognised by their module. They could declare it as others do, but
    so would every private layer have to, and one forgotten line would make runs slow without
    failing a test; the contract tests hold the files of a subpackage to the promise instead.
    """
    declaration = get_declaration(thing, promise)
    return _is_first_party(thing) if declaration is None else declaration


def find_untraceable(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules of a network that do not promise to be traceable, outermost first.

    A declaration speaks for all modules inside.
    """
    if not keeps_promise(module):
        yield module
    elif get_declaration(module) is None:  # torch's containers may hold modules of others
        for child in module.children():
            yield from find_untraceable(child)


def find_third_party(thing: object) -> Iterator[object]:
    """Yield the objects of third-party classes, whose promise the tracing engine has to test.

    These are the object itself, what it has `wrapped`, an objective's `function`, and the modules
    of a network; modules inside a network of this package that declares something are covered by
    its declaration.
    """
    attributes = getattr(thing, "__dict__", {})
    inner = attributes.get("wrapped", attributes.get("function"))
    if inner is not None:
        yield from find_third_party(inner)
    if not _is_first_party(thing):
        yield thing
    elif get_declaration(thing):
        return
    if isinstance(thing, nn.Module):
        for child in thing.children():
            yield from find_third_party(child)


def _is_first_party(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] in FIRST_PARTY
