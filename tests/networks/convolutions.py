"""Convolutions: along time, in space, U-Nets, networks for images."""

import torch
import torch.nn.functional as F
from tests.networks._entry import Made, numbers
from torch import Tensor, nn

__all__ = ["IMAGES", "SIGNALS_AND_VOLUMES", "U_NETS"]


class Temporal(nn.Module):
    """Dilated causal convolutions with skips (TCN)."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(3, 8, 1)
        self.layers = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**at) for at in range(3))
        self.head = nn.Linear(8, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.enter(inputs)
        for at, layer in enumerate(self.layers):
            hidden = hidden + layer(F.pad(hidden, (2**at, 0))).relu()
        return self.head(hidden[..., -1])


def _signal_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 8, 3), nn.ReLU(), nn.Conv1d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 2)
    )


def _signal_norms() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 8, 3),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Conv1d(8, 8, 3),
        nn.InstanceNorm1d(8, affine=True),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )


def _volumes() -> nn.Module:
    return nn.Sequential(
        nn.Conv3d(1, 6, 3), nn.ReLU(), nn.Conv3d(6, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )


class Video(nn.Module):
    """3d residual blocks over frames."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv3d(3, 8, (1, 3, 3), padding=(0, 1, 1))
        self.blocks = nn.ModuleList(nn.Conv3d(8, 8, 3, padding=1) for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, clip: Tensor) -> Tensor:
        hidden = self.stem(clip)
        for block in self.blocks:
            hidden = hidden + block(hidden).relu()
        return self.head(hidden.mean(dim=(2, 3, 4)))


class Double(nn.Sequential):
    """Two convolutions of a U-Net."""

    def __init__(self, before: int, after: int, norm: bool = True) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1),
            nn.GroupNorm(2, after) if norm else nn.Identity(),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1),
            nn.ReLU(),
        )


class UNet(nn.Module):
    """Down, up, and a skip: ``[B, 3, 8, 8]`` to a map of classes."""

    def __init__(self, norm: bool = True, classes: int = 3) -> None:
        super().__init__()
        self.down1, self.down2 = Double(3, 6, norm), Double(6, 8, norm)
        self.up = nn.ConvTranspose2d(8, 6, 2, stride=2)
        self.join, self.head = Double(12, 6, norm), nn.Conv2d(6, classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        high = self.down1(images)
        low = self.down2(F.max_pool2d(high, 2))
        return self.head(self.join(torch.cat([high, self.up(low)], dim=1)))


class UNet1d(nn.Module):
    """For signals: ``[B, 2, 16]`` to ``[B, 1, 16]``."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.low = nn.Conv1d(2, 6, 3, padding=1), nn.Conv1d(6, 8, 3, padding=1)
        self.up, self.head = nn.ConvTranspose1d(8, 6, 2, stride=2), nn.Conv1d(12, 1, 3, padding=1)

    def forward(self, signal: Tensor) -> Tensor:
        high = self.down(signal).relu()
        low = self.low(F.max_pool1d(high, 2)).relu()
        return self.head(torch.cat([high, self.up(low)], dim=1))


class Fcn(nn.Module):
    """A fully convolutional network with an auxiliary head, as torchvision's give."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.deeper = nn.Sequential(nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.ReLU())
        self.classifier, self.auxiliary = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 3, 1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        early = self.backbone(images)
        late = self.deeper(early)
        scaled = [
            F.interpolate(maps, size=images.shape[-2:], mode="bilinear")
            for maps in (self.classifier(late), self.auxiliary(early))
        ]
        return {"out": scaled[0], "aux": scaled[1]}


class Depth(nn.Module):
    """An encoder and a decoder with two dense heads."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(Double(3, 8), nn.MaxPool2d(2), Double(8, 8))
        self.depth, self.normals = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 3, 1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        coded = F.interpolate(self.encoder(images), scale_factor=2)
        return {"depth": self.depth(coded), "normals": self.normals(coded)}


class Patches(nn.Module):
    """A ViT: patches, a class token, positions, encoder layers."""

    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 5, 8))
        self.blocks = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
                for _ in range(depth)
            )
        )
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch(images).flatten(2).transpose(1, 2)
        token = self.token.expand(patches.shape[0], -1, -1)
        hidden = self.blocks(torch.cat([token, patches], dim=1) + self.positions)
        return self.head(self.norm(hidden[:, 0]))


class Windows(nn.Module):
    """Attention inside windows, merged into the batch as in Swin: ``[B * windows, 4, C]``."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 2, stride=2)
        self.norm = nn.LayerNorm(8)
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)
        self.grow, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.enter(images)
        windows = maps.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 4, 5, 1)
        flat = self.norm(windows.reshape(-1, 4, 8))
        mixed = self.grow(self.mix(flat, flat, flat)[0]).relu()
        return self.head(mixed.reshape(images.shape[0], -1, 8).mean(dim=1))


class Residual(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(2, width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        return (maps + self.second(self.norm(self.first(maps)).relu())).relu()


def _lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, 12),
        nn.ReLU(),
        nn.Linear(12, 3),
    )


def _residual() -> nn.Module:
    blocks = [Residual(8) for _ in range(3)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)]
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Sequential(*blocks), *head)


def _separable() -> nn.Module:
    def block() -> nn.Module:
        deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        return nn.Sequential(deep, nn.GroupNorm(2, 8), nn.ReLU6(), nn.Conv2d(8, 8, 1))

    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)]
    return nn.Sequential(nn.Conv2d(3, 8, 3), block(), block(), *head)


SIGNALS_AND_VOLUMES: dict[str, Made] = {
    "TCN": lambda: (Temporal(), numbers(3, 12)),
    "1d CNN": lambda: (_signal_cnn(), numbers(2, 16)),
    "1d CNN with norms": lambda: (_signal_norms(), numbers(2, 16)),
    "3d CNN": lambda: (_volumes(), numbers(1, 6, 6, 6)),
    "video": lambda: (Video(), numbers(3, 4, 6, 6)),
}
U_NETS: dict[str, Made] = {
    "U-Net": lambda: (UNet(), numbers(3, 8, 8)),
    "U-Net without norms": lambda: (UNet(norm=False), numbers(3, 8, 8)),
    "1d U-Net": lambda: (UNet1d(), numbers(2, 16)),
    "FCN, two outputs": lambda: (Fcn(), numbers(3, 8, 8)),
    "depth and normals": lambda: (Depth(), numbers(3, 8, 8)),
}
IMAGES: dict[str, Made] = {
    "LeNet": lambda: (_lenet(), numbers(1, 10, 10)),
    "residual network": lambda: (_residual(), numbers(3, 8, 8)),
    "separable convolutions": lambda: (_separable(), numbers(3, 8, 8)),
    "ViT": lambda: (Patches(), numbers(3, 8, 8)),
    "windowed attention": lambda: (Windows(), numbers(3, 8, 8)),
}
