"""Layers that are more than their class says: normalised weights, LoRA, quantised ones."""

import math
import warnings

import torch
import torch.nn.functional as F
from tests.networks._entry import STEPS, Made, numbers, tokens
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

__all__ = ["LORA", "PARAMETRISED", "QUANTISED"]


def _weight_norm() -> nn.Module:
    wrap = parametrizations.weight_norm
    return nn.Sequential(
        wrap(nn.Linear(4, 12)), nn.ReLU(), wrap(nn.Linear(12, 12)), nn.ReLU(), nn.Linear(12, 2)
    )


def _old_weight_norm() -> nn.Module:
    """The hook that came before parametrisations, which many published networks still have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        old = nn.utils.weight_norm
        layers = [old(nn.Conv1d(2, 8, 3)), nn.ReLU(), old(nn.Conv1d(8, 8, 3)), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(96, 3))


def _spectral_norm() -> nn.Module:
    wrap = parametrizations.spectral_norm
    maps = [wrap(nn.Conv2d(3, 8, 3)), nn.LeakyReLU(0.2), wrap(nn.Conv2d(8, 8, 3)), nn.LeakyReLU()]
    return nn.Sequential(*maps, nn.Flatten(), wrap(nn.Linear(128, 2)))


class Symmetric(nn.Module):
    """A parametrisation of one's own."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight.triu() + weight.triu(1).mT


def _own_parametrisation() -> nn.Module:
    inner = nn.Linear(8, 8)
    parametrize.register_parametrization(inner, "weight", Symmetric())
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), inner, nn.Tanh(), nn.Linear(8, 3))


class Orthogonal(nn.Module):
    """A residual network with orthogonal weights."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.blocks = nn.ModuleList(parametrizations.orthogonal(nn.Linear(8, 8)) for _ in range(2))
        self.head = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.enter(inputs)
        for block in self.blocks:
            hidden = hidden + block(hidden).relu()
        return self.head(hidden)


class PeftLinear(nn.Module):
    """As peft lays it out: the layer, then adapters in mappings by name."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.base_layer = base.requires_grad_(False)
        self.lora_dropout = nn.ModuleDict({"default": nn.Identity()})
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, rank, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, base.out_features, bias=False)})
        self.in_features, self.out_features = base.in_features, base.out_features

    def forward(self, inputs: Tensor) -> Tensor:
        added: Tensor = self.lora_B["default"](self.lora_A["default"](inputs))
        return self.base_layer(inputs) + added


