"""How a ray reaches the middle of a network that knows nothing of rays.

A `Listener` takes a layer's place. For the time of a call the conditioning sets on it what the ray
amounts to there; `_during.py` says how and when.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._batch import (
    FIRST,
    Layout,
    Lead,
    check_groups,
    every_tensor,
    pick_rows,
)
from paretocosmos.conditioning._during import Held
from paretocosmos.conditioning._heeded import heeded_layers, unheeded
from paretocosmos.conditioning._layouts import (
    Layouts,
    in_processes,
    may_look,
    samples_first,
    samples_of,
)
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.norms import StandIn
from paretocosmos.types import Inputs, Outputs

__all__ = [
    "How",
    "Listener",
    "ListeningConditioning",
]

How = Literal["groups", "sweep"]


class Listener(StandIn):
    """A layer's place, and what the ray amounts to there: `rays`, one row per group of samples."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(layer)
        self.rays: Tensor | None = None
        self.how: How = "groups"
        self.lead = FIRST

    def heard(self) -> Tensor:
        """What is set on it at the moment."""
        if self.rays is None:
            raise ConfigurationError(
                f"{type(self.layer).__name__} is conditioned on a ray but got none: call the "
                "whole model, `model(inputs, ray)`, not a part of it"
            )
        return self.rays

    def follows(self, lead: Lead) -> bool:
        """Whether it can give each sample its ray where the samples are there."""
        del lead
        return True


class ListeningConditioning(Conditioning):
    """A conditioning whose ray enters where listeners have been put."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives)
        self._held = Held()
        self._layouts = Layouts()
        self._named: tuple[str, ...] = ()
        """The places that a caller named."""

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """The backbone's modules that listeners took the place of, by dotted names."""

    @property
    def ray_parameters(self) -> frozenset[str]:
        heard = {
            parameter
            for listener in self.backbone.modules()
            if isinstance(listener, Listener)
            for parameter in set(listener.parameters()) - set(listener.layer.parameters())
        }
        inner = (name for name, one in self.named_parameters() if one in heard)
        return super().ray_parameters.union(inner)

    def _put(self, listener: Listener) -> None:
        """Put a listener in its layer's place, and in every other place the layer is used in."""
        every = self.backbone.named_modules(remove_duplicate=False)
        for place in [place for place, module in every if module is listener.layer]:
            if place == "":  # the network is that one layer
                self.backbone = listener
            else:
                self.backbone.set_submodule(place, listener)

    def _tell(self, inputs: Inputs, told: Sequence[Tensor], how: How = "groups") -> Outputs:
        """The backbone on its inputs, while its listeners hear what they are told, one each.

        Several rays share the samples. Where samples influence one another, every ray has a call
        of its own for all of them, and each sample's outputs are those under its ray.
        """
        self._check_heeded(inputs, told)
        groups = max(one.shape[0] for one in told)
        if groups == 1 or how == "sweep":
            return self._hear(inputs, told, how)
        layout = self._layout(inputs, told)
        if layout is None:
            alone = [
                self._hear(inputs, [one[at : at + 1] for one in told], "groups")
                for at in range(groups)
            ]
            return pick_rows(alone, None)
        samples = samples_of(inputs, layout.axis)
        check_groups(samples, groups)
        leads = [Lead(lead.axis, samples if lead.inner else 0) for lead in layout.blocks]
        return self._hear(inputs, told, "groups", leads)

    def _check_heeded(self, inputs: Inputs, told: Sequence[Tensor]) -> None:
        """Refuse places where a ray can change nothing, at the first call that is to be trained."""
        given = list(every_tensor(inputs))
        if self._layouts.heeded or not torch.is_grad_enabled() or not given:
            return
        if samples_first(self.backbone) and not self._named:
            return  # made to be conditioned, in places that were found
        if in_processes() or not may_look([*given, *told]):
            return
        self._layouts.heeded = True
        places = self.places
        named = [at for at, name in enumerate(places) if name in self._named]
        vain = unheeded(
            self.backbone,
            [self.backbone.get_submodule(name) for name in places],
            lambda terms: self._hear(inputs, terms, "groups"),
            told,
            inputs,
            places=[[at] for at in named] or [range(len(places))],
        )
        if not vain:
            return
        where = places[named[vain[0]]] if named else places[0]
        self._layouts.heeded = False
        one = [terms[:1].detach() for terms in told]
        others = heeded_layers(self.backbone, lambda: self._hear(inputs, one, "groups"), inputs)
        raise ConfigurationError(
            f"nothing that enters at `{where}` changes the outputs, so they cannot depend on the "
            f"ray (a bias on attention keys cancels, or an output is not used): {_instead(others)}"
        )

    def _layout(self, inputs: Inputs, told: Sequence[Tensor]) -> Layout | None:
        """Where the samples of this call are."""
        one = [terms[:1].detach() for terms in told]
        return self._layouts.of(
            self.backbone,
            [self.backbone.get_submodule(name) for name in self.places],
            lambda some: self._hear(some, one, "groups"),
            inputs,
            told,
        )

    def _hear(
        self, inputs: Inputs, told: Sequence[Tensor], how: How, leads: Sequence[Lead] = ()
    ) -> Outputs:
        listeners = [self.backbone.get_submodule(name) for name in self.places]
        where = leads or [FIRST] * len(listeners)

        def compute() -> Outputs:
            undo = _put(listeners, told, how, where)
            try:
                return self.call(inputs)
            finally:
                undo()

        return self._held.call(compute, told, lambda again: _put(listeners, again, how, where))


def _instead(layers: Sequence[str]) -> str:
    some = ", ".join(f"`{name}`" for name in layers[:4]) + ", ..." * (len(layers) > 4)
    other = f", or name another layer ({some})" if layers else ""
    return f'use how="auto", which finds the places itself{other}'


def _put(
    listeners: Sequence[Any], told: Sequence[Tensor], how: How, leads: Sequence[Lead]
) -> Callable[[], None]:
    """Set on each listener what it is told; the result takes it back."""
    before = [(listener.rays, listener.how, listener.lead) for listener in listeners]
    for listener, rays, lead in zip(listeners, told, leads, strict=True):
        listener.rays, listener.how, listener.lead = rays, how, lead

    def undo() -> None:
        for listener, (rays, how, lead) in zip(listeners, before, strict=True):
            listener.rays, listener.how, listener.lead = rays, how, lead

    return undo
