"""Bjøntegaard's difference against closed forms, and the bits of the example's codec."""

import math

import numpy as np
import pytest
import torch
from benchmarks.rate_distortion import bd_rate
from examples.rate_distortion import FAST, Codec, judged, losses_of

from paretocosmos import condition

PSNR = np.array([24.0, 27.0, 29.0, 32.0, 36.0])


def _curve(rates: np.ndarray, psnr: np.ndarray = PSNR) -> np.ndarray:
    return np.stack([rates, psnr], axis=1)


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.5])
def test_a_constant_factor_is_the_difference(factor: float) -> None:
    rates = np.array([0.1, 0.3, 0.4, 0.9, 2.0])
    assert bd_rate(_curve(factor * rates), _curve(rates)) == pytest.approx(factor - 1)


def test_only_the_psnr_of_both_curves_counts() -> None:
    # log rates are straight lines in PSNR: their mean difference is that in the middle, of 27 to 36
    slow, fast = np.exp(0.1 * (PSNR - 30)), np.exp(0.3 * (PSNR + 3 - 30))
    found = bd_rate(_curve(slow), _curve(fast, PSNR + 3))
    assert found == pytest.approx(math.expm1((0.1 - 0.3) * (31.5 - 30)))


def test_the_order_of_points_does_not_matter() -> None:
    rates = np.array([0.1, 0.3, 0.4, 0.9, 2.0])
    assert bd_rate(_curve(rates)[::-1], 1.0 * _curve(rates)) == pytest.approx(0)


def test_curves_without_a_common_psnr_are_refused() -> None:
    with pytest.raises(ValueError, match="no PSNR is on both curves"):
        bd_rate(_curve(PSNR), _curve(PSNR, PSNR + 20))


@pytest.fixture
def x() -> torch.Tensor:
    """Smooth colours with some noise."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand(6, 3, 8, 8, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, scale_factor=8, mode="bilinear")
    return (smooth + 0.05 * torch.randn(smooth.shape, generator=generator)).clamp(0, 1)


def _entropy(numbers: torch.Tensor) -> float:
    """The bits that the best code for each channel by itself would take."""
    bits = 0.0
    for channel in numbers.transpose(0, 1):
        counts = channel.unique(return_counts=True)[1].double()
        bits -= float((counts * (counts / counts.sum()).log2()).sum())
    return bits


def test_bits_are_the_cross_entropy_of_rounded_numbers(x: torch.Tensor) -> None:
    codec = Codec(x).eval()
    with torch.no_grad():
        outputs = codec(x)
        step, middle, width = (FAST * codec.channels.weight[:, 0]).double().chunk(3)
    numbers = outputs["numbers"].double()
    assert torch.equal(numbers, numbers.round())
    # by the distribution function itself, which torch has
    base = torch.distributions.Uniform(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    logistic = torch.distributions.TransformedDistribution(
        base,
        [
            torch.distributions.SigmoidTransform().inv,
            torch.distributions.AffineTransform(middle[:, None, None], width.exp()[:, None, None]),
        ],
    )
    size = step.exp()[:, None, None]
    chance = logistic.cdf(size * (numbers + 0.5)) - logistic.cdf(size * (numbers - 0.5))
    assert float(outputs["bits"].sum()) == pytest.approx(float(-chance.log2().sum()), rel=1e-4)
    # no distribution takes fewer bits than the frequencies of the numbers do
    assert float(outputs["bits"].sum()) > _entropy(numbers)


def test_a_codec_starts_as_the_principal_components(x: torch.Tensor) -> None:
    codec = Codec(x, channels=192).eval()
    with torch.no_grad():
        outputs = codec(x)
    # all components are there: what is left is rounding to multiples of .2
    error = float((outputs["picture"] - x).square().mean())
    assert error < 0.2**2 / 12 * 1.05
    bits, psnr = judged(outputs, x)
    assert psnr >= -10 * math.log10(error) - 1e-6
    assert losses_of(outputs, x)[:, 0].mean() == pytest.approx(bits, rel=1e-4)


def test_a_ray_for_each_sample_is_a_call_for_each(x: torch.Tensor) -> None:
    model = condition(Codec(x), objectives=2).eval()
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    rays = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    with torch.no_grad():
        together = model(x, rays)["bits"]
        alone = torch.cat([model(x[2 * n : 2 * n + 2], ray)["bits"] for n, ray in enumerate(rays)])
    assert together == pytest.approx(alone, rel=1e-3)
    assert len({round(float(bits)) for bits in together}) == 6
