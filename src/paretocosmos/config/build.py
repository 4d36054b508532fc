"""Networks built from names and settings, with the ray's way in."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Backbone
from paretocosmos.nn.conditioning import Conditioning, PerRayEnsemble
from paretocosmos.problems import Problem, split_of
from paretocosmos.registry import Spec
from paretocosmos.runtime.device import lacks_memory

__all__ = ["NetworkSpec", "build_checked", "resolve_from_data", "resolve_from_network"]

LONGEST = 200  # letters of settings in a sentence


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

    def _compute_backbone_outputs(self) -> int | Mapping[str, int]:
        """Return the outputs of the backbone: a conditioning may need more than the problem."""
        if self.conditioning is None:
            return self.outputs
        conditioning: Any = registry.find("conditioning", self.conditioning.name)
        outputs_for = getattr(conditioning, "outputs_for", None)
        if outputs_for is None:
            return self.outputs
        outputs: int | Mapping[str, int] = outputs_for(self.outputs, self.conditioning.settings)
        return outputs

    def _build_one(self, spec: Spec | None) -> nn.Module:
        backbone = self.module
        if spec is not None:
            shapes = {
                "input_shape": tuple(self.input_shape),
                "outputs": self._compute_backbone_outputs(),
            }
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
