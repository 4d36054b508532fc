"""Layers whose weights move with the ray, by matrices of low rank; LoRA, which trains only these.

``W(r) x`` with ``W(r) = W + Σ_j c_j B_j A_j`` is computed as ``W x + B (c · A x)``: one narrow
layer reads the samples for all objectives, the ray scales what it gives, and a matrix brings that
to the layer's outputs. So every sample may have its own ray, and no ray has weights of its own,
except in convolutions of few rays with many samples each (`LowRankConv`).

Sizes are read as ``x.shape[0]``: ``len(x)`` is a plain number, which an exported model would keep.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import is_inside
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_search import (
    check_is_called,
    find_blocks,
    find_matrix_layers,
    find_opaque_parent,
)
from paretocosmos.nn.conditioning.layer_types import get_base_layer, get_method_sources, is_conv1d
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    SampleAxis,
    add_terms,
    move_samples_back,
    move_samples_first,
)
from paretocosmos.runtime.torch_private import Convolution, has_hooks

# Samples per ray, and on a CPU numbers that a layer reads for each that is written, from which on
# every ray's weights are written out.
FEWEST_SAMPLES, FEWEST_INPUTS = 8, 8

CONVOLUTIONS: dict[type[nn.Module], Any] = {
    nn.Conv1d: F.conv1d,
    nn.Conv2d: F.conv2d,
    nn.Conv3d: F.conv3d,
}


class LowRank(ConditionedLayer, ABC):
    """A layer plus what the ray adds to its weight and its bias.

    What is injected are numbers c, ``[G, N]``, each for as many neighbouring ranks: `film` injects
    the centred ray, `lora` one number for each rank. Only A is drawn, as the layer draws its own
    weights; B and d start at zero, so that the outputs start unchanged.

    Args:
        layer: kept as it is.
        reads: A of all objectives, ``[J * rank, ...]``: a layer like it.
        outputs: channels the layer gives.
        objectives: J.
    """

    _channels_last: ClassVar[bool]
    """True if channels are on the last axis, so that samples may be on any other."""

    reads: Any
    shifts: nn.Parameter | None

    def __init__(self, layer: nn.Module, reads: nn.Module, outputs: int, objectives: int) -> None:
        super().__init__(layer)
        base: Any = get_base_layer(layer)  # an adapter around it stays
        like: Tensor = base.weight
        self.reads = reads.to(like.device, like.dtype)
        ranks: int = self.reads.weight.shape[0]
        # B of all objectives side by side, so that one product serves all
        self.writes = nn.Parameter(torch.zeros(outputs, ranks).to(like))
        if base.bias is None:  # a norm after it shifts, or the network means no shift
            self.register_parameter("shifts", None)
        else:
            self.shifts = nn.Parameter(torch.zeros(objectives, outputs).to(like))

    def forward(self, inputs: Tensor) -> Tensor:
        """``[B, ...]`` to ``[B, ...]``, every sample under its ray."""
        layer, reads, writes, shift_matrix = self.layer, self.reads, self.writes, self.shifts
        outputs: Tensor = layer(inputs)
        term, _, axis = self.current()
        rays, scales = _compute_scales(term, writes)
        # A x: the only product with the full input, once for all rays
        read: Tensor = reads(inputs)
        shifts = None if shift_matrix is None else rays @ shift_matrix
        groups = rays.shape[0]
        if groups == 1:  # one ray for the whole batch is a matrix and a bias
            bias = None if shifts is None else shifts[0]
            return outputs + self._write(read, writes * scales, bias)
        if axis != FIRST:
            read = move_samples_first(read, axis)
        # from a number per group and channel, ``[G, C]``, to as many axes as `read` has
        added = [None] * (read.ndim - 2)
        index = (slice(None), *added) if self._channels_last else (..., *added)
        scales, samples = scales[index], read.shape[0]
        if groups == samples:
            scaled = read * scales
        else:  # a view, as in `add_terms`
            grouped = torch.unflatten(read, 0, (groups, samples // groups))
            scaled = (grouped * scales.unsqueeze(1)).flatten(0, 1)
        written = self._write(scaled, writes, None)
        if shifts is not None:
            written = add_terms(written, shifts[index], "groups")
        return outputs + (written if axis == FIRST else move_samples_back(written, axis))

    def supports(self, axis: SampleAxis) -> bool:
        return axis.axis == 0 or self._channels_last

    @abstractmethod
    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply what was read, with ``J * rank`` channels, by a matrix, and add a bias."""


