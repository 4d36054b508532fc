"""A network with a label head and a group head, whose logits are adjusted to the ray."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.fairness.adjustment import (
    POINTS,
    POINTS_QUICK,
    FairnessAdjustment,
    cross_fit,
    joint_probabilities,
)
from paretocosmos.nn.conditioning import Conditioning, TrainingTask
from paretocosmos.objectives import Objective, RateObjective, weighted_mean
from paretocosmos.types import Inputs, Outputs, Targets

# The logit of the group that somebody is known to belong to: others have a chance of e⁻⁴⁰.
CERTAIN = 40.0
# The outputs of a two-headed network. Backbones of users have these names, too.
LABEL, GROUPS_IF_NEGATIVE, GROUPS_IF_POSITIVE = "answer", "groups_of_no", "groups_of_yes"
# Beside these, the logit of a trusted classifier.
BASE = "base"


class GroupCrossEntropy(Objective):
    """Cross-entropy of the sensitive groups, given the inputs and the label."""

    traceable = True

    def __init__(self, gap: RateObjective) -> None:
        super().__init__(name="group_entropy", target=gap.target)
        self.sensitive = gap.sensitive

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        assert not isinstance(outputs, Tensor)
        # P(g | x, y) at the label that the row has
        positive = targets[self.target].reshape(-1, 1) > 0.5
        logits = torch.where(positive, outputs[GROUPS_IF_POSITIVE], outputs[GROUPS_IF_NEGATIVE])
        groups = targets[self.sensitive].reshape(-1).long()
        return weighted_mean(F.cross_entropy(logits, groups, reduction="none"), targets)


class AdjustedNetwork(Conditioning):
    r"""Learns the label and the group; a closed-form adjustment then gives the logits at any ray.

    For a cross-entropy and a gap between rates of groups. Let p = P(y = 1 | x), and
    m = Σ μ_yg P(y, g | x) with multipliers μ, one for each class y and group g. The probability q
    that minimises the cross-entropy plus the gap, weighed by μ, solves m q² - (1 + m) q + p = 0. So
    the network is not trained on the gap, whose gradient is mostly noise where a group is small.
    Its label head learns p and its group head P(g | x, y); the multipliers for every weight of the
    gap are fitted to the training rows. At weight 0 of the gap the probability is p; at weight 1
    the gap of the training rows is closed; in between it falls in proportion, in small steps.

    Use for tables with a gap between groups, where it is the default. Avoid elsewhere: it handles
    no other objectives.

    Paper: Menon and Williamson 2018 derive the form of the best fair decisions.

    Args:
        backbone: a network with the outputs `outputs_for` names; it is copied.
        objectives: entries in a ray: 2, the cross-entropy and the gap.
        sensitive_groups: how many groups are compared.
        group_features: the inputs that are positive for the members of each group, where the group
            is known: then it is read and not learned.
        base_score: the input that is the logit of a trusted classifier, and the mean and deviation
            by which it is standardised: then it is adjusted, in place of the label head's.

    >>> class Certain(nn.Linear):  # both classes are equally likely, and all groups are known
    ...     def forward(self, groups):
    ...         answer = torch.zeros(len(groups), 1)
    ...         return {"answer": answer, "groups_of_no": groups, "groups_of_yes": groups}
    >>> model = AdjustedNetwork(Certain(1, 1), 2)
    >>> path = torch.tensor([[[0.0, 0.0]] * 2, [[-0.5, 0.5]] * 2])  # at weight 0 and 1
    >>> model.adjustment.multiplier_path = path
    >>> people = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])  # one of each group
    >>> for ray in torch.eye(2):
    ...     print([f"{chance:.2f}" for chance in model(people, ray).sigmoid().flatten()])
    ['0.50', '0.50']
    ['0.62', '0.38']
    """

    traceable: ClassVar[bool] = True
    group_features: Tensor | None

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        sensitive_groups: int = 2,
        group_features: tuple[int, ...] = (),
        base_score: tuple[float, ...] = (),
    ) -> None:
        super().__init__(backbone, objectives)
        if self.objectives != 2:
            raise ConfigurationError(
                "`fairness_adjustment` trades off a cross-entropy and a gap, found "
                f"{objectives} objectives: leave `conditioning` out"
            )
        self.sensitive_groups = sensitive_groups
        self.adjustment = FairnessAdjustment(sensitive_groups)
        self.base_score = base_score
        if group_features and len(group_features) != sensitive_groups:
            raise ConfigurationError(
                f"`group_features` must be one input for each of {sensitive_groups} groups, found "
                f"{len(group_features)}: leave it out"
            )
        places = torch.tensor(group_features) if group_features else None
        # a setting and no weight, so that it is not stored with these
        self.register_buffer("group_features", places, persistent=False)

    @classmethod
    def outputs_for(
        cls, outputs: int | Mapping[str, int], settings: Mapping[str, Any]
    ) -> int | Mapping[str, int]:
        """Return the sizes of the label head and, for each class, of the group head."""
        if outputs != 1:
            raise ConfigurationError(
                "`fairness_adjustment` needs a binary problem and a network with one output; found "
                f"{outputs}"
            )
        if settings.get("group_features"):
            return {LABEL: 1}
        groups = settings.get("sensitive_groups", 2)
        return {LABEL: 1, GROUPS_IF_NEGATIVE: groups, GROUPS_IF_POSITIVE: groups}

    @property
    def disclosure(self) -> str:
        """What it does with groups."""
        how = (
            "The network estimates from {columns} how likely somebody belongs to each group, and "
            "the preference moves answers by that estimate"
            if self.group_features is None
            else "The preference moves the answers of each group by a rule of its own"
        )
        return f"{how}: ask whether this is allowed where it is used."

    @property
    def ray_parameters(self) -> tuple[str, ...]:
        return ()

    @property
    def includes_ends(self) -> bool:
        # unlike a conditioned network, it is not trained at rays: the corners are as good as others
        return True

    def training_task(self, objectives: Sequence[Objective]) -> TrainingTask:
        """Train both heads on cross-entropies; after each epoch, fit the adjustment to the gap."""
        # decisions at another threshold are adjusted as those at 0.5 are
        gap = self._check_gap(getattr(objectives[1], "wrapped", objectives[1]))
        label = copy.copy(objectives[0])  # the caller's reads the one output of the whole network
        label.output = LABEL
        fit = partial(self.fit_adjustment, gap=gap)
        return TrainingTask(
            network=_Heads(self.backbone, self.compute_heads),
            # of a group that is read, the second is 0
            objectives=(label, GroupCrossEntropy(gap)),
            fit=fit,
            at_rays=self.at_rays,
            cross_fit=partial(self.cross_fit, gap=gap),
            # a trusted classifier's scores come from copies that were fitted without the row
            held_out=bool(self.base_score) and self.group_features is not None,
        )

    def fit_adjustment(
        self, outputs: Outputs, targets: Targets, *, gap: RateObjective, quick: bool = False
    ) -> None:
        """Fit the multipliers.

        Args:
            outputs: of both heads, for rows to fit to.
            targets: of these rows.
            gap: what is traded for the cross-entropy.
            quick: whether a rougher path will do, while training goes on.
        """
        points = POINTS_QUICK if quick else POINTS
        self.adjustment.fit(*_read_heads(outputs), targets, gap, points=points)

    def cross_fit(
        self, outputs: Outputs, targets: Targets, *, gap: RateObjective
    ) -> Callable[[Tensor], Outputs]:
        """Return a function of rays that adjusts each row by multipliers fitted to other rows.

        Args:
            outputs: of both heads, for some rows.
            targets: of these rows.
            gap: what is traded for the cross-entropy.
        """
        heads = _read_heads(outputs)
        predict = cross_fit(*heads, targets, gap)
        return lambda rays: predict(self.rays_for(rays)).unsqueeze(-1)

    def compute_heads(self, inputs: Inputs) -> Outputs:
        """Return the outputs of both heads, with what is read of the inputs and not learned."""
        outputs = self.call(inputs)
        if isinstance(outputs, Tensor) or not isinstance(inputs, Tensor):
            return outputs
        heads = {**outputs}
        if self.group_features is not None:
            members = inputs.index_select(-1, self.group_features) > 0
            logits = CERTAIN * members.to(outputs[LABEL])
            heads |= {GROUPS_IF_NEGATIVE: logits, GROUPS_IF_POSITIVE: logits}
        if self.base_score:
            place, mean, scale = self.base_score
            heads[BASE] = inputs.narrow(-1, int(place), 1) * scale + mean
        return heads

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        rays = self.rays_for(ray)
        label_logits, joint = _read_heads(self.compute_heads(inputs))
        adjusted: Tensor = self.adjustment(label_logits, joint, rays)
        return adjusted.unsqueeze(-1)

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return self.at_rays(self.compute_heads(inputs), rays)

    def at_rays(self, outputs: Outputs, rays: Tensor) -> Outputs:
        """Return the logits of all rows at each of N rays, ``[N, B, 1]``, from their heads'."""
        label_logits, joint = _read_heads(outputs)
        return self.adjustment.each_ray(label_logits, joint, self.rays_for(rays)).unsqueeze(-1)

    def _check_gap(self, gap: Objective) -> RateObjective:
        if not (isinstance(gap, RateObjective) and gap.linear):
            raise ConfigurationError(
                f"`fairness_adjustment` needs a gap between rates of groups, found `{gap.name}`: "
                "leave `conditioning` out"
            )
        if gap.groups != self.sensitive_groups:
            raise ConfigurationError(
                f"`sensitive_groups` is {self.sensitive_groups}, but `{gap.name}` compares "
                f"{gap.groups} groups: leave it out"
            )
        return gap

    def extra_repr(self) -> str:
        return f"sensitive_groups={self.sensitive_groups}"


