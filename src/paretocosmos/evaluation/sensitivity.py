"""How much a network's outputs depend on the ray."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluation_mode, predict_at_rays
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Inputs, map_tensors

# Outputs of equal samples differ by this share at most, depending on their place in a batch.
ROUNDING = 1e-5


def compute_sensitivity(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    *,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
) -> float:
    r"""Measure how much a network depends on the ray; 0 if not at all.

    .. math:: \frac{E\,|f(x, r) - f(x, \bar r)|}{E\,|f(x, \bar r) - f(x', \bar r)|}

    over the rays r with mean r̄, the samples x, and x' another sample; the mean over heads. At 1
    the ray moves an output as far as another input would.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        inputs: some hundred samples.
        rays: ``[N, J]``, those of a front.
        prepare: a problem's.

    Returns:
        The ratio; NaN where all samples have the same outputs, so that there is no measure.

    >>> class Shifted(nn.Module):
    ...     def forward(self, x: Tensor, ray: Tensor) -> Tensor:
    ...         return x + 10 * ray[0]
    >>> x = torch.randn(500, 1, generator=torch.Generator().manual_seed(0))
    >>> rays = torch.tensor([[0.4, 0.6], [0.6, 0.4]])
    >>> round(compute_sensitivity(Shifted(), x, rays), 1)
    0.9
    """
    with evaluation_mode(model), set_precision("fp32"):
        outputs = predict_at_rays(
            model, inputs, torch.cat([rays, rays.mean(dim=0, keepdim=True)]), prepare
        )
        ratios: list[Tensor] = []

        def add_ratio(head: Tensor) -> Tensor:
            ratios.append(_compute_ratio(head))
            return head

        map_tensors(add_ratio, outputs)
    return float(torch.stack(ratios).mean())


def _compute_ratio(head: Tensor) -> Tensor:
    """Compute the ratio for a head's outputs ``[N + 1, B, ...]``, the last at the mean ray."""
    head = head.double()
    # x' is another sample: the same pairs every time, so that the number can be reproduced
    order = torch.randperm(head.shape[1], generator=torch.Generator().manual_seed(0))
    centre = head[-1]
    by_ray = (head[:-1] - centre).abs().mean()
    by_input = (centre - centre[order.to(head.device)]).abs().mean()
    differs = by_input > ROUNDING * centre.abs().mean()
    ratio = torch.where(differs, by_ray / by_input, torch.nan)
    return torch.where(by_ray == 0, 0.0, ratio)
