"""How much a network's outputs change with the ray, beside how much they change with the input."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import BLOCK, evaluating
from paretocosmos.evaluation.sweeping import blocks, sweep
from paretocosmos.runtime.device import precise
from paretocosmos.types import Inputs, Outputs, first, map_tensors

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
    r"""How much the ray matters to a network; 0 if it changes nothing.

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
    every = torch.cat([rays, rays.mean(dim=0, keepdim=True)])
    order = torch.randperm(len(first(inputs)), generator=torch.Generator().manual_seed(0))
    by_ray: list[Tensor] = []
    by_input: list[Tensor] = []
    size: list[Tensor] = []
    with evaluating(model), precise("fp32"):
        for at, outputs in blocks(model, inputs, every, prepare, room=BLOCK):
            other = map_tensors(lambda part, here=at: part[order[here].to(part.device)], inputs)
            apart = _heads(sweep(model, other, every[-1:], prepare))
            heads = _heads(outputs)
            for head, one in zip(heads, apart, strict=True):
                centre = head[-1].double()
                by_ray.append((head[:-1].double() - centre).abs().sum() / len(rays))
                by_input.append((centre - one[0].double()).abs().sum())
                size.append(centre.abs().sum())
    count = len(heads)
    totals = [torch.stack(part).reshape(-1, count).sum(dim=0) for part in (by_ray, by_input, size)]
    return float(_ratio(*totals).mean())


def _ratio(by_ray: Tensor, by_input: Tensor, size: Tensor) -> Tensor:
    """Of every head, given sums of distances between rays, between samples, and from 0."""
    ratio = torch.where(by_input > ROUNDING * size, by_ray / by_input, torch.nan)
    return torch.where(by_ray == 0, 0.0, ratio)


def _heads(outputs: Outputs) -> list[Tensor]:
    """The tensors of a network's outputs, however it packs them."""
    found: list[Tensor] = []

    def keep(part: Tensor) -> Tensor:
        found.append(part)
        return part

    map_tensors(keep, outputs)
    return found
