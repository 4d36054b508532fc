"""Tilt: answers that lean against a gap between groups, by a formula."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._tilted import ANSWER, OF_NO, OF_YES, PLACES, likely, tilted
from paretocosmos.conditioning.base import Conditioning
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["Tilt"]


class Tilt(Conditioning):
    r"""Learns the chance of a yes and of each group; a formula then gives the answer at any ray.

    For a cross-entropy and a gap between rates of groups. Let p = P(yes | x), and
    m = Σ μ_yg P(y, g | x) with multipliers μ, one for each class y and group g. The probability q
    that minimises the cross-entropy plus the gap, weighed by μ, solves m q² - (1 + m) q + p = 0. So
    the network is not trained on the gap, whose gradient is mostly noise where a group is small. It
    learns p and P(g | x, y); the multipliers for every weight of the gap are found on the training
    rows (`path`). At weight 0 of the gap the answer is p; at weight 1 the gap of the training rows
    is closed; in between it falls in proportion, in small steps.

    In training mode it gives what it learns, by name; in evaluation mode the logits of q.

    Use for tables with a gap between groups, where it is the default. Avoid elsewhere: it handles
    no other objectives.

    Paper: Menon and Williamson 2018 derive the form of the best fair decisions.

    Args:
        backbone: a network with the outputs `outputs_for` names; it is copied.
        objectives: entries in a ray: 2, the cross-entropy and the gap.
        sensitive_groups: how many groups are compared.

    >>> class Certain(nn.Linear):  # a yes is as likely as a no, and everybody's group is known
    ...     def forward(self, groups):
    ...         answer = torch.zeros(len(groups), 1)
    ...         return {"answer": answer, "groups_of_no": groups, "groups_of_yes": groups}
    >>> model = Tilt(Certain(1, 1), 2).eval()
    >>> model.follow(torch.tensor([[[0.0, 0.0]] * 2, [[-0.5, 0.5]] * 2]))  # at weight 0 and 1
    >>> people = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])  # one of each group
    >>> for ray in torch.eye(2):
    ...     print([f"{chance:.2f}" for chance in model(people, ray).sigmoid().flatten()])
    ['0.50', '0.50']
    ['0.62', '0.38']
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
        self.path: Tensor
        self.register_buffer("path", torch.zeros(PLACES, 2, sensitive_groups))

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
        """Set the multipliers, ``[places, 2, groups]``, by the gap's weight; 0 until then."""
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
        places = torch.arange(len(self.path), device=rays.device, dtype=rays.dtype)
        at = rays[:, 1:] / rays.sum(dim=-1, keepdim=True) * (len(self.path) - 1)
        # the nearest: between two places the gap need not lie between theirs
        near = (at.round() == places).to(rays)
        found: Tensor = (near @ self.path.flatten(1).to(rays)).unflatten(1, self.path.shape[1:])
        return found

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        # version 0.2 wrote no multipliers where all are 0
        path = state_dict.setdefault(f"{prefix}path", torch.zeros_like(self.path))
        self.follow(torch.empty_like(path))  # it may have another number of places
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"sensitive_groups={self.sensitive_groups}"