class LoraSubclass(nn.Linear):
    """As loralib does it: a linear layer with two more parameters."""

    def __init__(self, before: int, after: int, rank: int = 2) -> None:
        super().__init__(before, after)
        self.weight.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.randn(rank, before) / math.sqrt(before))
        self.lora_B = nn.Parameter(torch.zeros(after, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + inputs @ self.lora_A.T @ self.lora_B.T


class LoraMerged(nn.Module):
    """Never calls the layer, only reads its weight; what reads is written last."""

    def __init__(self, linear: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.lora_up = nn.Linear(rank, linear.out_features, bias=False)
        self.lora_down = nn.Linear(linear.in_features, rank, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        weight = self.linear.weight + self.lora_up.weight @ self.lora_down.weight
        return F.linear(inputs, weight, self.linear.bias)


class LoraConv(nn.Module):
    """A convolution with a narrow one beside it."""

    def __init__(self, conv: nn.Conv2d, rank: int = 2) -> None:
        super().__init__()
        self.base_layer = conv.requires_grad_(False)
        self.lora_A = nn.Conv2d(conv.in_channels, rank, 3, padding=1, bias=False)
        self.lora_B = nn.Conv2d(rank, conv.out_channels, 1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.base_layer(inputs) + self.lora_B(self.lora_A(inputs))


class LoraBlock(nn.Module):
    """Attention and a feed-forward part whose projections are adapted."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q_proj, self.v_proj = PeftLinear(nn.Linear(8, 8)), PeftLinear(nn.Linear(8, 8))
        self.k_proj = nn.Linear(8, 8)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.norm(inputs)
        query, key, value = self.q_proj(hidden), self.k_proj(hidden), self.v_proj(hidden)
        return inputs + F.scaled_dot_product_attention(query, key, value)


class LoraTransformer(nn.Module):
    """Token ids through blocks of adapted attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(13, 8)
        self.blocks = nn.ModuleList(LoraBlock() for _ in range(2))
        self.head = nn.Linear(8, 3)

    def forward(self, words: Tensor) -> Tensor:
        hidden = self.words(words)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden.mean(dim=1))


def _chain(first: nn.Module, second: nn.Module) -> nn.Module:
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(8, 2))


def _lora_images() -> nn.Module:
    convs = [LoraConv(nn.Conv2d(3, 8, 3, padding=1)), nn.ReLU()]
    convs += [LoraConv(nn.Conv2d(8, 8, 3, padding=1)), nn.ReLU()]
    return nn.Sequential(*convs, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))


def _dynamic(network: nn.Module, kinds: set[type[nn.Module]]) -> nn.Module:
    """torch's own dynamic quantisation, which is deprecated and still in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised: nn.Module = torch.ao.quantization.quantize_dynamic(network.eval(), kinds)
    return quantised


def _int8_body() -> nn.Module:
    body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
    head = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    return nn.Sequential(_dynamic(body, {nn.Linear}), head)


class Int8Lstm(nn.Module):
    """A recurrent layer in whole numbers and a head in real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = _dynamic(nn.Sequential(nn.LSTM(4, 8, batch_first=True)), {nn.LSTM})
        self.hidden, self.head = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.hidden(self.rnn(inputs)[0][:, -1]).relu())


class Int8Linear(nn.Module):
    """Weights in whole numbers, computed with in real ones; gradients pass through."""

    quantised: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, before: int, after: int, top: int = 127) -> None:
        super().__init__()
        self.in_features, self.out_features = before, after
        linear = nn.Linear(before, after)
        scale = linear.weight.detach().abs().amax(dim=1, keepdim=True) / top
        self.register_buffer("quantised", (linear.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", linear.bias.detach())

    def forward(self, inputs: Tensor) -> Tensor:
        return F.linear(inputs, self.quantised * self.scale, self.bias)


class QLora(nn.Module):
    """A layer of 4 bits and an adapter."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.base_layer = Int8Linear(before, after, top=7)
        self.lora_A, self.lora_B = nn.Linear(before, 2, bias=False), nn.Linear(2, after, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.base_layer(inputs) + self.lora_B(self.lora_A(inputs))


def _int8_mlp() -> nn.Module:
    layers = [nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)]
    return _dynamic(nn.Sequential(*layers), {nn.Linear})


PARAMETRISED: dict[str, Made] = {
    "weight_norm": lambda: (_weight_norm(), numbers(4)),
    "weight_norm by a hook": lambda: (_old_weight_norm(), numbers(2, 16)),
    "spectral_norm": lambda: (_spectral_norm(), numbers(3, 8, 8)),
    "symmetric weights": lambda: (_own_parametrisation(), numbers(4)),
    "orthogonal weights": lambda: (Orthogonal(), numbers(4)),
}
LORA: dict[str, Made] = {
    "LoRA as in peft": lambda: (
        _chain(PeftLinear(nn.Linear(4, 8)), PeftLinear(nn.Linear(8, 8))),
        numbers(4),
    ),
    "LoRA as in loralib": lambda: (_chain(LoraSubclass(4, 8), LoraSubclass(8, 8)), numbers(4)),
    "LoRA, merged": lambda: (
        _chain(LoraMerged(nn.Linear(4, 8)), LoraMerged(nn.Linear(8, 8))),
        numbers(4),
    ),
    "LoRA on convolutions": lambda: (_lora_images(), numbers(3, 8, 8)),
    "LoRA on attention": lambda: (LoraTransformer(), tokens(13, STEPS)),
}
QUANTISED: dict[str, Made] = {
    "int8 MLP": lambda: (_int8_mlp(), numbers(4)),
    "int8 body, float head": lambda: (_int8_body(), numbers(4)),
    "int8 LSTM, float head": lambda: (Int8Lstm(), numbers(STEPS, 4)),
    "int8 weights only": lambda: (_chain(Int8Linear(4, 8), Int8Linear(8, 8)), numbers(4)),
    "4-bit weights with LoRA": lambda: (_chain(QLora(4, 8), QLora(8, 8)), numbers(4)),
}