class LowRankLinear(LowRank):
    """A linear layer, its channels on the last axis."""

    _channels_last = True

    def __init__(self, layer: nn.Module, objectives: int, rank: int) -> None:
        base = get_base_layer(layer)
        assert isinstance(base, nn.Linear)
        reads = nn.Linear(base.in_features, objectives * rank, bias=False)
        super().__init__(layer, reads, base.out_features, objectives)

    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(read, weight, bias)


class LowRankConv(LowRank):
    """A convolution, its channels on the second axis."""

    _channels_last = False

    def __init__(self, layer: nn.Module, objectives: int, rank: int) -> None:
        base = get_base_layer(layer)
        assert isinstance(base, Convolution)
        (kind,) = (kind for kind in CONVOLUTIONS if isinstance(base, kind))
        layer_class: Any = kind
        reads = layer_class(
            base.in_channels,
            objectives * rank,
            base.kernel_size,
            stride=base.stride,
            padding=base.padding,
            dilation=base.dilation,
            padding_mode=base.padding_mode,
            bias=False,
        )
        super().__init__(layer, reads, base.out_channels, objectives)
        self._convolve: Any = CONVOLUTIONS[kind]

    def forward(self, inputs: Tensor) -> Tensor:
        if not self._is_faster_written_out(inputs):
            return super().forward(inputs)
        layer = self.layer
        weights, biases = self._write_out(inputs)
        # a clone has channels last in memory even if there is one, where `contiguous` does nothing
        filters = weights.flatten(0, 1).clone(memory_format=torch.channels_last)
        count = weights.shape[0]
        outputs = [
            F.conv2d(samples, weight, bias, layer.stride, layer.padding, layer.dilation)
            for samples, weight, bias in zip(
                inputs.chunk(count),
                filters.chunk(count),
                [None] * count if biases is None else biases,
                strict=True,
            )
        ]
        return torch.cat(outputs)

    def _is_faster_written_out(self, inputs: Tensor) -> bool:
        """Return True on a CPU for several rays whose weights are few beside the inputs.

        There a convolution with few filters, as A, takes half as long as one with all of them.
        """
        if torch.compiler.is_compiling() or inputs.device.type != "cpu":
            return False
        term, _, axis = self.current()
        groups, layer = term.shape[0], self.layer
        return (
            groups > 1
            and axis == FIRST
            and type(layer) is nn.Conv2d
            and layer.padding_mode == "zeros"
            and not has_hooks(layer)
            and not has_hooks(self.reads)
            and inputs.shape[0] >= FEWEST_SAMPLES * groups
            and inputs.numel() >= FEWEST_INPUTS * groups * layer.weight.numel()
        )

    def _write_out(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Compute every ray's weights ``[G, O, I, K, K]`` and biases ``[G, O]``."""
        rays, scales = _compute_scales(self.current().term, self.writes)
        weight, bias = self.layer.weight, self.layer.bias
        # B diag(c) A for each ray, ``[G, O, I * K * K]``
        change = (self.writes * scales.unsqueeze(1)) @ self.reads.weight.flatten(1)
        weights = weight + change.unflatten(-1, weight.shape[1:])
        if bias is None or self.shifts is None:
            return weights, None if bias is None else bias.expand(rays.shape[0], -1)
        return weights, bias + rays @ self.shifts

    def fuse_conv_pool(self, inputs: Tensor, kernel: Callable[..., Tensor]) -> Tensor | None:
        """Compute the pooled, rectified outputs by a kernel, as `ConvPool` asks for.

        Every ray's weights are written out, which few samples per ray are not worth.
        """
        groups = self.current().term.shape[0]
        # `None` leaves it to the usual path, which does not write out weights
        if inputs.shape[0] < FEWEST_SAMPLES * groups:
            return None
        weights, biases = self._write_out(inputs)
        grouped = inputs.unflatten(0, (groups, -1))
        # vmap over rays: all of them in the same launches
        outputs: Tensor = torch.vmap(kernel)(grouped, weights, biases)
        return outputs.flatten(0, 1)

    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # a convolution with a kernel of one pixel
        point = weight[(..., *[None] * (read.ndim - 2))]
        written: Tensor = self._convolve(read, point, bias)
        return written


class LowRankConv1D(LowRankLinear):
    """A linear layer whose weight is stored as ``[in, out]``: `Conv1D` of `transformers`."""

    def __init__(self, layer: Any, objectives: int, rank: int) -> None:
        reads = nn.Linear(layer.nx, objectives * rank, bias=False)
        # not the parent's constructor, which reads sizes that `Conv1D` calls otherwise
        LowRank.__init__(self, layer, reads, layer.nf, objectives)


def make_low_rank(layer: nn.Module, objectives: int, rank: int) -> LowRank:
    """Make the weights of a linear layer or a convolution move with the ray."""
    is_linear = isinstance(get_base_layer(layer), nn.Linear)
    kind = LowRankLinear if is_linear else LowRankConv1D if is_conv1d(layer) else LowRankConv
    return kind(layer, objectives, rank)


def _compute_scales(rays: Tensor, writes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rays ``[G, J]`` and the factor of each rank's outputs, ``[G, J * rank]``."""
    rays = rays.to(writes)
    ranks = writes.shape[1] // rays.shape[1]
    return rays, rays.unsqueeze(-1).expand(-1, -1, ranks).flatten(1)


def find_adaptable_layers(network: nn.Module) -> list[str]:
    """Return the layers that can be adapted, by dotted names, in the order they were written."""
    plain = set(find_matrix_layers(network))
    names: dict[nn.Module, str] = {}
    for name, module in network.named_modules():
        if name in plain or (is_conv1d(module) and find_opaque_parent(network, name) is None):
            weight = get_base_layer(module).weight
            # weights of 4 or 8 bits are not real, and those of torch.ao are methods
            real = isinstance(weight, torch.Tensor) and weight.is_floating_point()
            if real and not is_bypassed(network, name):
                names.setdefault(module, name)
    return list(names.values())


def is_bypassed(network: nn.Module, name: str) -> bool:
    """Return True if the module around a layer computes with its weight instead of calling it.

    As Mamba's mixer does: an adapter would have no effect there. Reading the weight's type or
    device is no computation.
    """
    parent, _, last = name.rpartition(".")
    kind: Any = type(network.get_submodule(parent))
    text = get_method_sources(kind) if name else ""
    asks = r"\.(?:dtype|device|shape|size|ndim|data\.dtype)"
    uses = rf"(?<!isinstance\()self\.{re.escape(last)}\.weight\b(?!{asks})"
    return re.search(uses, text) is not None


class Lora(InjectedConditioning):
    """Low-rank weights that move with the ray, on a frozen network (Hu et al. 2022).

    Every adapted layer has the weight W + s·Σ_k c_k b_k a_k'. W stays as it is. The vectors a_k and
    b_k are trained, J times `adapter_rank` of each, and so is how much of them a ray takes,
    c = r H, the same for all layers. At first the components of objective j have
    c_k = 1 + w_k (J r_j - 1), where w_k falls from 1 to almost 0: some serve their objective alone,
    some all rays alike, and every ray uses nearly all of them. Each b_k starts at zero, so
    the outputs start unchanged.

    It adapts linear layers, convolutions without groups and the `Conv1D` of `transformers`: those
    inside repeated blocks (transformer layers, residual stages), or all if no block repeats.
    A GPT-2 of 124 million parameters gains less than 1 % for two objectives.

    Use for large pretrained networks: only the adapters need gradients and optimiser states.
    Avoid for networks that are not trained yet: their weights would stay random.

    Args:
        backbone: a trained network; a copy of it is frozen.
        objectives: entries in a ray, J.
        layer: the layers to adapt, by their dotted names or the ends of these: ``"c_attn"`` is
            every layer called so. Found by themselves if `None`.
        adapter_rank: components for each objective; every ray uses nearly all J times as many.
        scale: s, which multiplies what the adapters add.

    >>> import torch
    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> model = Lora(network, 2, adapter_rank=1)
    >>> sorted(name for name, p in model.named_parameters() if p.requires_grad)[:2]
    ['backbone.0.reads.weight', 'backbone.0.writes']
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        layer: tuple[str, ...] | str | None = None,
        adapter_rank: int = 4,
        scale: float = 2.0,
    ) -> None:
        super().__init__(backbone, objectives)
        if adapter_rank < 1:
            raise ConfigurationError(f"`adapter_rank` must be at least 1, found {adapter_rank}")
        if not 0 < scale < float("inf"):
            raise ConfigurationError(f"`scale` must be a positive number, found {scale}")
        self.scale = scale
        # before adapters are added, whose weights are trained
        self.backbone.requires_grad_(False)
        adaptable = find_adaptable_layers(self.backbone)
        places = self._select_layers(layer, adaptable)
        for module in [self.backbone.get_submodule(name) for name in places]:
            adapter = make_low_rank(module, self.objectives, adapter_rank)
            adapter.shifts = None  # the layer's bias stays as it is
            self._insert(adapter)
        modules = self.backbone.named_modules()
        adapters = {name: module for name, module in modules if isinstance(module, LowRank)}
        self.places = tuple(adapters)
        like = adapters[self.places[0]].writes
        # how much of each component the corners of the simplex take, ``[J, J * rank]``; what they
        # take is linear in the ray, 1 + w_k (J r_j - 1), with w_k from 1 to nearly 0; in float64,
        # so that it does not depend on the device
        slopes = 1 - torch.arange(adapter_rank, dtype=torch.float64) / (adapter_rank - 0.5)
        centred = self.objectives * torch.eye(self.objectives, dtype=torch.float64) - 1
        self.shares = nn.Parameter((1 + centred.unsqueeze(-1) * slopes).flatten(1).to(like))
        self._named = () if layer is None else self.places

    def _terms(self, rays: Tensor) -> list[Tensor]:
        return [self.scale * rays @ self.shares.to(rays)] * len(self.places)

    def _select_layers(
        self, layer: tuple[str, ...] | str | None, adaptable: list[str]
    ) -> list[str]:
        """Return the layers that were named, each once; else those inside repeated blocks."""
        if layer is None:
            if not adaptable:
                raise ConfigurationError(
                    "`lora` adapts linear layers, convolutions without groups and `Conv1D`, found "
                    f"none in {type(self.backbone).__name__}: use another conditioning"
                )
            # embeddings and heads lie outside the blocks, and usually need no adapter
            blocks = tuple(find_blocks(self.backbone))
            inside = [name for name in adaptable if is_inside(name, blocks)]
            # all if a block is itself such a layer
            return adaptable if set(inside) & set(blocks) or not inside else inside
        chosen: dict[str, None] = {}  # an ordered set: ends may match the same layer
        for end in (layer,) if isinstance(layer, str) else layer:
            matching = [name for name in adaptable if f".{name}".endswith(f".{end}")]
            if not matching:
                for name, _ in self.backbone.named_modules():
                    if f".{name}".endswith(f".{end}"):
                        check_is_called(self.backbone, name)
                some = ", ".join(adaptable[:4]) + ", ..." * (len(adaptable) > 4)
                raise ConfigurationError(
                    "`lora` adapts linear layers, convolutions without groups and `Conv1D` that "
                    "are called, with the `forward` of their class and weights of a real type; "
                    f"found none called `{end}`: name another layer ({some})"
                )
            chosen |= dict.fromkeys(matching)
        return list(chosen)

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, adapted={len(self.places)}, scale={self.scale}"
