"""Stand-ins for layers, and replacements of batch normalisation, which mixes rays."""

import copy
import warnings
from typing import Any, Literal

from torch import Tensor, nn

from paretocosmos.errors import ConditioningWarning, ConfigurationError, unknown
from paretocosmos.runtime.torch_private import BatchNorm


class StandIn(nn.Module):
    """Replaces a layer in a network and forwards its attributes: `conv.weight` still works."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer: Any = layer

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):  # copying must not use the layer's own methods
                raise
            return getattr(super().__getattr__("layer"), name)


Norm = Literal["keep", "group", "frozen"]
MOST_GROUPS = 32  # Wu and He 2018
FEWEST_CHANNELS = 8  # per group: at the end of a deep network one pixel is all there is to average


class FrozenNorm(StandIn):
    """Batch normalisation with its running statistics fixed, in training too."""

    def train(self, mode: bool = True) -> "FrozenNorm":
        super().train(mode)
        self.layer.eval()  # torch's layer would update its statistics in training mode
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.layer(inputs)
        return out


def with_norm(network: nn.Module, norm: Norm | None, *, depth: int = 1) -> nn.Module:
    """Replace batch normalisation in a copy of a network; return the network if nothing changes.

    Args:
        network: any. Its parameters and buffers are shared with the copy, not copied.
        norm: what replaces batch normalisation; `None` keeps it and warns.
        depth: stack frames between the user's call, to which the warning points, and this one.
    """
    if norm not in (None, "keep", "group", "frozen"):
        raise unknown("`norm`", str(norm), ("keep", "group", "frozen"))
    names = [name for name, module in network.named_modules() if isinstance(module, BatchNorm)]
    if norm is None and names:
        warnings.warn(
            f"{type(network).__name__} has {len(names)} batch normalisation layers, whose "
            'statistics mix samples with different rays: use norm="group" (group normalisation, '
            'for training from random weights), norm="frozen" (fixed running statistics, for '
            'pretrained networks), or norm="keep" to leave them as they are',
            ConditioningWarning,
            stacklevel=depth + 2,
        )
    if norm in (None, "keep") or not names:
        return network
    # only the structure is copied: `condition` copies the result once more, weights and all
    shared = {id(weight): weight for weight in (*network.parameters(), *network.buffers())}
    changed = copy.deepcopy(network, shared)
    for name in names:
        layer: Any = changed.get_submodule(name)
        if norm == "group":
            replacement = _to_group_norm(layer, name)
        elif layer.running_mean is None:
            raise ConfigurationError(
                f'norm="frozen" needs running statistics, but `{name}` has none: use norm="group"'
            )
        else:
            replacement = FrozenNorm(layer).train(layer.training)
        if name == "":  # the network is that one layer
            return replacement
        changed.set_submodule(name, replacement)
    return changed


def _to_group_norm(layer: Any, name: str) -> nn.Module:
    """Return group normalisation with the same weights."""
    if not type(layer).__module__.startswith("torch."):
        raise ConfigurationError(
            f'norm="group" replaces only torch\'s own layers, found {type(layer).__name__} at '
            f'`{name}`, which may do more: use norm="frozen", or replace it yourself'
        )
    channels: int = layer.num_features
    # the most groups that divide the channels and are wide enough
    groups = max(
        g
        for g in range(1, MOST_GROUPS + 1)
        if channels % g == 0 and (g == 1 or channels // g >= FEWEST_CHANNELS)
    )
    # with torch's eps: 1e-3, as in EfficientNet, is more than the variance of small random weights
    group = nn.GroupNorm(groups, channels, affine=layer.affine)
    if layer.affine:
        group.weight, group.bias = layer.weight, layer.bias
    return group.train(layer.training)
