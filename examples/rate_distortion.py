"""Image compression: few bits or a faithful picture, and one network for every quality.

An autoencoder rounds its code to whole numbers. A learned distribution of these numbers says how
many bits they take. Usually each quality needs a training of its own. Here bits and errors are two
losses, and the network takes their weights as an input. It learns from parts of two photographs and
is judged on columns that it has not seen. Half a minute on a laptop.

The photographs come with scikit-learn: one by danielbuechele, one by vultilion, both CC BY 2.0.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

from paretocosmos import condition, sample_rays

BLOCK, SIDE = 8, 64  # pixels of a block, and of the patches to learn from
FAST = 5.0  # the steps of rounding learn so many times as fast as other weights
UNIT = 0.01  # a squared error of 20 dB counts as much as a bit per pixel: losses of one size


def photographs() -> dict[str, Tensor]:
    """Columns of two photographs: to learn from, to choose settings by, and to judge by."""
    both = torch.from_numpy(np.stack(load_sample_images().images)).permute(0, 3, 1, 2)
    columns = (both[:, :, :416] / 255).split([192, 64, 128, 256], dim=3)
    return dict(zip(("left", "val", "test", "right"), columns, strict=True))


def patches(parts: dict[str, Tensor], count: int) -> Tensor:
    """Squares from random places beside the columns that are held out, half of them mirrored."""
    found = []
    for number in range(count):
        picture = parts["left" if number % 2 else "right"][torch.randint(2, ())]
        top, start = (int(torch.randint(size - SIDE + 1, ())) for size in picture.shape[1:])
        patch = picture[:, top : top + SIDE, start : start + SIDE]
        found.append(patch.flip(2) if number % 4 > 1 else patch)
    return torch.stack(found)


def correction(channels: int) -> nn.Sequential:
    """What neighbouring blocks say of a block; nothing at the start."""
    last = nn.Conv2d(64, channels, 1, bias=False)
    nn.init.zeros_(last.weight)
    return nn.Sequential(nn.Conv2d(channels, 64, 3, padding=1), nn.ReLU(), last)


class Codec(nn.Module):
    """Blocks of pixels to whole numbers and back; starts as the principal components of blocks."""

    samples_first = True  # everywhere inside, so that one call may have several rays

    def __init__(self, x: Tensor, channels: int = 96, step: float = 0.2) -> None:
        super().__init__()
        blocks = F.unfold(x - 0.5, BLOCK, stride=BLOCK).transpose(1, 2).flatten(0, 1)
        variances, basis = torch.linalg.eigh(blocks.T @ blocks / len(blocks))
        kernels = basis[:, -channels:].T.reshape(channels, 3, BLOCK, BLOCK)
        self.analysis = nn.Conv2d(3, channels, BLOCK, stride=BLOCK, bias=False)
        self.encoder = correction(channels)
        # for each channel the step of rounding, and the middle and the width of the values; they
        # depend on the ray alone, which enters after layers: hence a layer
        self.channels = nn.Linear(1, 3 * channels, bias=False)
        self.decoder = correction(channels)
        self.synthesis = nn.ConvTranspose2d(channels, 3, BLOCK, stride=BLOCK, bias=False)
        for layer in (self.analysis, self.synthesis):
            layer.weight = nn.Parameter(kernels.clone())
        width = variances[-channels:].log() / 2 - 0.6  # of a logistic distribution
        start = torch.cat([torch.full_like(width, math.log(step)), torch.zeros_like(width), width])
        self.channels.weight = nn.Parameter(start.unsqueeze(1) / FAST)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        code = self.analysis(x - 0.5)
        terms = self.channels(x.new_full((len(x), 1), FAST))[:, :, None, None]
        step, middle, width = terms.chunk(3, dim=1)
        exact = (code + self.encoder(code)) / step.exp()
        # rounding has no gradient: the picture takes that of the exact values, and the bits are
        # counted with noise of the same size in training
        whole = exact + (exact.round() - exact).detach()
        counted = exact + torch.rand_like(exact) - 0.5 if self.training else whole
        low, high = ((step.exp() * (counted + s) - middle) / width.exp() for s in (-0.5, 0.5))
        # the logarithm of sigmoid(high) - sigmoid(low)
        chance = F.logsigmoid(high) + F.logsigmoid(-low) + (-torch.expm1(low - high)).log()
        code = whole * step.exp()
        picture = self.synthesis(code + self.decoder(code)) + 0.5
        bits = -chance.sum(dim=(1, 2, 3)) / math.log(2)
        return {"picture": picture, "bits": bits, "numbers": whole}


def losses_of(outputs: dict[str, Tensor], x: Tensor) -> Tensor:
    """Bits per pixel, and the mean squared error in units, of every sample: ``[B, 2]``."""
    error = (outputs["picture"] - x).square().mean(dim=(1, 2, 3))
    return torch.stack([outputs["bits"] / x[0, 0].numel(), error / UNIT], dim=1)


def train(
    model: nn.Module,
    parts: dict[str, Tensor],
    *,
    steps: int,
    ray: Tensor | None = None,
) -> None:
    """A loop of one's own: every step has four rays, or that of a network for one ray alone."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 2e-3, total_steps=steps, pct_start=0.1, cycle_momentum=False
    )
    for _ in range(steps):
        x = patches(parts, 16)
        rays = sample_rays(4, 2) if ray is None else ray.expand(4, 2)
        losses = losses_of(model(x, rays) if ray is None else model(x), x)
        optimiser.zero_grad()
        (rays.repeat_interleave(4, dim=0) * losses).sum(dim=1).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimiser.step()
        schedule.step()
    model.eval()


def judged(outputs: dict[str, Tensor], x: Tensor) -> tuple[float, float]:
    """Bits per pixel and PSNR in decibels of the rounded code of pictures."""
    error = (outputs["picture"].clamp(0, 1) - x).square().mean()
    return 3 * float(outputs["bits"].sum()) / x.numel(), -10 * math.log10(error)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    parts = photographs()
    model = condition(Codec(patches(parts, 400)), objectives=2)
    train(model, parts, steps=500)
    for weight in (0.9, 0.7, 0.5, 0.3, 0.1):
        with torch.no_grad():
            outputs = model(parts["test"], torch.tensor([weight, 1 - weight]))
        bits, psnr = judged(outputs, parts["test"])
        print(f"bits matter {weight}: {bits:.2f} bits per pixel, PSNR {psnr:.1f} dB")
