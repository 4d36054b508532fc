"""Tilt: answers that lean against a gap between groups, by a formula."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._tilted import ANSWER, OF_NO, OF_YES, likely, tilted
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["Tilt"]


class Tilt(Conditioning):
    r"""Learns how likely a yes and each group are; a formula then applies the ray.

    For a cross-entropy and a gap between rates of groups. With p = P(yes | x) and
    m = Σ μ_yg P(y, g | x), the probability q that minimises cross-entropy plus the gap, weighted by
    multipliers μ, solves m q² - (1 + m) q + p = 0. So the network need not be trained on the gap,
    whose gradient is mostly noise where a group is small: it learns p and P(g | x, y), and μ for
    every weight of the gap is found on the training rows (`path`). Weight 0 is the network as
    trained; weight 1 closes the gap on the training rows; in between the gap falls in proportion,
    in small steps.

    In training mode it gives what it learns, by name; in evaluation mode the logits of q.

    Use for tables with a gap between groups; it is the default there. Avoid elsewhere: it serves no
    other objectives.

    Paper: Menon and Williamson 2018 derive the form of the best fair decisions.

    Args:
        backbone: a network with the outputs `outputs_for` names; it is copied.
        objectives: entries in a ray: 2, the cross-entropy and the gap.
        sensitive_groups: how many groups are compared.
    """

    traceable: ClassVar[bool] = True
    closed_form: ClassVar[bool] = True

    def __init__(self, backbone: nn.Module, objectives: int, *, sensitive_groups: int = 2) -> None:
        super().__init__(backbone, objectives)
        if self.objectives != 2:
            raise ConfigurationError(
                f"`tilt` trades off a cross-entropy and a gap, found {objectives} objectives: "
                "leave `conditioning` out"
            )
        self.sensitive_groups = sensitive_groups
        self.path: Tensor | None
        self.register_buffer("path", None)

    @classmethod
    def outputs_for(
        cls, outputs: int | Mapping[str, int], settings: Mapping[str, Any]
    ) -> int | Mapping[str, int]:
        """What its backbone gives: the answer's logit, and those of the groups of either class."""
        if outputs != 1:
            raise ConfigurationError(
                f"`tilt` needs a binary problem and a network with one output; found {outputs}"
            )
        groups = settings.get("sensitive_groups", 2)
        return {ANSWER: 1, OF_NO: groups, OF_YES: groups}

    @property
    def ray_parameters(self) -> frozenset[str]:
        return frozenset()

    def follow(self, path: Tensor) -> None:
        """From now on multipliers are these, ``[places, 2, groups]``, by the gap's weight."""
        self.path = path.to(next(self.parameters()))

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        rays = self.rays_for(ray)
        found = self.call(inputs)
        if self.training:
            return found
        answer, joint = likely(found)
        pull = self._pull(rays)
        rows, groups = answer.shape[0], pull.shape[0]
        if groups not in (1, rows):
            pull = pull.repeat_interleave(rows // groups, dim=0)
        return tilted(answer, (joint * pull).sum(dim=(-2, -1))).unsqueeze(-1)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return self.at_rays(self.call(inputs), rays)

    def at_rays(self, learned: Outputs, rays: Tensor) -> Outputs:
        answer, joint = likely(learned)
        pull = self._pull(self.rays_for(rays).to(joint))
        against = pull.flatten(1) @ joint.flatten(1).T
        return tilted(answer, against).unsqueeze(-1)

    def _pull(self, rays: Tensor) -> Tensor:
        """The multipliers ``[R, 2, groups]`` of rays ``[R, 2]``."""
        if self.path is None:
            return rays.new_zeros(rays.shape[0], 2, self.sensitive_groups)
        places = torch.arange(len(self.path), device=rays.device, dtype=rays.dtype)
        at = rays[:, 1:] / rays.sum(dim=-1, keepdim=True) * (len(self.path) - 1)
        # the nearest: between two places the gap need not lie between theirs
        near = (at.round() == places).to(rays)
        found: Tensor = (near @ self.path.flatten(1).to(rays)).unflatten(1, self.path.shape[1:])
        return found

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Tensor], prefix: str, *args: Any
    ) -> None:
        if f"{prefix}path" in state_dict and self.path is None:  # trained, and found since
            self.follow(torch.empty_like(state_dict[f"{prefix}path"]))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"sensitive_groups={self.sensitive_groups}"
