"""Hypernetwork: the ray decides every weight of the network."""

import contextlib
import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import Conditioning
from paretocosmos.nn.conditioning.injection import CallState
from paretocosmos.nn.conditioning.probing import LayoutCache
from paretocosmos.nn.conditioning.sample_layout import (
    Layout,
    check_group_count,
    join_outputs,
    list_tensors,
    select_own_rows,
    stack_outputs,
)
from paretocosmos.runtime.torch_private import reparametrize
from paretocosmos.types import Inputs, Outputs, first, map_tensors

BYTES_AT_ONCE = 64 * 2**20  # of weights, while rays are evaluated one part after the other


class _Target(NamedTuple):
    """A weight to generate: every place it is used in, by dotted names, and its shape."""

    names: tuple[str, ...]
    shape: torch.Size


class HypernetOutput(NamedTuple):
    """What a hypernetwork computes from rays ``[G, J]``.

    Attributes:
        features: ``[G, width]``, what its last layer reads; ``[G, chunks, width]`` in chunks.
        emitted: what that layer gives, ``[G, P]``, or ``[G, chunks, P / chunks]``.
    """

    features: Tensor
    emitted: Tensor


class Hypernet(Conditioning):
    """A second network generates the weights of the first from the ray (PHN, Navon et al. 2021).

    w(r) = E(m(r)), with m a perceptron J-100-100-100 and E a linear layer with an output for each
    trainable weight of the network, so 101 times as many parameters. The network's own weights are
    not used. Frozen weights and buffers stay as they are.

    For a network of more than `chunk` trainable weights, they are generated in chunks (von Oswald
    et al. 2020):
    m also reads a learned embedding of the chunk, and all chunks share E. Since one E cannot know
    the scale of every layer, the network then keeps its weights w_0, pretrained or not, and trains
    them too; the hypernetwork generates what the ray adds, w(r) = w_0 + E(m(r, chunk)), zero at
    first.

    Use when the network is small and each ray needs its own weights. Avoid when it is
    large, or trained at a high learning rate: the published experiments use 1e-4.

    Args:
        backbone: any network with something to train; it is copied.
        objectives: entries in a ray, J.
        width: units of each layer of m.
        chunk: how many weights are emitted one by one; of a larger network, the size of a chunk.

    >>> model = Hypernet(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    chunks: nn.Parameter | None

    def __init__(
        self, backbone: nn.Module, objectives: int, *, width: int = 100, chunk: int = 50_000
    ) -> None:
        super().__init__(backbone, objectives)
        for name, value in {"width": width, "chunk": chunk}.items():
            if value < 1:
                raise ConfigurationError(f"`{name}` must be at least 1, found {value}")
        like = _check_weights(self.backbone)
        self._call_state, self._layouts = CallState(), LayoutCache()
        self._targets = _find_targets(self.backbone)
        self._sizes = [target.shape.numel() for target in self._targets]
        count = math.ceil(sum(self._sizes) / chunk)
        self.enter = nn.Linear(objectives, width)
        self.features = nn.Sequential(
            nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
        )
        # the published code has a layer per weight; this one draws them from the same distribution
        self.emit = nn.Linear(width, math.ceil(sum(self._sizes) / count))
        if count > 1:
            # added in the first layer: the same as an embedding that enters it beside the ray
            self.chunks = nn.Parameter(torch.randn(count, width).to(like))
            nn.init.zeros_(self.emit.weight)
            nn.init.zeros_(self.emit.bias)
        else:
            self.register_parameter("chunks", None)
            # generated at every call: an optimiser would carry those that are there
            for name in (name for target in self._targets for name in target.names):
                owner, _, last = name.rpartition(".")
                holder = self.backbone.get_submodule(owner)
                delattr(holder, last)
                setattr(holder, last, torch.empty(0))  # not None, which says there is no bias
        for module in (self.enter, self.features, self.emit):
            module.to(like.device, like.dtype)

    def generate(self, rays: Tensor) -> HypernetOutput:
        """Compute what the last layer reads and gives at rays ``[G, J]``."""
        with torch.autocast(rays.device.type, enabled=False):  # weights are never halved
            entered = self.enter(rays.to(self.enter.weight.dtype))
            if self.chunks is not None:
                entered = entered.unsqueeze(-2) + self.chunks
            features = self.features(entered)
            return HypernetOutput(features, self.emit(features))

    def weights(self, rays: Tensor) -> dict[str, Tensor]:
        """Return the network's weights at rays ``[G, J]`` by dotted names, ``[G, *shape]`` each."""
        return self._split_weights(self.generate(rays).emitted)

    def _split_weights(self, emitted: Tensor) -> dict[str, Tensor]:
        initial: dict[str, Tensor] = {}
        if self.chunks is not None:
            # all chunks have one size, so the last one gives a few numbers too many
            emitted = emitted.flatten(-2).narrow(-1, 0, sum(self._sizes))
            parameters = partial(self.backbone.named_parameters, remove_duplicate=False)
            # in a backward pass the backbone may hold generated weights instead of its own
            initial = self._call_state.read_original(lambda: dict(parameters()))
        weights: dict[str, Tensor] = {}
        for target, flat in zip(self._targets, emitted.split(self._sizes, dim=-1), strict=True):
            weight = flat.reshape((*flat.shape[:-1], *target.shape))
            if initial:
                weight = initial[target.names[0]] + weight
            weights |= dict.fromkeys(target.names, weight)
        return weights

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self.call_generated(inputs, self.generate(self.rays_for(ray)))

    def call_generated(self, inputs: Inputs, output: HypernetOutput) -> Outputs:
        """Call the network, every share of the samples with the weights of its ray."""
        weights = self._split_weights(output.emitted)
        groups = output.emitted.shape[0]
        if groups == 1:  # a plain call: no vmap, whose limits a network may meet
            return self._call_with_weights({n: weight[0] for n, weight in weights.items()}, inputs)
        samples, layout = first(inputs).shape[0], self._layout(weights, inputs)
        together = all(tensor.shape[:1] == (samples,) for tensor in list_tensors(inputs))
        if layout is None or not layout.samples_first or not together:
            # all samples under every ray, of which each keeps the outputs under its own
            alone = [
                self._call_with_weights({n: weight[index] for n, weight in weights.items()}, inputs)
                for index in range(groups)
            ]
            return select_own_rows(alone, None if layout is None else layout.outputs)
        check_group_count(samples, groups)
        shares = map_tensors(lambda x: torch.unflatten(x, 0, (groups, samples // groups)), inputs)
        outputs = self._call_each(weights, shares, 0)
        grouped: Outputs = map_tensors(lambda out: out.flatten(0, 1), outputs, keep_classes=True)
        return grouped

    def _layout(self, weights: dict[str, Tensor], inputs: Inputs) -> Layout | None:
        """Find where the samples of a call are."""
        one_ray = {name: weight[0].detach() for name, weight in weights.items()}
        run = partial(self._call_with_weights, one_ray)
        return self._layouts.find(self.backbone, (), run, inputs, list(weights.values())[:1])

    def network_at(self, ray: Tensor) -> nn.Module:
        """Return a copy of the network with the weights of one ray ``[J]``."""
        network = copy.deepcopy(self.backbone)
        parameters: dict[Tensor, nn.Parameter] = {}
        for name, weight in self.weights(self.rays_for(ray)).items():
            parent, _, last = name.rpartition(".")
            module = network.get_submodule(parent)
            delattr(module, last)
            # a weight that is used in several places stays one
            shared = parameters.setdefault(weight, nn.Parameter(weight[0].detach().clone()))
            module.register_parameter(last, shared)
        return network

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        # the backbone itself lacks the weights, which methods may read
        return function(self.network_at(ray))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # the weights of all rays at once would be many times the network
        rays_at_once = max(1, BYTES_AT_ONCE // (sum(self._sizes) * self.emit.weight.element_size()))
        chunks = [
            self._call_each(self.weights(few), inputs, None)
            for few in self.rays_for(rays).split(rays_at_once)
        ]
        return join_outputs(chunks)

    def _call_each(self, weights: dict[str, Tensor], inputs: Inputs, axis: int | None) -> Outputs:
        """Call the network with each set of weights, on its share along `axis` or on all inputs."""
        first_weight = next(iter(weights.values()))
        if _can_vmap(self.backbone, first_weight.device, shared=axis is None):
            structure: list[Outputs] = []

            def call_flat(weights: dict[str, Tensor], inputs: Inputs) -> tuple[Tensor, ...]:
                # vmap returns no dataclasses
                structure[:] = [self._call_with_weights(weights, inputs)]
                return tuple(list_tensors(structure))

            # dropout draws for every sample, as it would in one call for all
            mapped = torch.vmap(call_flat, in_dims=(0, axis), randomness="different")
            try:
                tensors = iter(mapped(weights, inputs))
                outputs: Outputs = map_tensors(
                    lambda _: next(tensors), structure[0], keep_classes=True
                )
                return outputs
            except torch.cuda.OutOfMemoryError:  # a RuntimeError too, but not one of mapping
                raise
            except RuntimeError:  # torch cannot map all that a network may do
                pass
        alone = [
            self._call_with_weights(
                {name: weight[index] for name, weight in weights.items()},
                inputs if axis is None else map_tensors(lambda x, index=index: x[index], inputs),
            )
            for index in range(len(first_weight))
        ]
        return stack_outputs(alone)

    def _call_with_weights(self, weights: dict[str, Tensor], inputs: Inputs) -> Outputs:
        args, named = self._arguments(inputs)
        outputs: Outputs = self._call_state.call(
            lambda: functional_call(self.backbone, weights, args, named, tie_weights=False),
            list(weights.values()),
            lambda tensors: self._set_weights(dict(zip(weights, tensors, strict=True))),
        )
        return outputs

    def _set_weights(self, weights: dict[str, Tensor]) -> Callable[[], None]:
        """Set weights until the returned function is called, which restores the network's own."""
        context = contextlib.ExitStack()
        context.enter_context(reparametrize(self.backbone, weights))
        return context.close

    def extra_repr(self) -> str:
        chunks = "" if self.chunks is None else f", chunks={len(self.chunks)}"
        return f"objectives={self.objectives}, emits={sum(self._sizes)}{chunks}"


def _check_weights(backbone: nn.Module) -> Tensor:
    """Return one of the weights to generate; raise if there is none, or if they differ in type."""
    weights = [weight for weight in backbone.parameters() if weight.requires_grad]
    kinds = sorted({f"{weight.dtype} on {weight.device}" for weight in weights})
    if not weights:
        raise ConfigurationError(
            f"`hypernet` generates the trainable weights, found none in "
            f"{type(backbone).__name__}: call its `requires_grad_(True)`, or use another "
            "conditioning"
        )
    if len(kinds) > 1 or not weights[0].is_floating_point():
        raise ConfigurationError(
            "`hypernet` generates weights of one floating-point type on one device, found "
            f"{', '.join(kinds)}: convert the network with its `to`, or freeze the rest"
        )
    return weights[0]


def _find_targets(backbone: nn.Module) -> list[_Target]:
    """Return the weights to be trained, each once, however many places use it."""
    names: dict[nn.Parameter, dict[tuple[nn.Module, str], str]] = {}
    for name, weight in backbone.named_parameters(remove_duplicate=False):
        if weight.requires_grad:
            owner, _, last = name.rpartition(".")
            # a module may itself be used in several places
            names.setdefault(weight, {}).setdefault((backbone.get_submodule(owner), last), name)
    return [_Target(tuple(places.values()), weight.shape) for weight, places in names.items()]


def _can_vmap(backbone: nn.Module, device: torch.device, *, shared: bool) -> bool:
    """Return True if the network should be called at several rays in one go."""
    if shared and device.type == "cpu":
        # a whole batch per ray keeps a CPU busy: LeNet, 25 rays of 400 images, 1.2 s against 3.0
        return False
    # what a call may write to, such as running statistics, cannot be written to by several
    return not any(
        module.training and next(module.buffers(recurse=False), None) is not None
        for module in backbone.modules()
    )
