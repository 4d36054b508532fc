"""The networks a method trains: which conditioning goes with it, and how they are built."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.config.settings import spec_name
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Method
from paretocosmos.nn.backbones import Backbone
from paretocosmos.nn.conditioning import Conditioning, PerRayEnsemble
from paretocosmos.problems import Problem, split_of
from paretocosmos.registry import Spec
from paretocosmos.runtime.device import lacks_memory

__all__ = ["Blueprint", "as_built", "build_checked", "check_pair", "fitted", "for_single_rays"]


LONGEST = 200  # letters of settings in a sentence


@dataclass(frozen=True)
class Blueprint:
    """What a run's networks are built from, by names or from what the caller handed over.

    Attributes:
        conditioning: how the ray enters; `None` where `given` is the whole network.
        backbone: the backbone by name; `None` where `given` is it, or the whole network.
        input_shape: the shape of one sample.
        outputs: how many numbers a network gives per sample, or how many per head.
        objectives: entries in a ray, J.
        rays: those with a network each; `None` if one serves all.
        given: a network or a backbone of one's own; it is copied.
        blank: whether weights are loaded afterwards, so that a backbone need not look for any.
    """

    conditioning: Spec | None
    backbone: Spec | None
    input_shape: Sequence[int]
    outputs: int | Mapping[str, int]
    objectives: int
    rays: Sequence[Sequence[float]] | None
    given: nn.Module | None = None
    blank: bool = False

    def build(self) -> nn.Module:
        """The network, or the networks as one model, with fresh weights where they are by name."""
        spec = self._blank() if self.blank else self.backbone
        first = self._one(spec)
        if self.rays is None:
            return first
        spec = as_built(spec, first)  # what it had to look for need not be looked for again
        others = [self._one(spec) for _ in self.rays[1:]]
        return PerRayEnsemble([first, *others], torch.tensor(self.rays))

    def _blank(self) -> Spec | None:
        if self.backbone is None:
            return None
        kind: Any = registry.find("backbones", self.backbone.name)
        return Spec(self.backbone.name, {**self.backbone.settings, **getattr(kind, "blank", {})})

    def _outputs(self) -> int | Mapping[str, int]:
        """What the backbone gives, which a conditioning may want more of than the problem."""
        if self.conditioning is None:
            return self.outputs
        kind: Any = registry.find("conditioning", self.conditioning.name)
        outputs_for = getattr(kind, "outputs_for", None)
        if outputs_for is None:
            return self.outputs
        found: int | Mapping[str, int] = outputs_for(self.outputs, self.conditioning.settings)
        return found

    def _one(self, spec: Spec | None) -> nn.Module:
        backbone = self.given
        if spec is not None:
            shapes = {"input_shape": tuple(self.input_shape), "outputs": self._outputs()}
            backbone = build_checked(nn.Module, spec, "backbones", **shapes)
        assert backbone is not None
        if self.conditioning is None:
            whole = copy.deepcopy(backbone)
            if isinstance(whole, Conditioning):
                whole.ends = None  # found anew by this training, or loaded with the weights
            return whole
        parts = {"backbone": backbone, "objectives": self.objectives}
        network: Conditioning = build_checked(
            Conditioning, self.conditioning, "conditioning", **parts
        )
        return network


def build_checked(base: type, spec: Spec, kind: str, **fixed: Any) -> Any:
    """Build a thing; one from outside may turn out to be something else."""
    try:
        built = registry.build(kind, spec, **fixed)
    except (MemoryError, OverflowError, RuntimeError) as error:
        if not (
            isinstance(error, OverflowError) or lacks_memory(error) or "overflowed" in str(error)
        ):
            raise
        raise ConfigurationError(
            f"`{spec.name}` needs more memory than is available with {_given(spec)}: make it "
            "smaller"
        ) from error
    if not isinstance(built, base):
        raise ConfigurationError(
            f"`{spec.name}` must give a {base.__name__}, found {type(built).__name__}"
        )
    return built


def _given(spec: Spec) -> str:
    said = ", ".join(f"{key}={value}" for key, value in spec.settings.items() if value is not None)
    return said[:LONGEST] or "these inputs"


def as_built(spec: Spec | None, network: nn.Module) -> Spec | None:
    """A backbone's spec with what its open settings came to in a network that was built from it."""
    built = next((part for part in network.modules() if isinstance(part, Backbone)), None)
    if spec is None or built is None:
        return spec
    settings = {key: built.resolved.get(key, value) for key, value in spec.settings.items()}
    return Spec(spec.name, settings)


def fitted(spec: Spec | None, problem: Problem) -> Spec | None:
    """A backbone's spec with what its open settings come to for the rows of a problem."""
    if spec is None or None not in spec.settings.values():
        return spec
    kind: Any = registry.find("backbones", spec.name)
    lineage: tuple[type, ...] = getattr(kind, "__mro__", ())
    if not any("fitted" in vars(one) for one in lineage if one is not Backbone):
        return spec  # it has no use for rows, which may have to be read first
    found = kind.fitted(split_of(problem, "train"), problem.outputs)
    chosen = {key: found.get(key) if v is None else v for key, v in spec.settings.items()}
    return Spec(spec.name, chosen)


def for_single_rays(kind: Any) -> bool:
    """Whether a kind of method trains one network per ray, which then needs no conditioning."""
    return getattr(kind, "fixed_rays", Method.fixed_rays) is not Method.fixed_rays


def check_pair(name: str, given: str | nn.Module | None, *, single: bool) -> None:
    """Refuse a network that is told its ray where it has but one, and one that is not where not."""
    if isinstance(given, nn.Module) and not isinstance(given, Conditioning):
        return  # a network of one's own may do as it likes
    conditioning = given if isinstance(given, str) else spec_name("conditioning", type(given))
    if single and conditioning != "none":
        raise ConfigurationError(
            f"`{name}` trains a network for each of its rays and needs no `{conditioning}`: leave "
            "`conditioning` out, or use a method that draws rays, such as `cosmos`"
        )
    if not single and conditioning == "none":
        raise ConfigurationError(
            f"`{name}` draws rays, which a network without conditioning ignores: leave "
            "`conditioning` out, or use a method for one network, such as `uniform`"
        )
