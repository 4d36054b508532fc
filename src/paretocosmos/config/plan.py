"""`Plan`: a training with everything it needs, before any file is written."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from paretocosmos.config.build import NetworkSpec
from paretocosmos.config.settings import Configuration
from paretocosmos.config.traceability import find_untraceable, keeps_promise
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.problems import Problem, hash_data
from paretocosmos.runtime.torch_private import Dropout, has_hooks

__all__ = ["Plan", "build_networks", "check_seed"]

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
            # each class once, in order
            classes = dict.fromkeys(f"`{type(thing).__name__}`" for thing in untraceable)
            names = " and ".join(classes)
            return (
                f"{names} may decide things in Python, which faster engines would freeze: if not, "
                "declare `traceable = True` in the class"
            )
        for module in self.model.modules():
            if has_hooks(module, backward=True):
                return (
                    f"a hook on `{type(module).__name__}` may decide things in Python, which "
                    "faster engines would freeze: remove it, or name an engine if it does not"
                )
        return None

    @property
    def step_components(self) -> list[object]:
        """The objects that a step calls, apart from the network."""
        # a problem counts only if it overrides `prepare`, the one method that a step calls
        overrides = not type(self.problem).prepare.__module__.startswith("paretocosmos.")
        return [self.method, *self.problem.objectives, *([self.problem] if overrides else [])]


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
