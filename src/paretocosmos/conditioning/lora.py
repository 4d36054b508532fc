"""LoRA: low-rank weights, mixed by the ray, on a network that stays as it is."""

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._adapters import adaptable, adapter, bypassed
from paretocosmos.conditioning._base import inside
from paretocosmos.conditioning._layers import blocks_of, check_called
from paretocosmos.conditioning._listening import ListeningConditioning
from paretocosmos.conditioning._low_rank import LowRank
from paretocosmos.conditioning._sweep import ray_by_ray
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["Lora"]


class Lora(ListeningConditioning):
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
        self.backbone.requires_grad_(False)
        every = adaptable(self.backbone)
        places = _in_blocks(self.backbone, every) if layer is None else self._matching(layer, every)
        for part in [self.backbone.get_submodule(place) for place in places]:
            self._put(adapter(part, self.objectives, adapter_rank))
        put = {n: part for n, part in self.backbone.named_modules() if isinstance(part, LowRank)}
        self._layers = tuple(put)
        like = put[self._layers[0]].writes
        self.shares = nn.Parameter(first_shares(self.objectives, adapter_rank).to(like))
        self._named = () if layer is None else self._layers

    @property
    def places(self) -> tuple[str, ...]:
        return self._layers

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        rays = self.rays_for(ray)
        told = self.scale * rays @ self.shares.to(rays)
        return self._tell(inputs, [told] * len(self._layers))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return ray_by_ray(self, inputs, rays)

    def _matching(self, layer: tuple[str, ...] | str, every: list[str]) -> list[str]:
        """The layers that were named, each once."""
        chosen: dict[str, None] = {}
        for end in (layer,) if isinstance(layer, str) else layer:
            found = [name for name in every if f".{name}".endswith(f".{end}")]
            if not found:
                raise ConfigurationError(self._refusal(end, every))
            chosen |= dict.fromkeys(found)
        return list(chosen)

    def _refusal(self, end: str, every: list[str]) -> str:
        """Why no layer of that name can be adapted."""
        some = ", ".join(every[:4]) + ", ..." * (len(every) > 4)
        parts = [
            part for part in self.backbone.named_modules() if f".{part[0]}".endswith(f".{end}")
        ]
        if not parts or not end:
            return f"`layer` names layers of the network, found no `{end}`; there are: {some}"
        name, part = parts[0]
        check_called(self.backbone, name)
        if bypassed(self.backbone, name):
            return (
                f"a conditioned layer must be called, but `{name}` is not always called: the "
                f"module around it computes with its weight; name another layer ({some})"
            )
        return (
            "`lora` adapts linear layers, convolutions without groups and `Conv1D`, with the "
            f"`forward` of their class and weights of a real type, found {type(part).__name__} at "
            f"`{name}`: name another layer ({some})"
        )

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, adapted={len(self._layers)}, scale={self.scale}"


def first_shares(objectives: int, rank: int) -> Tensor:
    """How much of each component the corners of the simplex take, ``[J, J * rank]``.

    What they take is linear in the ray, ``1 + w (J r_j - 1)``.
    """
    own = 1 - torch.arange(rank, dtype=torch.float64) / (rank - 0.5)  # 1 to nearly 0
    seen = objectives * torch.eye(objectives, dtype=torch.float64) - 1
    return (1 + seen.unsqueeze(-1) * own).flatten(1)


def _in_blocks(network: nn.Module, every: list[str]) -> list[str]:
    """The layers inside repeated blocks; all of them where a block is itself such a layer."""
    if not every:
        raise ConfigurationError(
            "`lora` adapts linear layers, convolutions without groups and `Conv1D`, found none in "
            f"{type(network).__name__}: use another conditioning"
        )
    blocks = tuple(blocks_of(network))
    held = [name for name in every if inside(name, blocks)]
    return every if set(held) & set(blocks) or not held else held
