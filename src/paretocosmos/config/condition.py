"""`condition`: any network becomes one that takes a ray, as a preset has it."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from paretocosmos.conditioning import Conditioning, conditioned
from paretocosmos.config.presets import CONDITIONINGS, loop_settings
from paretocosmos.layers.norms import Norm

__all__ = ["condition"]


def condition(
    module: nn.Module,
    objectives: int,
    *,
    how: str | None = None,
    layer: str | Sequence[str] | None = None,
    norm: Norm | None = None,
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
) -> Conditioning:
    """Turn any network into one that takes a ray: ``forward(inputs, ray)``.

    The network is copied. What reads the ray starts at zero (but for `hypernet`), so that training
    starts from the network as it is, its pretrained weights untouched. Inputs are a tensor, or a
    mapping, passed on as keywords, or as one argument to a ``forward(batch: dict)``; a ray is
    ``[J]``, ``[G, J]`` or ``[B, J]``; outputs are what the network gives.

    Args:
        module: any network.
        objectives: entries in a ray, J.
        how: ``"auto"``: ``"film"`` where the network has blocks, normalisation, hidden layers or
            embeddings to put it after, else ``"input"``; ``"film"``: a scale and a shift after each
            block, and weights that move with the ray by its `rank`; ``"input"``: beside the input,
            in the layer it enters, `concat` where that is linear and `transposed_conv` where it is
            a 2d convolution; any other name of a conditioning, or `package.module:Class`; the
            preset's if `None`.
        layer: the dotted name of the layer the ray enters; for ``"film"`` one or several; found
            by itself if `None`.
        norm: what becomes of batch normalisation, whose statistics mix samples under all rays:
            ``"group"`` makes it group normalisation with the same scale and shift, ``"frozen"``
            keeps the running statistics as they are, ``"keep"`` leaves it; `None` leaves it and
            warns.
        settings: further settings of the conditioning, by name.
        preset: ``"default"``: ``"auto"``, and ``"film"`` with rank 1; ``"paper"``: ``"input"``,
            and ``"film"`` as published, with rank 0.

    >>> import torch
    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> model = condition(network, objectives=2)
    >>> x = torch.randn(4, 3)
    >>> torch.equal(model(x, torch.tensor([0.5, 0.5])), network(x))
    True
    """
    usual = loop_settings(preset)  # which refuses the name of no preset
    return conditioned(
        module,
        objectives,
        how=CONDITIONINGS[preset] if how is None else how,
        layer=layer,
        norm=norm,
        settings=settings or {},
        usual=usual,
    )
