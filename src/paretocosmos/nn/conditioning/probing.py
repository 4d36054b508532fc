"""Find out by trial where samples are in a network, and whether a ray can change its outputs.

Shapes do not say which axis counts the samples: torch's own sequence layers put time first, and a
batch of 8 sequences of 8 steps looks the same either way. So one sample is changed: samples are
where the outputs change, and nowhere else.

A ray may enter where it cannot matter: a bias on the keys of an attention cancels in the softmax, a
layer may never be called, and a block's outputs may not be used. So the network is run under two
rays, with random weights in whatever reads them.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    INTERDEPENDENT,
    Layout,
    SampleAxis,
    can_probe,
    list_floats,
    list_tensors,
)
from paretocosmos.runtime.torch_private import reparametrize
from paretocosmos.types import Inputs, Outputs, first, map_tensors

# Rounding, as a share of the largest number: of samples that were not changed, whose sums may be
# taken in another order; and of what is left where terms cancel.
ROUNDING, CANCELLATION = 1e-6, 1e-5
NOISE = 0.1


def has_several_processes() -> bool:
    """Return True if several processes train together."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@contextlib.contextmanager
def probing_mode(network: nn.Module, inputs: Inputs) -> Iterator[None]:
    """Run a network without gradients, dropout, updates of statistics or use of random numbers."""
    modes = {module: module.training for module in network.modules()}
    device = first(inputs).device
    try:
        for module in modes:  # not `eval()`, which a module may override
            module.training = False
        fork = torch.random.fork_rng([device] if device.type == "cuda" else [])
        with torch.no_grad(), fork, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call itself will give them
            yield
    finally:
        for module, training in modes.items():
            module.training = training


class LayoutCache:
    """The layouts of one conditioned network's calls, by the shapes of its inputs."""

    def __init__(self) -> None:
        self._layouts: dict[object, Layout | None] = {}
        self._last: Layout | None = None

    def find(
        self,
        network: nn.Module,
        places: Sequence[str],
        run: Callable[[Inputs], Outputs],
        inputs: Inputs,
        terms: Sequence[Tensor] = (),
    ) -> Layout | None:
        """Return the layout of a call; run the network to find it if it is not known.

        Nothing can be tried out while a call is recorded, compiled or mapped: then the layout found
        last holds, and if there is none, samples are taken to come first everywhere.

        Args:
            network: what `run` calls.
            places: the conditioned layers to look at, by dotted names.
            run: the network under one ray.
            inputs: of the call.
            terms: what is injected.
        """
        first_everywhere = Layout(0, (FIRST,) * len(places), (FIRST,))
        if getattr(network, "samples_first", False):  # a `Backbone` declares it
            return first_everywhere
        tensors = list_tensors(inputs)
        if not can_probe([*tensors, *terms]):
            return self._last if self._layouts else first_everywhere
        # processes that share a network must probe at the same time, whatever the shapes of each
        several = has_several_processes()
        key = tuple((x.ndim if several else x.shape, x.dtype) for x in tensors)
        if key not in self._layouts:
            layers: list[Any] = [network.get_submodule(name) for name in places]
            with probing_mode(network, inputs):
                layout = probe_layout(run, layers, inputs)
                if layout is INTERDEPENDENT:
                    # token ids are replaced by another sample's: equal samples would show nothing
                    changed = list_tensors(_perturb_sample(inputs, 0, 0))
                    if all(torch.equal(x, y) for x, y in zip(tensors, changed, strict=True)):
                        return INTERDEPENDENT  # of this call, not of others of its shape
            if layout is not INTERDEPENDENT and not all(
                layer.supports(axis) for layer, axis in zip(layers, layout.blocks, strict=True)
            ):
                layout = INTERDEPENDENT
            self._layouts[key] = self._last = layout
        return self._layouts[key]


