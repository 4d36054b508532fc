"""Clean against robust accuracy: how much to give up on plain digits to withstand an attack.

Each pixel of a digit may be changed by up to 4 of its 16 grey levels, so that the network errs.
One network learns from plain and from attacked digits at once. How much each counts is an input,
and the attack is always on the network at the preference that is asked for.
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from paretocosmos import condition, sample_rays

EPSILON = 4 / 16  # of a pixel from 0 to 1


def attacked(model: nn.Module, images: Tensor, label: Tensor, ray: Tensor, *, steps: int) -> Tensor:
    """Images within `EPSILON` of these on which the loss is as large as gradient steps make it.

    Args:
        model: ``forward(images, ray) -> logits``.
        images: ``[B, 1, 8, 8]``, from 0 to 1.
        label: their digits ``[B]``.
        ray: the preference at which the network is attacked.
        steps: projected steps along the gradient's sign, from a random start.
    """
    low, high = (images - EPSILON).clamp_min(0), (images + EPSILON).clamp_max(1)
    found = low + (high - low) * torch.rand_like(images)
    for _ in range(steps):
        found.requires_grad_()
        loss = F.cross_entropy(model(found, ray), label, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, found)
        found = found.detach() + 2.5 * EPSILON / steps * gradient.sign()
        found = torch.minimum(torch.maximum(found, low), high)
    return found


def network() -> nn.Module:
    """A perceptron with two hidden layers."""
    hidden = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(128, 10))


def trained(
    model: nn.Module, images: Tensor, label: Tensor, *, ray: Tensor | None = None, steps: int = 1000
) -> nn.Module:
    """The network, trained on plain and on attacked images.

    Args:
        model: ``forward(images, ray) -> logits``.
        images: ``[N, 1, 8, 8]``, from 0 to 1.
        label: their digits ``[N]``.
        ray: how much plain and attacked images count; drawn anew for each step if `None`.
        steps: of 128 images each.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=4e-3)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        at = sample_rays(1, 2, alpha=0.5)[0] if ray is None else ray
        some = torch.randint(len(images), (128,))
        x, y = images[some], label[some]
        bad = attacked(model, x, y, at, steps=5)
        losses = torch.stack([F.cross_entropy(model(one, at), y) for one in (x, bad)])
        optimiser.zero_grad()
        (at * losses).sum().backward()
        optimiser.step()
        slower.step()
    return model


def split(seed: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Images and labels: 1,000 to train on, 297 to validate and 500 to test."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    parts = zip(("train", "val", "test"), order.split([1000, 297, 500]), strict=True)
    return {name: (images[part], torch.tensor(digits.target)[part]) for name, part in parts}


def accuracy(model: nn.Module, images: Tensor, label: Tensor, ray: Tensor) -> float:
    """The share of images that are read correctly."""
    with torch.no_grad():
        return float((model(images, ray).argmax(dim=1) == label).float().mean())


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = split(seed=1)
    model = trained(condition(network(), objectives=2), *data["train"])
    images, label = data["test"]
    for weight in (0.0, 0.25, 0.5, 0.75, 1.0):
        ray = torch.tensor([1 - weight, weight])
        clean = accuracy(model, images, label, ray)
        robust = accuracy(model, attacked(model, images, label, ray, steps=20), label, ray)
        print(f"attacks matter {weight:.2f}: {clean:.1%} of plain digits, {robust:.1%} of attacked")
