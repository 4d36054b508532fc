"""Blocks whose outputs are scaled and shifted by a ray, sample by sample."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paretocosmos.conditioning._batch import FIRST, Lead, ahead, behind, check_groups
from paretocosmos.conditioning._kinds import Width, is_recurrent
from paretocosmos.conditioning._listening import Listener
from paretocosmos.errors import ConfigurationError

__all__ = ["Modulated", "modulated"]


class Modulated(Listener):
    """A block whose output is scaled and shifted: rays here are γ and β, ``[G, 2 C]``."""

    def __init__(self, layer: nn.Module, width: Width) -> None:
        super().__init__(layer)
        self.channels, self._leads, self._images, _ = width

    def forward(self, *args: Any, **named: Any) -> Any:
        outputs = self.layer(*args, **named)
        several = isinstance(outputs, tuple) and len(outputs) > 0
        features = outputs[0] if several else outputs  # the rest, such as attentions, is beside it
        if not isinstance(features, Tensor):
            raise ConfigurationError(
                f"`film` scales a tensor, or the first of a tuple, but {type(self.layer).__name__} "
                f"returns {type(outputs).__name__}: name another layer "
                "with `layer`"
            )
        changed = self._modulate(features, self._axis(features), self.lead)
        return (changed, *outputs[1:]) if several else changed

    def _modulate(self, features: Tensor, axis: int, lead: Lead) -> Tensor:
        """Scale and shift features along an axis of channels, counted from the start."""
        terms = self.heard().to(features.device, features.dtype)
        groups = terms.shape[0]
        elsewhere = groups > 1 and lead != FIRST
        if elsewhere:
            features = ahead(features, lead)
            axis += axis < lead.axis
        samples = features.shape[0]
        check_groups(samples, groups)
        grouped = groups not in (1, samples)
        if grouped:
            features, axis = torch.unflatten(features, 0, (groups, samples // groups)), axis + 1
        shape = [1] * features.ndim
        shape[0], shape[axis] = groups, self.channels
        scale, shift = (term.reshape(shape) for term in terms.chunk(2, dim=-1))
        changed = torch.addcmul(features + shift, features, scale)
        if grouped:
            changed = changed.flatten(0, 1)
        return behind(changed, lead) if elsewhere else changed

    def _axis(self, features: Tensor) -> int:
        """Where the channels are."""
        last = features.ndim - 1
        leads = last > 1 and (self._leads if last == 2 else self._images)
        for axis in (1, last) if leads else (last, min(1, last)):
            if axis != self.lead.axis and features.shape[axis] == self.channels:
                return axis
        raise ConfigurationError(
            f"`film` expects {self.channels} channels after {type(self.layer).__name__}, found "
            f"outputs of shape {tuple(features.shape)}: name another layer with `layer`, such as "
            "the normalisation layer, linear layer or convolution that it ends in"
        )


class ModulatedRecurrent(Modulated):
    """A recurrent layer whose outputs and last hidden state are scaled and shifted alike.

    A state that the layer carries from step to step stays as it is, as do the cells of an LSTM.
    """

    def forward(self, *args: Any, **named: Any) -> Any:
        outputs, state = self.layer(*args, **named)
        if isinstance(outputs, PackedSequence):
            # rows of all samples, step by step: only one ray for all of them can be told here
            outputs = outputs._replace(data=self._modulate(outputs.data, 1, FIRST))
        else:
            outputs = self._modulate(outputs, outputs.ndim - 1, self.lead)
        hidden = state[0] if isinstance(state, tuple) else state
        changed = self._state(hidden)
        return outputs, (changed, *state[1:]) if isinstance(state, tuple) else changed

    def _state(self, hidden: Tensor) -> Tensor:
        """The states at the end, ``[layers * directions, B, H]``: those of the last layer."""
        directions = self.channels // hidden.shape[-1]
        inner, last = hidden[:-directions], hidden[-directions:]
        rows = last.movedim(0, -2).flatten(-2)  # [B, directions * H], or one sample's without B
        alone = rows.ndim == 1
        rows = self._modulate(rows.unsqueeze(0) if alone else rows, 1, FIRST)
        rows = rows.squeeze(0) if alone else rows
        return torch.cat([inner, rows.unflatten(-1, (directions, -1)).movedim(-2, 0)])


def modulated(layer: nn.Module, width: Width) -> Modulated:
    """A block, scaled and shifted in the way that suits what it gives."""
    kind = ModulatedRecurrent if is_recurrent(layer) else Modulated
    return kind(layer, width)
