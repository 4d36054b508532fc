"""The paper's conditioning for tables: the ray is concatenated to the input."""

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._split import How, SplitLinear
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs, each, first

__all__ = ["Concat"]


class Concat(Conditioning):
    """The ray beside the features, as in the paper (section 4), computed as W_x x + W_r r.

    Args:
        backbone: any network whose input enters a linear layer; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of that linear layer; found by itself if `None`.

    >>> model = Concat(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    def __init__(self, backbone: nn.Module, objectives: int, *, layer: str | None = None) -> None:
        super().__init__(backbone, objectives)
        self.where = layer or _first_linear(self.backbone)
        try:
            found = self.backbone.get_submodule(self.where)
        except AttributeError as error:
            raise ConfigurationError(
                f"the network has no layer `{self.where}`; its linear layers: "
                + (", ".join(_linear_layers(self.backbone)) or "none")
            ) from error
        if not isinstance(found, nn.Linear):
            raise ConfigurationError(
                f"`concat` needs a linear layer, found {type(found).__name__} at `{self.where}`; "
                f"its linear layers: {', '.join(_linear_layers(self.backbone)) or 'none'}"
            )
        split = SplitLinear(found, objectives)
        if self.where == "":  # the network is that one layer
            self.backbone = split
        else:
            self.backbone.set_submodule(self.where, split)

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._with(inputs, self.rays_for(ray), "groups")

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        rays = self.rays_for(rays)
        leading = (len(rays), len(first(inputs)))
        swept: Outputs
        try:
            outputs = self._with(inputs, rays, "sweep")
            swept = each(lambda out: torch.unflatten(out, 0, leading), outputs)
        except RuntimeError:  # B samples went past the layer, as in a skip connection
            alone = [self._with(inputs, ray, "groups") for ray in rays.unsqueeze(1)]
            swept = each(lambda *outs: torch.stack(outs), *alone)
        return swept

    def _with(self, inputs: Inputs, rays: Tensor, how: How) -> Outputs:
        split = self.backbone.get_submodule(self.where)
        assert isinstance(split, SplitLinear)
        split.rays, split.how = rays, how
        try:
            return self.call(inputs)
        finally:
            split.rays = None

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, layer={self.where!r}"


def _linear_layers(module: nn.Module) -> list[str]:
    return [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]


def _first_linear(module: nn.Module) -> str:
    named = getattr(module, "first_layer", None)
    if isinstance(named, str):
        return named
    found = _linear_layers(module)
    if not found:
        raise ConfigurationError(
            f"`concat` found no linear layer in {type(module).__name__}; name the layer the input "
            "enters with `layer`, or use another conditioning"
        )
    return found[0]
