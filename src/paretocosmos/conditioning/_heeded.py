"""Whether a ray can matter where it enters, tried out at the first call that is to be trained.

A bias on the keys of an attention cancels in the softmax, a layer may never be called, and nobody
may read what a block gives. What reads a ray there would learn nothing. So the network is run under
two rays, with random weights in what reads them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._batch import every_float
from paretocosmos.conditioning._kinds import base_of
from paretocosmos.conditioning._layers import matrices_of
from paretocosmos.conditioning._probe import quiet
from paretocosmos.runtime.torch_private import reparametrised
from paretocosmos.types import Inputs, Outputs

__all__ = ["heeded_layers", "unheeded"]

# Of the largest output: what is left where terms cancel is rounding.
ROUNDING = 1e-5
NOISE = 0.1

Run = Callable[[Sequence[Tensor]], Outputs]
"""The network on the inputs of a call, while its listeners hear these terms."""


def unheeded(
    network: nn.Module,
    listeners: Sequence[Any],
    run: Run,
    told: Sequence[Tensor],
    inputs: Inputs,
    *,
    places: Sequence[Sequence[int]],
) -> list[int]:
    """Which of several places change nothing, whatever is told there.

    Zeros in a network, such as those that a last layer may start with, can hide a place that
    matters: what seems not to is tried once more with noise in all weights.

    Args:
        network: what is called.
        listeners: where a ray enters.
        run: a call under one ray.
        told: what listeners are told, ``[1, ...]`` each; random numbers take its place.
        inputs: of the call.
        places: the listeners, by their numbers, that are tried together.
    """
    own = {
        weight
        for listener in listeners
        for weight in set(listener.parameters()) - set(listener.layer.parameters())
    }
    every = {name: one for name, one in network.named_parameters() if one.is_floating_point()}
    reading = {name: one for name, one in every.items() if one in own}
    left = list(range(len(places)))
    for weights in (reading, every):
        with quiet(network, inputs), _noisy(network, weights):
            terms = [torch.randn_like(one[:1]) for one in told]
            before = _drawn_alike(run, terms)
            after = {at: _drawn_alike(run, _other(terms, places[at])) for at in left}
            left = [at for at in left if not _differ(before, after[at])]
        if not left:
            break
    return left


def heeded_layers(
    network: nn.Module, run: Callable[[], Outputs], inputs: Inputs, most: int = 4
) -> list[str]:
    """The first layers where something added would do more than to shift all outputs."""
    found: list[str] = []
    with quiet(network, inputs):
        before = _drawn_alike(lambda _: run(), ())
        for name in matrices_of(network):
            if len(found) == most:
                break

            def shift(part: Any, _: Any, given: Tensor) -> Tensor:
                axis = -1 if isinstance(base_of(part), nn.Linear) else 1
                shape = [1] * given.ndim
                shape[axis] = given.shape[axis]
                return given + torch.linspace(-1, 1, shape[axis]).to(given).reshape(shape)

            handle = network.get_submodule(name).register_forward_hook(shift)
            try:
                after = _drawn_alike(lambda _: run(), ())
            finally:
                handle.remove()
            # where all samples move alike, outputs are only shifted
            shifted = [
                one + (two - one)[:1] if one.ndim else two
                for one, two in zip(before, after, strict=True)
            ]
            if _differ(shifted, after):
                found.append(name)
    return found


def _other(terms: Sequence[Tensor], changed: Sequence[int]) -> list[Tensor]:
    return [torch.randn_like(one) if at in changed else one for at, one in enumerate(terms)]


def _drawn_alike(run: Run, terms: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of a call that draws the same random numbers each time, if it draws any."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    outputs = list(every_float(run(terms)))
    torch.set_rng_state(state)
    return outputs


def _differ(before: Sequence[Tensor], after: Sequence[Tensor]) -> bool:
    if [one.shape for one in before] != [one.shape for one in after]:
        return True
    return not before or any(
        bool(((one - two).abs() > ROUNDING * one.abs().max()).any())
        for one, two in zip(before, after, strict=True)
        if one.numel()
    )


@contextmanager
def _noisy(network: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """The network with some noise in these weights."""
    with reparametrised(network, {n: w + NOISE * torch.randn_like(w) for n, w in weights.items()}):
        yield
