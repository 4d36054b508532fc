"""How much a network's outputs change with the ray, beside how much they change with the input."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluating, sweep
from paretocosmos.runtime.device import precise
from paretocosmos.types import Inputs, Outputs, map_tensors

__all__ = ["sensitivity"]

# Outputs of equal samples differ by this share at most, depending on their place in a batch.
ROUNDING = 1e-5


def sensitivity(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    *,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
) -> float:
    r"""How much a network depends on the ray; 0 if not at all.

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
    >>> round(sensitivity(Shifted(), x, rays), 1), sensitivity(Shifted(), x, rays[:1])
    (0.9, 0.0)
    """
    with evaluating(model), precise("fp32"):
        outputs = sweep(model, inputs, torch.cat([rays, rays.mean(dim=0, keepdim=True)]), prepare)
        ratios = torch.stack([_ratio(head) for head in _heads(outputs)])
    return float(ratios.mean())


def _ratio(head: Tensor) -> Tensor:
    """Of one head's outputs ``[N + 1, B, ...]``, the last being those at the mean ray."""
    head = head.double()
    order = torch.randperm(head.shape[1], generator=torch.Generator().manual_seed(0))
    centre = head[-1]
    by_ray = (head[:-1] - centre).abs().mean()
    by_input = (centre - centre[order.to(head.device)]).abs().mean()
    apart = by_input > ROUNDING * centre.abs().mean()
    ratio = torch.where(apart, by_ray / by_input, torch.nan)
    return torch.where(by_ray == 0, 0.0, ratio)


def _heads(outputs: Outputs) -> list[Tensor]:
    """The tensors of a network's outputs, however it packs them."""
    found: list[Tensor] = []

    def keep(part: Tensor) -> Tensor:
        found.append(part)
        return part

    map_tensors(keep, outputs)
    return found
