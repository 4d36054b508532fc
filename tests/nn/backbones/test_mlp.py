import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Mlp


@pytest.mark.parametrize(
    ("shape", "hidden", "outputs"),
    [((88,), (60, 25), 1), ((20,), (60, 25), 1), ((3, 4), (7,), 5), ((6,), (), 2)],
)
def test_parameters_are_those_of_its_linear_layers(
    shape: tuple[int, ...], hidden: tuple[int, ...], outputs: int
) -> None:
    widths = [math.prod(shape), *hidden, outputs]
    expected = sum((a + 1) * b for a, b in pairwise(widths))
    model = Mlp(shape, outputs, hidden=hidden)
    assert sum(p.numel() for p in model.parameters()) == expected
    assert model(torch.randn(9, *shape)).shape == (9, outputs)


def test_adult_has_the_papers_6891_by_default() -> None:
    assert sum(p.numel() for p in Mlp((88,), 1).parameters()) == 6891


def test_forward_is_relu_between_linear_layers_and_none_at_the_end() -> None:
    model, inputs = Mlp((2, 3), 4, hidden=(8, 5)), torch.randn(16, 2, 3)
    weights = list(model.parameters())
    hidden = inputs.reshape(16, 6)
    for weight, bias in zip(weights[0:4:2], weights[1:4:2], strict=True):
        hidden = F.relu(hidden @ weight.T + bias)
    expected = hidden @ weights[4].T + weights[5]
    torch.testing.assert_close(model(inputs), expected)
    assert (expected < 0).any()  # so that a ReLU at the end would show


@pytest.mark.parametrize("hidden", [(), (8, 5)])
def test_several_heads_are_parts_of_the_last_layer(hidden: tuple[int, ...]) -> None:
    model, inputs = Mlp((6,), {"left": 1, "right": 2}, hidden=hidden), torch.randn(7, 6)
    whole = Mlp((6,), 3, hidden=hidden)
    whole.load_state_dict(model.state_dict())
    outputs = model(inputs)
    assert list(outputs) == ["left", "right"]
    torch.testing.assert_close(torch.cat([*outputs.values()], dim=1), whole(inputs))
    (head,) = model.heads
    last = model.get_submodule(head)
    assert last.out_features == 3


@pytest.mark.parametrize("hidden", [(0,), (5, -1), (2_000_000,)])
def test_widths_must_be_possible(hidden: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="`hidden` must be at least 1"):
        Mlp((6,), 1, hidden=hidden)
