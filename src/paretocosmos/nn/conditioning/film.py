"""FiLM: the ray scales and shifts the channels after each block, and may move the weights too."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_search import (
    check_is_called,
    find_blocks,
    find_matrix_layers,
    iter_leaves,
)
from paretocosmos.nn.conditioning.layer_types import (
    Width,
    find_width,
    has_weight_matrix,
    is_differentiable,
    is_recurrent,
)
from paretocosmos.nn.conditioning.low_rank import LowRank, make_low_rank
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    SampleAxis,
    move_samples_back,
    move_samples_first,
    stack_outputs,
    unflatten_rays,
)
from paretocosmos.types import Inputs, Outputs, first, map_tensors


class Modulated(ConditionedLayer):
    """A block whose output is scaled and shifted: γ and β, ``[G, 2 C]``, are injected."""

    def __init__(self, layer: nn.Module, width: Width) -> None:
        super().__init__(layer)
        self.channels, self._first_of_three, self._first_of_more, _ = width

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
        changed = self._modulate(features, self._find_channel_axis(features))
        return (changed, *outputs[1:]) if several else changed

    def _modulate(
        self, features: Tensor, axis: int, samples_at: SampleAxis | None = None
    ) -> Tensor:
        """Scale and shift features along an axis of channels, counted from the start."""
        term, _, layer_axis = self.current()
        samples_at = samples_at or layer_axis
        terms = term.to(features.device, features.dtype)
        groups = terms.shape[0]
        must_move = groups > 1 and samples_at != FIRST
        if must_move:
            features = move_samples_first(features, samples_at)
            axis += axis < samples_at.axis  # axes in front of the samples moved one back
        samples = features.shape[0]
        grouped = groups not in (1, samples)
        if grouped:
            features, axis = torch.unflatten(features, 0, (groups, samples // groups)), axis + 1
        shape = [1] * features.ndim
        shape[0], shape[axis] = groups, self.channels
        scale, shift = (term.reshape(shape) for term in terms.chunk(2, dim=-1))
        # not (1 + γ)·x + β: in half precision, adding 1 would round γ to two digits
        changed = torch.addcmul(features + shift, features, scale)
        if grouped:
            changed = changed.flatten(0, 1)
        return move_samples_back(changed, samples_at) if must_move else changed

    def _find_channel_axis(self, features: Tensor) -> int:
        """Return the axis of the channels."""
        last = features.ndim - 1
        # [B, C, T] of a 1d convolution and [B, T, C] of a transformer look alike
        channels_first = last > 1 and (self._first_of_three if last == 2 else self._first_of_more)
        samples_at = self.current().axis.axis
        for axis in (1, last) if channels_first else (last, min(1, last)):
            if axis != samples_at and features.shape[axis] == self.channels:
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
            # rows of all samples, step by step: only one ray for all of them is possible here
            outputs = outputs._replace(data=self._modulate(outputs.data, 1, FIRST))
        else:
            outputs = self._modulate(outputs, outputs.ndim - 1)
        hidden = state[0] if isinstance(state, tuple) else state
        changed = self._modulate_state(hidden)
        return outputs, (changed, *state[1:]) if isinstance(state, tuple) else changed

    def _modulate_state(self, hidden: Tensor) -> Tensor:
        """Modulate the last layer's among the final states, ``[layers * directions, B, H]``."""
        directions = self.channels // hidden.shape[-1]
        inner, last = hidden[:-directions], hidden[-directions:]
        rows = last.movedim(0, -2).flatten(-2)  # [B, directions * H], or one sample's without B
        unbatched = rows.ndim == 1
        rows = self._modulate(rows.unsqueeze(0) if unbatched else rows, 1, FIRST)
        rows = rows.squeeze(0) if unbatched else rows
        return torch.cat([inner, rows.unflatten(-1, (directions, -1)).movedim(-2, 0)])