class _Heads(nn.Module):
    """The heads of an adjusted network, whose parameters have the same names in both."""

    traceable: ClassVar[bool] = True

    def __init__(self, backbone: nn.Module, call: Callable[[Inputs], Outputs]) -> None:
        super().__init__()
        self.backbone, self._call = backbone, call

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        del ray
        return self._call(inputs)


def _read_heads(outputs: Outputs) -> tuple[Tensor, Tensor]:
    """Return the label's logits ``[B]`` and the joint probabilities ``[B, 2, groups]``."""
    names = {LABEL, GROUPS_IF_NEGATIVE, GROUPS_IF_POSITIVE}
    if not isinstance(outputs, Mapping) or not names <= outputs.keys():
        described = ", ".join(outputs) if isinstance(outputs, Mapping) else "one tensor"
        raise ConfigurationError(
            f"`fairness_adjustment` needs a network with the outputs `{LABEL}`, "
            f"`{GROUPS_IF_NEGATIVE}` and `{GROUPS_IF_POSITIVE}`, found {described}: leave "
            "`conditioning` out, or leave `backbone` out"
        )
    # names, not positions: a backbone may give its heads in any order
    label_logits = outputs.get(BASE, outputs[LABEL]).squeeze(-1)
    group_logits = torch.stack([outputs[GROUPS_IF_NEGATIVE], outputs[GROUPS_IF_POSITIVE]], dim=-2)
    return label_logits, joint_probabilities(label_logits, group_logits)
