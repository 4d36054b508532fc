"""Means of groups of people, compared: what is trained is not bent by the noise of a batch."""

import torch
from torch import Tensor

from paretocosmos.objectives._groups import (
    GroupObjective,
    group_means,
    largest_known,
    membership,
)
from paretocosmos.types import Outputs, Targets


class MeansObjective(GroupObjective):
    """The means of the groups, compared: of something, over some rows of every group.

    A subclass says which rows (`over`) and what is averaged (`counted`): by default all rows, and
    positive predictions. The value is the largest mean minus the smallest; where `over` names
    several kinds of rows, the largest of these gaps.

    A group without such rows is left out in a training batch; in the score of a whole split it
    makes the value NaN, because nothing can be said.
    """

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        """What is averaged, given how positive each sample's prediction is: ``[B]`` to ``[B]``."""
        return positive

    def compared(self, rates: Tensor) -> Tensor:
        """What means ``[kinds of rows, groups]`` come to: a scalar."""
        return (rates.amax(dim=-1) - rates.amin(dim=-1)).amax()

    def leanings(self, rates: Tensor, heat: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """How a smooth `compared` changes with every rate, first and second derivative.

        Args:
            rates: ``[kinds of rows, groups]``.
            heat: what is smooth, τ: differences far below it count as none.
            known: which of the rates are; the others take no part.
        """
        # τ log Σ exp(difference / τ) over ordered pairs of groups, each with itself too
        pairs = known.unsqueeze(-1) & known.unsqueeze(-2)
        pairs = pairs | torch.eye(self.groups, device=rates.device, dtype=torch.bool)
        apart = (rates.unsqueeze(-1) - rates.unsqueeze(-2)) / heat
        share = torch.where(pairs, apart, -torch.inf).flatten().softmax(dim=0).reshape(apart.shape)
        high, low = share.sum(dim=-1), share.sum(dim=-2)
        first = high - low
        alone = share.diagonal(dim1=-2, dim2=-1)
        return first, (high + low - 2 * alone - first.square()) / heat

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        total, there, squares, weights = self._sums(positive, targets)
        rates = group_means(total, there)
        # how many rows a rate has, were their weights equal; one alone tells nothing of its noise
        rows = there.square() / torch.where(weights > 0, weights, 1.0)
        known = rows > 1
        spread = squares / torch.where(there > 0, there, 1.0) - rates.square()
        noise = torch.where(known, spread.clamp(min=0) / torch.where(known, rows - 1, 1.0), 0.0)
        return self._steady(rates, noise, known)

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        return self.compared(self.rates(positive, targets))

    def rates(self, positive: Tensor, targets: Targets) -> Tensor:
        """The means ``[kinds of rows, groups]`` of decisions, 0 or 1 for each sample."""
        total, there, *_ = self._sums(positive, targets)
        found: Tensor = total / there
        return found

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Totals and sizes ``[2, kinds of rows, groups]``, for every class if there are several."""
        decided = self.decisions(outputs)
        if decided.ndim == 1:
            return self._sums(decided, targets)[:2]
        return self.each_class(decided, targets, lambda *one: self._sums(*one)[:2])

    def from_sums(self, sums: Tensor) -> Tensor:
        total, there = sums.unbind(dim=-3)
        if sums.ndim == 3:
            return self.compared(total / there)
        return largest_known(torch.vmap(self.compared)(total / there))

    def sizes(self, like: Tensor, targets: Targets) -> Tensor:
        """How many samples each mean is over, by their weights, ``[kinds of rows, groups]``."""
        there: Tensor = self._sums(like, targets)[1]
        return there

    def _steady(self, rates: Tensor, noise: Tensor, known: Tensor) -> Tensor:
        r"""The value of `compared`, with a gradient that the noise of a batch does not bend.

        A gap of a batch grows with the noise of its rates: E|d| > |E d|. Its plain gradient lowers
        the noise too, until everybody gets the same answer, which has none. For a smooth function
        Φ of rates r with independent normal noise of variances v, Stein's lemma has

        .. math:: E\,\nabla\Phi(r) = \sum_g E[\Phi_g]\,\nabla E[r_g]
                  + \tfrac12 \sum_g E[\Phi_{gg}]\,\nabla v_g

        and the second sum is taken off.
        """
        fixed, level = rates.detach(), noise.detach()
        heat = (2 * level.sum() / known.sum().clamp(min=1)).sqrt().clamp(min=1e-6)
        first, second = self.leanings(fixed, heat, known)
        steered = (first * rates - second * noise / 2).sum()
        return self.compared(fixed) + steered - steered.detach()

    def _sums(self, positive: Tensor, targets: Targets) -> Tensor:
        """``[4, kinds of rows, groups]``: of values, of rows, of squared values, of weights.

        Rows are counted by their weights, so that the last is a sum of squared ones.
        """
        counted = self.counted(positive, targets)
        weight, every = targets.get("weight"), []
        for rows in self.over:
            chosen = torch.ones_like(positive)
            if rows != "all":
                label = self.label(targets, positive)
                chosen = label if rows == "positives" else 1 - label
            once = chosen if weight is None else chosen * weight.reshape(chosen.shape)
            every += [counted * chosen, chosen, counted.square() * chosen, once]
        member = membership(positive, targets, self.sensitive, self.groups)
        sums = torch.stack([one.to(member.dtype) for one in every]) @ member
        return sums.reshape(len(self.over), 4, self.groups).movedim(1, 0)
