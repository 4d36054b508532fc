"""A training that could begin: everything it needs, before any file is written."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from paretocosmos.config.build import Blueprint
from paretocosmos.config.promises import promised, undeclared_modules
from paretocosmos.config.settings import (
    Configuration,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import list_networks
from paretocosmos.problems import Problem, hash_data
from paretocosmos.runtime.torch_private import Dropout, hooked

__all__ = ["Plan", "check_seed", "networks_for"]


@dataclass(frozen=True)
class Plan:
    """A training that could begin.

    Attributes:
        problem: what is trained on.
        method: how losses are weighed.
        model: the network, or several of them, the fresh weights drawn from the seed.
        configuration: all that decides the result.
        device: where.
        given: the network or backbone the caller handed over, or the backbone's name.
    """

    problem: Problem
    method: Method
    model: nn.Module
    configuration: Configuration
    device: torch.device
    given: str | nn.Module | None = None

    def for_seed(self, seed: int) -> "Plan":
        """The same training with another seed: fresh weights, unless a network was given."""
        check_seed(seed)
        configuration = dataclasses.replace(self.configuration, seed=seed)
        network = networks_for(self.problem, self.method, configuration, self.given)
        return dataclasses.replace(self, configuration=configuration, model=network)

    @property
    def training(self) -> Training:
        """How to optimise and evaluate."""
        return self.configuration.training

    @property
    def seed(self) -> int:
        """Of the weights, the shuffling and the rays."""
        return self.configuration.seed

    @cached_property
    def data_hash(self) -> str:
        """The hash of what is trained on."""
        return hash_data(self.problem)

    @property
    def rebuildable(self) -> bool:
        """Whether the run folder can build the network again from its names."""
        return self.configuration.backbone is not None

    @property
    def stackable(self) -> bool:
        """Whether several networks can train as one stack and each be what it would be alone.

        Not with buffers that a state dict has or frozen weights, which they would share, nor with
        dropout, whose draws they would.
        """
        network = list_networks(self.model)[0]
        random = (nn.RReLU, nn.MultiheadAttention, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
        kinds = (Dropout, nn.RNNBase, *random)
        return (
            self.traceable
            and network.state_dict().keys() <= dict(network.named_parameters()).keys()
            and all(p.requires_grad for p in network.parameters())
            and not any(isinstance(module, kinds) for module in network.modules())
        )

    @property
    def traceable(self) -> bool:
        """Whether everything a step calls is known to decide nothing in Python.

        This package's own is, torch's, and what declares `traceable = True`. Another method,
        objective, network, hook or `prepare` may switch on a step's number or a value, which a
        trace would freeze.
        """
        return self.why_eager is None

    @property
    def why_eager(self) -> str | None:
        """Why a step is not recorded unasked, and how to change that; `None` if it can be."""
        if self.problem.source("train") is not None:
            return (
                "samples are read while it trains, and their shapes may change: a dataset without "
                "random transforms can be read once, with gather=True"
            )
        own = [part for part in self.parts if not promised(part)]
        own += undeclared_modules(self.model)
        if own:
            names = " and ".join(dict.fromkeys(f"`{type(part).__name__}`" for part in own))
            return (
                f"{names} may decide things in Python, which faster engines would freeze: if not, "
                "declare `traceable = True` in the class"
            )
        with_hooks = (m for m in self.model.modules() if hooked(m, backward=True))
        found = next((type(module).__name__ for module in with_hooks), None)
        if found is None:
            return None
        return (
            f"a hook on `{found}` may decide things in Python, which faster engines would freeze: "
            "remove it, or name an engine if it does not"
        )

    @property
    def parts(self) -> list[object]:
        """What a step calls beside the network; a problem if it prepares inputs in its own way."""
        prepare = type(self.problem).prepare.__module__
        prepared = [] if prepare.startswith("paretocosmos.") else [self.problem]
        return [self.method, *self.problem.objectives, *prepared]


def networks_for(
    problem: Problem, method: Method, configuration: Configuration, given: str | nn.Module | None
) -> nn.Module:
    """The networks a method trains, fresh weights drawn from the seed."""
    objectives = len(problem.objectives)
    rays = method.fixed_rays(objectives)
    if rays is None:
        # a method's settings may not fit the number of objectives: draw once, now
        method.sample(objectives, 1, torch.Generator())
    blueprint = Blueprint(
        configuration.conditioning,
        configuration.backbone,
        problem.input_shape,
        problem.outputs,
        objectives,
        None if rays is None else rays.tolist(),
        given if isinstance(given, nn.Module) else None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(configuration.seed)
        return blueprint.build()


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    if type(seed) is not int:  # True is an int too
        raise ConfigurationError(f"`seed` must be a whole number, found {seed!r}")
    if not 0 <= seed < 2**63:
        raise ConfigurationError(f"`seed` must be at least 0 and below 2**63, found {seed}")