def probe_layout(
    run: Callable[[Inputs], Outputs], layers: Sequence[nn.Module], inputs: Inputs
) -> Layout | None:
    """Find out where the samples are; `INTERDEPENDENT` where they influence one another.

    The first sample is changed, then the last. Noise is added to real numbers; whole numbers, such
    as token ids, are taken from another sample.

    Args:
        run: the network under one ray, without randomness.
        layers: the modules to look at.
        inputs: of a call.
    """
    if first(inputs).shape[0] == 1:  # doubled: on an axis of 1 nothing could be left unchanged
        inputs = map_tensors(lambda x: torch.cat([x, x]) if x.shape[:1] == (1,) else x, inputs)
    base = _record_outputs(run, layers, inputs)
    for axis in (0, 1):  # torch's sequence layers count time on the first axis by default
        leading = first(inputs)
        if leading.ndim <= axis or leading.shape[axis] < 2:
            continue
        samples = leading.shape[axis]
        changed = [
            _record_outputs(run, layers, _perturb_sample(inputs, axis, sample))
            for sample in (0, samples - 1)
        ]
        layout = _compare_records(base, changed, axis, samples)
        if layout is not INTERDEPENDENT:
            return layout
    return INTERDEPENDENT


Record = tuple[list[list[Tensor]], list[Tensor]]
"""The outputs of each layer, each time it is called, and those of the network."""


def _record_outputs(
    run: Callable[[Inputs], Outputs], layers: Sequence[nn.Module], inputs: Inputs
) -> Record:
    """Run a network and record what layers give."""
    torch.manual_seed(0)  # of a generator that `probing_mode` has forked
    blocks: list[list[Tensor]] = [[] for _ in layers]
    handles = []
    try:
        for layer, block in zip(layers, blocks, strict=True):
            # `block` as a default: a closure would see only the last one of the loop
            def record_output(_: Any, __: Any, out: Any, block: list[Tensor] = block) -> None:
                block.append(list_floats(out)[0])

            handles.append(layer.register_forward_hook(record_output))
        return blocks, list_floats(run(inputs))
    finally:
        for handle in handles:
            handle.remove()


def _perturb_sample(inputs: Inputs, axis: int, sample: int) -> Inputs:
    """Replace one sample by another, plus noise in real numbers."""
    samples = first(inputs).shape[axis]

    def perturb(tensor: Tensor) -> Tensor:
        if tensor.ndim <= axis or tensor.shape[axis] != samples:
            return tensor
        changed = tensor.clone()
        other = tensor.select(axis, samples - 1 - sample)
        if tensor.is_floating_point():
            noise = torch.randn(other.shape, device=other.device).to(other.dtype)
            other = other + 0.5 * noise
        changed.select(axis, sample).copy_(other)
        return changed

    perturbed: Inputs = map_tensors(perturb, inputs)
    return perturbed


def _compare_records(
    base: Record, changed: Sequence[Record], axis: int, samples: int
) -> Layout | None:
    """Find the layout from a call and from calls with the first and the last sample changed."""
    blocks: list[SampleAxis] = []
    for index, calls in enumerate(base[0]):
        changed_calls = [record[0][index] for record in changed]
        if {len(after) for after in changed_calls} != {len(calls)}:
            return INTERDEPENDENT  # how often a layer is called depends on the numbers
        axes = {
            _find_sample_axis(tensor, [after[call] for after in changed_calls], samples)
            for call, tensor in enumerate(calls)
        }
        if None in axes or len(axes) > 1:
            return INTERDEPENDENT
        # a layer that was not called has no axis, and needs none
        blocks.append(next((axis for axis in axes if axis is not None), FIRST))
    outputs: list[SampleAxis] = []
    for index, tensor in enumerate(base[1]):
        if any(len(record[1]) != len(base[1]) for record in changed):
            return INTERDEPENDENT
        if tensor.ndim == 0:  # of all samples together, such as a loss that the network computes
            outputs.append(FIRST)
            continue
        moved = [record[1][index] for record in changed]
        sample_axis = _find_sample_axis(tensor, moved, samples)
        unchanged = all(torch.equal(after, tensor) for after in moved)
        if sample_axis is None and unchanged and tensor.shape[:1] == (samples,):
            sample_axis = FIRST  # as a head of zeros gives
        if sample_axis is None:
            return INTERDEPENDENT
        outputs.append(sample_axis)
    return Layout(axis, tuple(blocks), tuple(outputs)) if outputs else INTERDEPENDENT


