"""LeNet against the same network written with functions, and its hook for fused kernels."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import LeNet, lenet
from paretocosmos.nn.conditioning import Film, TransposedConv
from paretocosmos.runtime.device import to_device_layout

TWO = {"top_left": 10, "bottom_right": 10}
DOUBLE = torch.float64


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_it_has_the_papers_42350_parameters() -> None:
    assert _count(LeNet((1, 36, 36), TWO)) == 42_350  # FACTS.md, section 2


def test_the_network_of_phn_has_9x9_filters_and_31910_parameters() -> None:
    model = LeNet((1, 36, 36), TWO, kernel=9, rectified=False)
    assert _count(model) == 10 * 82 + 20 * 251 + 50 * 501 + 20 * 51 == 31_910


@pytest.mark.parametrize("kernel", [1, 5, 9])
@pytest.mark.parametrize("rectified", [True, False])
def test_its_settings_are_the_first_filter_and_the_activation(kernel: int, rectified: bool) -> None:
    model = LeNet((1, 21, 24), 7, kernel=kernel, rectified=rectified)
    inputs = torch.randn(5, 1, 21, 24)
    weights = list(model.parameters())
    assert weights[0].shape == (10, 1, kernel, kernel)
    out = inputs
    for weight, bias in zip(weights[0:4:2], weights[1:4:2], strict=True):
        out = F.max_pool2d(F.relu(F.conv2d(out, weight, bias)), 2)
    hidden = out.reshape(5, -1) @ weights[4].T + weights[5]
    assert (hidden < 0).any()  # so that a ReLU shows
    expected = (F.relu(hidden) if rectified else hidden) @ weights[6].T + weights[7]
    torch.testing.assert_close(model(inputs), expected)


@pytest.mark.parametrize("shape", [(1, 20, 20), (3, 20, 20)])
def test_placed_on_a_cpu_its_channels_lie_last_in_every_block(shape: tuple[int, ...]) -> None:
    model, inputs = LeNet(shape, 2), torch.randn(4, *shape)
    before, expected = inputs.clone(), model(inputs)
    to_device_layout(model, torch.device("cpu"))
    seen: list[Tensor] = []
    for block in (model.first, model.second):
        block.register_forward_hook(lambda _module, _given, out: seen.append(out))
    torch.testing.assert_close(model(inputs), expected)
    assert all(out.is_contiguous(memory_format=torch.channels_last) for out in seen)
    assert len(seen) == 2
    assert torch.equal(inputs, before)
    assert inputs.is_contiguous()


def test_ten_heads_have_the_modules_of_one() -> None:
    ten, one = LeNet((1, 36, 36), {str(at): 2 for at in range(10)}), LeNet((1, 36, 36), 20)
    assert [name for name, _ in ten.named_modules()] == [name for name, _ in one.named_modules()]
    assert (ten.heads, one.heads) == (("head",), ())  # one output is read by every objective
    assert _count(ten) == _count(one)


@pytest.mark.parametrize(
    "shape", [(5,), (36, 36), (1, 15, 36), (1, 36, 15), (0, 36, 36), (1, 1, 36, 36)]
)
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"`lenet`.* 16, found \("):
        LeNet(shape, 2)


@pytest.mark.parametrize("kernel", [1, 4, 9])
def test_the_smallest_image_depends_on_the_kernel(kernel: int) -> None:
    side = kernel + 11
    assert LeNet((1, side, side), 2, kernel=kernel).hidden.in_features == 20  # one pixel
    for shape in ((1, side - 1, side), (1, side, side - 1)):
        with pytest.raises(ConfigurationError, match=f"at least {side}, found"):
            LeNet(shape, 2, kernel=kernel)


def test_a_kernel_has_a_side() -> None:
    with pytest.raises(ConfigurationError, match=r"`kernel`.*found 0"):
        LeNet((1, 36, 36), 2, kernel=0)


# The hook a fused kernel hangs on


class Kernel:
    """What a fused kernel computes, in plain operations; counts its calls."""

    def __init__(self) -> None:
        self.terms: list[tuple[int, ...] | None] = []

    def __call__(
        self,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        term: Tensor | None = None,
        *,
        precision: str,
    ) -> Tensor:
        self.terms.append(None if term is None else tuple(term.shape))
        out = F.conv2d(inputs, weight, bias)
        if term is not None:
            out = out + term.repeat_interleave(len(inputs) // len(term), 0)
        return F.relu(F.max_pool2d(out, 2))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel()
    monkeypatch.setattr(lenet, "conv_pool", found)
    monkeypatch.setattr(lenet, "supports_tensors", lambda inputs: inputs.dtype == DOUBLE)
    return found


def test_a_kernel_gets_every_block_of_a_plain_network(kernel: Kernel) -> None:
    model, inputs = LeNet((1, 20, 20), 3).to(DOUBLE), torch.randn(4, 1, 20, 20, dtype=DOUBLE)
    found = model(inputs)
    assert kernel.terms == [None, None]
    torch.testing.assert_close(found.float(), model.float()(inputs.float()))
    assert len(kernel.terms) == 2


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_a_kernel_gets_the_term_of_a_conditioned_one(kernel: Kernel, groups: int) -> None:
    model = TransposedConv(LeNet((1, 20, 20), 3).to(DOUBLE), 2)
    inputs, rays = torch.randn(6, 1, 20, 20, dtype=DOUBLE), torch.rand(groups, 2, dtype=DOUBLE)
    found = model(inputs, rays)
    assert kernel.terms == [(groups, 10, 16, 16), None]
    torch.testing.assert_close(found.float(), model.float()(inputs.float(), rays.float()))
    assert len(kernel.terms) == 2


def test_a_kernel_gets_a_sweep_ray_by_ray(kernel: Kernel) -> None:
    model = TransposedConv(LeNet((1, 20, 20), 3).to(DOUBLE), 2)
    inputs, rays = torch.randn(6, 1, 20, 20, dtype=DOUBLE), torch.rand(4, 2, dtype=DOUBLE)
    found = model.each_ray(inputs, rays)
    assert kernel.terms == [(1, 10, 16, 16), None]  # under vmap: one map, all samples
    alone = torch.stack([model(inputs, ray) for ray in rays])
    torch.testing.assert_close(found, alone)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_kernel_gets_the_weights_of_every_ray(kernel: Kernel, groups: int) -> None:
    model = Film(LeNet((1, 20, 20), 3).to(DOUBLE), 2, rank=2).to(DOUBLE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "writes" in name or "shifts" in name:  # zero at the start
                parameter.normal_()
    inputs, rays = torch.randn(24, 1, 20, 20, dtype=DOUBLE), torch.rand(groups, 2, dtype=DOUBLE)
    found = model(inputs, rays)
    assert kernel.terms == [None, None]  # under vmap: a call for all rays
    # in float32 by torch's own operators, whose low rank is never written out
    torch.testing.assert_close(found.float(), model.float()(inputs.float(), rays.float()))
    assert len(kernel.terms) == 2


def test_a_kernel_gets_no_weights_of_rays_with_few_samples(kernel: Kernel) -> None:
    model = Film(LeNet((1, 20, 20), 3).to(DOUBLE), 2, rank=1).to(DOUBLE)
    model(torch.randn(6, 1, 20, 20, dtype=DOUBLE), torch.rand(6, 2, dtype=DOUBLE))
    assert kernel.terms == []
