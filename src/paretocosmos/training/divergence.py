"""Losses and weights that are no numbers any more."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretocosmos.errors import DivergedError

__all__ = ["check_finite"]

WAY_OUT = "lower `learning_rate`, to 1e-4 for instance, or look at the data"


def check_finite(
    losses: Tensor, model: nn.Module, *, names: Sequence[str], epoch: int, kept: str
) -> None:
    """Refuse to go on from NaN or infinity.

    Args:
        losses: of an epoch's steps, of every network, ``[steps, K, J]``.
        model: whose weights are looked at too.
        names: the objectives'.
        epoch: which one it was.
        kept: what is left to go on from, in words.
    """
    bad = ~torch.isfinite(losses)
    if bool(bad.any()):
        step, network, objective = bad.nonzero()[0].tolist()
        value = losses[step, network, objective].item()
        which = f" of network {network + 1}" if losses.shape[1] > 1 else ""
        raise DivergedError(
            f"the loss of `{names[objective]}`{which} became {value} at step {step + 1} of epoch "
            f"{epoch}; {kept}; {WAY_OUT}"
        ).by({"learning_rate": "1e-4"})
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise DivergedError(
            f"the network's weights became NaN or infinite in epoch {epoch} though every loss was "
            f"finite; {kept}; {WAY_OUT}"
        ).by({"learning_rate": "1e-4"})
