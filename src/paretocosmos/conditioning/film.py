"""FiLM: the ray scales and shifts the channels after each block."""

from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._layers import Width, blocks_of, check_called, width_of
from paretocosmos.conditioning._listening import Listener, ListeningConditioning, check_groups
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs, first, map_tensors

__all__ = ["Film"]


class Film(ListeningConditioning):
    """A scale and a shift per channel after each block, from the ray (Perez et al. 2018).

    (1 + γ(r))·x + β(r), with γ and β of all blocks from one perceptron J-width-(2 x channels) that
    runs once per ray. Its last layer starts at zero: the network starts as it was.

    Blocks are found: repeated ones (residual stages, transformer layers); where there are none,
    normalisation layers; where there are none, hidden linear layers and convolutions. `repr` shows
    which.

    Use when the network is deep or pretrained, or its input cannot be split (token ids). Avoid when
    the first axis of what a block gives is not the batch.

    Args:
        backbone: any network; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted names of the blocks; found by themselves if `None`.
        width: hidden units of the perceptron.

    >>> model = Film(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model.places
    ('0',)
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
    ) -> None:
        super().__init__(backbone, objectives)
        if width < 1:
            raise ConfigurationError(f"`width` must be at least 1, found {width}")
        named = (layer,) if isinstance(layer, str) else layer
        places = self._found() if named is None else named
        if not places:
            raise ConfigurationError("`layer` names the blocks to scale and shift, found none")
        blocks: dict[nn.Module, str] = {}
        for place in places:
            blocks.setdefault(self._block(place), place)  # used in several places it is still one
        self._places = tuple(blocks.values())
        widths = [self._width(place) for place in self._places]
        for block, known in zip(blocks, widths, strict=True):
            self._put(Modulated(block, known))
        self._sizes = [2 * known.channels for known in widths]
        self.ray = nn.Sequential(
            nn.Linear(objectives, width), nn.SiLU(), nn.Linear(width, sum(self._sizes))
        )
        for start in self.ray[2].parameters():
            nn.init.zeros_(start)
        self.ray.to(widths[0].like)

    @property
    def places(self) -> tuple[str, ...]:
        return self._places

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._at(inputs, self.rays_for(ray))

    def _at(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # in full precision: the scale is near 1, where a half knows two digits
        enter: Any = self.ray[0]
        with torch.autocast(rays.device.type, enabled=False):
            told: Tensor = self.ray(rays.to(enter.weight.dtype))
        return self._tell(inputs, told.split(self._sizes, dim=-1))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # hardly anything is the same for all rays, so that there is little to share
        rays, samples = self.rays_for(rays), len(first(inputs))

        def repeated(part: Tensor) -> Tensor:
            return part.expand(len(rays), *part.shape).flatten(0, 1)

        outputs = self._at(map_tensors(repeated, inputs), rays)
        swept: Outputs = map_tensors(
            lambda out: torch.unflatten(out, 0, (len(rays), samples)), outputs
        )
        return swept

    def _found(self) -> tuple[str, ...]:
        found = blocks_of(self.backbone)
        if not found:
            raise ConfigurationError(
                "`film` looked for repeated blocks, normalisation layers, and hidden linear layers "
                f"or convolutions, found none in {type(self.backbone).__name__}: name what to "
                'scale and shift, as in `layer=("encoder.first", "encoder.second")`'
            )
        return tuple(found)

    def _block(self, place: str) -> nn.Module:
        try:
            return self.backbone.get_submodule(place)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{place}`; those `film` would take: "
                f"{', '.join(blocks_of(self.backbone)) or 'none'}"
            ) from error

    def _width(self, place: str) -> Width:
        check_called(self.backbone, place)
        block = self.backbone.get_submodule(place)
        width = width_of(block)
        if width is None:
            raise ConfigurationError(
                f"`film` needs to know how many channels a layer gives, which "
                f"{type(block).__name__} at `{place}` does not say: name a normalisation layer, "
                "linear layer or convolution, or a module that ends in one"
            )
        return width

    def extra_repr(self) -> str:
        names = ", ".join(repr(place) for place in self._places)
        return f"objectives={self.objectives}, after=({names})"


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
                f"`film` scales a tensor, or the first of a tuple, found that "
                f"{type(self.layer).__name__} gives {type(outputs).__name__}: name another layer "
                "with `layer`"
            )
        changed = self._modulate(features)
        return (changed, *outputs[1:]) if several else changed

    def _modulate(self, features: Tensor) -> Tensor:
        terms = self.heard().to(features.device, features.dtype)
        samples, groups = features.shape[0], terms.shape[0]
        check_groups(samples, groups)
        axis = self._axis(features)
        grouped = groups not in (1, samples)
        if grouped:
            features = torch.unflatten(features, 0, (groups, samples // groups))
        shape = [1] * features.ndim
        shape[0], shape[axis] = groups, self.channels
        scale, shift = (term.reshape(shape) for term in terms.chunk(2, dim=-1))
        changed = torch.addcmul(features + shift, features, scale)
        return changed.flatten(0, 1) if grouped else changed

    def _axis(self, features: Tensor) -> int:
        """Where the channels are, counted from the end."""
        leads = features.ndim > 2 and (self._leads if features.ndim == 3 else self._images)
        for axis in (1 - features.ndim, -1) if leads else (-1, 1 - features.ndim):
            if features.ndim > 1 and features.shape[axis] == self.channels:
                return axis
        raise ConfigurationError(
            f"`film` expects {self.channels} channels after {type(self.layer).__name__}, found "
            f"outputs of shape {tuple(features.shape)}: name another layer with `layer`, such as "
            "the normalisation layer, linear layer or convolution it ends in"
        )