class Film(InjectedConditioning):
    """A scale and a shift per channel after each block, from the ray (Perez et al. 2018).

    (1 + γ(c))·x + β(c) with c = J·(r - 1/J), the centred ray. γ and β of all blocks
    come from one perceptron J-width-(2 x channels) that runs once per ray. Its last layer starts at
    zero, so the outputs start unchanged.

    With a `rank`, the ray also changes the weights of every linear layer and convolution, heads
    included: W + Σ_j c_j B_j A_j, A_j and B_j of that rank, and b + Σ_j c_j d_j, where B_j and d_j
    start at zero. Not changed are grouped and transposed convolutions, layers that override
    `forward`, and those inside `nn.MultiheadAttention` and `nn.TransformerEncoderLayer`. No bias is
    added where a layer has none.

    Blocks are found automatically: repeated ones (residual stages, transformer layers), else
    normalisation layers, else hidden linear layers and convolutions, or the module in which a
    convolution is activated or pooled. `repr` shows which.

    Use when the network is deep or pretrained, or its input cannot be split (token ids); with a
    `rank` of 1 if the front should reach as far as that of separate networks.

    The batch axis need not come first inside the network: it is found at the first call with each
    shape. If samples influence one another, as nodes of a graph do, several rays take several
    calls.

    Args:
        backbone: any network; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted names of the blocks; found by themselves if `None`.
        width: hidden units of the perceptron.
        rank: of what the ray adds to weights; 0 leaves them alone.

    >>> model = Film(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2, rank=1)
    >>> model.places
    ('0', '0.layer', '2')
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        layer: tuple[str, ...] | str | None = None,
        width: int = 32,
        rank: int = 0,
    ) -> None:
        super().__init__(backbone, objectives)
        if width < 1:
            raise ConfigurationError(f"`width` must be at least 1, found {width}")
        if rank < 0:
            raise ConfigurationError(f"`rank` must be at least 0, found {rank}")
        named = (layer,) if isinstance(layer, str) else layer
        places = self._find_blocks() if named is None else named
        if not places:
            raise ConfigurationError("`layer` names the blocks to scale and shift, found none")
        blocks: dict[nn.Module, str] = {}
        for name in places:
            # used in several places it is still one
            blocks.setdefault(self._get_block(name), name)
        self._blocks = tuple(blocks.values())
        self._named = self._blocks if named is not None else ()
        # before anything is replaced: conditioned layers would hide what they contain
        widths = [self._find_width(name) for name in self._blocks]
        if rank > 0:
            for adapted in find_matrix_layers(self.backbone):
                self._insert(
                    make_low_rank(self.backbone.get_submodule(adapted), self.objectives, rank)
                )
        for name, block_width in zip(self._blocks, widths, strict=True):
            block = self._get_block(name)
            modulated = ModulatedRecurrent if is_recurrent(block) else Modulated
            self._insert(modulated(block, block_width))
        # named anew: a layer inside a modulated block is now called `block.layer`
        modules = self.backbone.named_modules()
        self._layers = tuple(name for name, module in modules if isinstance(module, LowRank))
        self.places = (*self._blocks, *self._layers)
        self._sizes = [2 * block_width.channels for block_width in widths]
        self.perceptron = nn.Sequential(
            nn.Linear(objectives, width), nn.SiLU(), nn.Linear(width, sum(self._sizes))
        )
        for parameter in self.perceptron[2].parameters():  # γ = β = 0: outputs start unchanged
            nn.init.zeros_(parameter)
        self.perceptron.to(widths[0].like)

    def _terms(self, rays: Tensor) -> list[Tensor]:
        """γ and β of each block, then the centred ray for each layer whose weights move."""
        enter: Any = self.perceptron[0]
        # of order 1, as what a layer reads should be
        centred = (self.objectives * rays - 1).to(enter.weight.dtype)
        # in full precision: the scale is near 1, where a half knows two digits
        with torch.autocast(centred.device.type, enabled=False):
            modulation: Tensor = self.perceptron(centred)
        return [*modulation.split(self._sizes, dim=-1), *[centred] * len(self._layers)]

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # hardly anything is the same for all rays, so that there is little to share
        terms = self._terms(rays := self.rays_for(rays))
        layout = self._layout(inputs, terms)
        if layout is None or not layout.samples_first:
            return stack_outputs(
                self._call_with(inputs, [term[index : index + 1] for term in terms])
                for index in range(len(rays))
            )
        samples = first(inputs).shape[0]

        def repeat(tensor: Tensor) -> Tensor:
            if tensor.shape[:1] != (samples,):  # what all samples share
                return tensor
            return tensor.expand(len(rays), *tensor.shape).flatten(0, 1)

        axes = [
            SampleAxis(block.axis, len(rays) * samples if block.inner else 0)
            for block in layout.blocks
        ]
        call = partial(self.call, map_tensors(repeat, inputs))
        repeated = self._run(call, terms, axes=axes)
        return unflatten_rays(repeated, len(rays))

    def _find_blocks(self) -> tuple[str, ...]:
        blocks = find_blocks(self.backbone)
        if blocks:
            return tuple(blocks)
        kind = type(self.backbone).__name__
        layers = [module for _, module in iter_leaves(self.backbone) if has_weight_matrix(module)]
        if not layers:
            raise ConfigurationError(
                f"a conditioned network needs layers with weights, found none in {kind}: condition "
                "the part that has them"
            )
        # rounding has a gradient of 0, so that no loss reaches what reads the ray
        if not is_differentiable(layers[-1]):
            raise ConfigurationError(
                f"no gradient passes through the last layers of {kind}, which are quantised to "
                "whole numbers, so a ray cannot be learned: condition and train the network first "
                "and quantise it afterwards, or keep its last two layers in floating point"
            )
        raise ConfigurationError(
            f"`film` looked for linear layers, convolutions, recurrent layers and wide embeddings, "
            f'found none that is called in {kind}: use how="hypernet", which computes all weights '
            "from the ray"
        )

    def _get_block(self, name: str) -> nn.Module:
        try:
            return self.backbone.get_submodule(name)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{name}`; `film` would take: "
                f"{', '.join(find_blocks(self.backbone)) or 'none'}"
            ) from error

    def _find_width(self, name: str) -> Width:
        check_is_called(self.backbone, name)
        block = self.backbone.get_submodule(name)
        width = find_width(block)
        if width is None:
            raise ConfigurationError(
                f"`film` cannot tell how many channels {type(block).__name__} at `{name}` has: "
                "name a normalisation layer, "
                "linear layer or convolution, or a module that ends in one"
            )
        return width

    def extra_repr(self) -> str:
        names = ", ".join(repr(name) for name in self._blocks)
        return f"objectives={self.objectives}, after=({names}), moved={len(self._layers)}"