def _find_sample_axis(base: Tensor, changed: Sequence[Tensor], samples: int) -> SampleAxis | None:
    """Find the axis on which a tensor changed at the first sample alone, then at the last alone."""
    if any(tensor.shape != base.shape for tensor in changed) or base.numel() == 0:
        return None
    bound = ROUNDING * base.abs().nan_to_num(0, 0, 0).max()
    candidates: list[SampleAxis] = []
    # not `> bound`, which is false for NaN; equal infinities differ by NaN, so they come first
    differ = [(tensor != base) & ~((tensor - base).abs() <= bound) for tensor in changed]
    for axis, size in enumerate(base.shape):
        if size % samples:
            continue
        other_axes = [other for other in range(base.ndim) if other != axis]
        rows = [change.any(dim=other_axes) if other_axes else change for change in differ]
        steps = size // samples
        # an axis of B * T numbers may hold steps within samples, or samples within steps
        for candidate in (SampleAxis(axis), SampleAxis(axis, samples))[: 1 + (steps > 1)]:
            shape = (steps, samples) if candidate.inner else (samples, steps)
            touched = [row.reshape(shape).any(dim=0 if candidate.inner else 1) for row in rows]
            indices = torch.arange(samples, device=base.device)
            expected = [indices == sample for sample in (0, samples - 1)]
            if all(torch.equal(x, y) for x, y in zip(touched, expected, strict=True)):
                candidates.append(candidate)
    return candidates[0] if len(candidates) == 1 else None  # several: the numbers cannot tell


RunTerms = Callable[[Sequence[Tensor]], Outputs]
"""The network on the inputs of a call, with these terms injected."""


def find_insensitive_places(
    network: nn.Module,
    readers: set[nn.Parameter],
    run: RunTerms,
    terms: Sequence[Tensor],
    inputs: Inputs,
    *,
    places: Sequence[Sequence[int]],
) -> list[int]:
    """Return which of several places change nothing, whatever is injected there.

    Zeros in a network, such as those that a last layer may start with, can hide a place that
    matters: a place that seems insensitive is tried once more with noise in all weights.

    Args:
        network: what is called.
        readers: the parameters of the conditioned layers that read what is injected.
        run: a call under one ray.
        terms: what is injected, ``[1, ...]`` each; random numbers take its place.
        inputs: of the call.
        places: numbers of the layers that are tried together.
    """
    weights = {n: weight for n, weight in network.named_parameters() if weight.is_floating_point()}
    reading = {name: weight for name, weight in weights.items() if weight in readers}
    insensitive = list(range(len(places)))
    for noisy in (reading, weights):  # noise everywhere only if zeros may have hidden a place
        with contextlib.ExitStack() as stack:
            stack.enter_context(probing_mode(network, inputs))
            noise = {name: w + NOISE * torch.randn_like(w) for name, w in noisy.items()}
            stack.enter_context(reparametrize(network, noise))
            drawn = [torch.randn_like(term[:1]) for term in terms]
            before = _run_with_fixed_seed(run, drawn)
            after = {
                index: _run_with_fixed_seed(
                    run,
                    [
                        torch.randn_like(term) if number in places[index] else term
                        for number, term in enumerate(drawn)
                    ],
                )
                for index in insensitive
            }
            insensitive = [i for i in insensitive if not _outputs_differ(before, after[i])]
        if not insensitive:
            break
    return insensitive


def _run_with_fixed_seed(run: RunTerms, terms: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a call that draws the same random numbers each time."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    outputs = list_floats(run(terms))
    torch.set_rng_state(state)
    return outputs


def _outputs_differ(before: Sequence[Tensor], after: Sequence[Tensor]) -> bool:
    """Return True if two lists of outputs differ by more than rounding; also if both are empty."""
    if [x.shape for x in before] != [y.shape for y in after]:
        return True
    return not before or any(
        bool(((x - y).abs() > CANCELLATION * x.abs().max()).any())
        for x, y in zip(before, after, strict=True)
        if x.numel()
    )
