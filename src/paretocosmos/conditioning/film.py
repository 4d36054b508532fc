"""FiLM: the ray scales and shifts the channels after each block, and may move the weights too."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._batch import Lead
from paretocosmos.conditioning._kinds import Width, width_of
from paretocosmos.conditioning._layers import blocks_of, check_called, matrices_of
from paretocosmos.conditioning._layouts import samples_of
from paretocosmos.conditioning._listening import ListeningConditioning
from paretocosmos.conditioning._low_rank import LowRank, adapted
from paretocosmos.conditioning._modulated import modulated
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs, map_tensors

__all__ = ["Film"]


class Film(ListeningConditioning):
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
        places = self._found() if named is None else named
        if not places:
            raise ConfigurationError("`layer` names the blocks to scale and shift, found none")
        blocks: dict[nn.Module, str] = {}
        for place in places:
            blocks.setdefault(self._block(place), place)  # used in several places it is still one
        self._blocks = tuple(blocks.values())
        self._named = self._blocks if named is not None else ()
        widths = [self._width(place) for place in self._blocks]
        if rank > 0:
            self._adapt(rank)
        for place, known in zip(self._blocks, widths, strict=True):
            self._put(modulated(self._block(place), known))
        every = self.backbone.named_modules()
        self._layers = tuple(name for name, part in every if isinstance(part, LowRank))
        self._sizes = [2 * known.channels for known in widths]
        self.perceptron = nn.Sequential(
            nn.Linear(objectives, width), nn.SiLU(), nn.Linear(width, sum(self._sizes))
        )
        for start in self.perceptron[2].parameters():
            nn.init.zeros_(start)
        self.perceptron.to(widths[0].like)
        before_loading: Any = self.register_load_state_dict_pre_hook
        before_loading(_refuse_uncentred)

    @property
    def places(self) -> tuple[str, ...]:
        return (*self._blocks, *self._layers)

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._tell(inputs, self._terms(self.rays_for(ray)))

    def _terms(self, rays: Tensor) -> list[Tensor]:
        """What the listeners hear at rays ``[G, J]``: γ and β of each block, or the ray itself."""
        enter: Any = self.perceptron[0]
        # of order 1, as what a layer reads should be
        centred = (self.objectives * rays - 1).to(enter.weight.dtype)
        # in full precision: the scale is near 1, where a half knows two digits
        with torch.autocast(centred.device.type, enabled=False):
            told: Tensor = self.perceptron(centred)
        return [*told.split(self._sizes, dim=-1), *[centred] * len(self._layers)]

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # hardly anything is the same for all rays, so that there is little to share
        rays, told = self.rays_for(rays), self._terms(self.rays_for(rays))
        layout = self._layout(inputs, told)
        swept: Outputs
        if layout is None or not layout.plain:
            alone = [
                self._tell(inputs, [one[at : at + 1] for one in told]) for at in range(len(rays))
            ]
            swept = map_tensors(lambda *outs: torch.stack(outs), *alone)
            return swept
        samples = samples_of(inputs, 0)

        def repeated(part: Tensor) -> Tensor:
            if part.shape[:1] != (samples,):  # what all samples share
                return part
            return part.expand(len(rays), *part.shape).flatten(0, 1)

        leads = [
            Lead(lead.axis, len(rays) * samples if lead.inner else 0) for lead in layout.blocks
        ]
        outputs = self._hear(map_tensors(repeated, inputs), told, "groups", leads)
        swept = map_tensors(lambda out: torch.unflatten(out, 0, (len(rays), -1)), outputs)
        return swept

    def _adapt(self, rank: int) -> None:
        """Let the weights of every layer move with the ray."""
        places = matrices_of(self.backbone)
        if not places:
            raise ConfigurationError(
                "`rank` needs linear layers or convolutions, found none in "
                f"{type(self.backbone).__name__}: set it to 0"
            )
        for layer in [self.backbone.get_submodule(place) for place in places]:
            self._put(adapted(layer, self.objectives, rank))

    def _found(self) -> tuple[str, ...]:
        found = blocks_of(self.backbone)
        if not found:
            raise ConfigurationError(
                "`film` looked for repeated blocks, normalisation layers, and hidden linear layers "
                f"or convolutions, found none in {type(self.backbone).__name__}: name the layers "
                'to scale and shift, as in `layer=("encoder.first", "encoder.second")`, or use '
                "`concat`, which needs only one layer"
            )
        return tuple(found)

    def _block(self, place: str) -> nn.Module:
        try:
            return self.backbone.get_submodule(place)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{place}`; `film` would take: "
                f"{', '.join(blocks_of(self.backbone)) or 'none'}"
            ) from error

    def _width(self, place: str) -> Width:
        check_called(self.backbone, place)
        block = self.backbone.get_submodule(place)
        width = width_of(block)
        if width is None:
            raise ConfigurationError(
                f"`film` cannot tell how many channels {type(block).__name__} at `{place}` has: "
                "name a normalisation layer, "
                "linear layer or convolution, or a module that ends in one"
            )
        return width

    def extra_repr(self) -> str:
        names = ", ".join(repr(place) for place in self._blocks)
        return f"objectives={self.objectives}, after=({names}), moved={len(self._layers)}"


def _refuse_uncentred(_: nn.Module, weights: Mapping[str, Any], prefix: str, *_rest: Any) -> None:
    """Refuse weights that mean something else: the first `film` read the ray uncentred."""
    if f"{prefix}ray.0.weight" in weights:
        raise ConfigurationError(
            "these weights come from `film` in a version before 0.1.0, which did not centre the "
            "ray: train again, or use them with the version that trained them"
        )
