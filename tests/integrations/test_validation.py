"""What cannot work in somebody else's loop is refused in a sentence, before it begins."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import Cosmos, Method, Objective, condition, registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.integrations.fronts import FrontEvaluator
from paretocosmos.integrations.weighting import LossWeighting
from paretocosmos.nn.conditioning import Concat
from paretocosmos.objectives import CrossEntropy, MeanSquaredError


class Own(nn.Module):
    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        return x * ray[..., :1]


class Open(nn.Module):
    def forward(self, *parts: Tensor) -> Tensor:
        return parts[0]


class Optional(nn.Module):
    def forward(self, x: Tensor, ray: Tensor | None = None) -> Tensor:
        return x


class Masked(nn.Module):
    """As language models are called: the second argument is no ray."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return input_ids


ONE = MeanSquaredError(name="one")
TWO = (ONE, MeanSquaredError(name="two"))


def _build(
    model: Any = None,
    objectives: Sequence[Objective] = TWO,
    method: Any = "linear",
    settings: Any = None,
    preset: str = "paper",
) -> Method:
    """Build what both loops build first, and return its method."""
    given: dict[str, Any] = {"preset": preset, "method": method, "settings": settings}
    weighting = LossWeighting(Own() if model is None else model, objectives, **given)
    return weighting.method


@pytest.mark.parametrize("model", [Own(), Open(), Optional(), Concat(nn.Linear(3, 1), 2)])
def test_networks_that_take_a_ray_pass(model: nn.Module) -> None:
    _build(model)


@pytest.mark.parametrize(
    "model",
    [nn.Linear(3, 1), Masked(), nn.Sequential(nn.Linear(3, 1))],
    ids=["linear", "masked", "all"],
)
def test_networks_that_take_none_are_refused(model: nn.Module) -> None:
    says = (
        r"`model` must be called as `forward\(inputs, ray\)`, found "
        r".*condition\(model, objectives=2\)"
    )
    with pytest.raises(ConfigurationError, match=says):
        _build(model)


def test_a_network_for_other_rays_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="3 entries, found 2"):
        _build(condition(nn.Linear(3, 1), 3, how="input"))


def test_what_is_no_network_is_refused() -> None:
    wrong: Any = nn.Linear
    with pytest.raises(ConfigurationError, match="build it first"):
        _build(wrong)


@pytest.mark.parametrize(
    ("objectives", "says"),
    [
        ([], "at least two, found 0"),
        ([ONE], "at least two, found 1"),
        ([CrossEntropy(), CrossEntropy()], "`cross_entropy` twice: .*`name`"),
        ([ONE, nn.MSELoss()], "derive a class from `Objective`"),
    ],
    ids=["none", "one", "names", "callable"],
)
def test_objectives_are_two_with_names(objectives: Sequence[Objective], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        _build(objectives=objectives)


@pytest.mark.parametrize("reference", [(2.0,), (2.0, 2.0, 2.0), (2.0, float("inf"))])
def test_a_reference_is_a_finite_number_each(reference: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"`reference`.*finite"):
        FrontEvaluator(TWO, reference, None, 3)


@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_with_networks_of_their_own_are_refused_and_the_others_not(name: str) -> None:
    built = registry.find("methods", name)()
    if built.fixed_rays(2) is None:
        assert _build(method=name) == built
        return
    with pytest.raises(ConfigurationError, match=f"`{name}`.*per ray.*`fit`"):
        _build(method=name)
    with pytest.raises(ConfigurationError, match=f"`{name}`.*per ray"):
        _build(method=built)


def test_settings_are_the_named_methods() -> None:
    assert _build(method="cosmos", settings={"penalty": "2"}) == Cosmos(penalty=2.0)
    with pytest.raises(ConfigurationError, match="did you mean `penalty`"):
        _build(method="cosmos", settings={"penalti": 2}, preset="default")
    with pytest.raises(ConfigurationError, match="build it with them"):
        _build(method=Cosmos(), settings={"penalty": 2}, preset="default")


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("cosmo", "`cosmo`.*`cosmos`"),
        (
            "phn_ls",
            re.escape('pass "linear", and a network made by condition(..., how="hypernet")'),
        ),
        (Cosmos, "`method` must be a Method"),
        (Cosmos(alpha=(1.0, 1.0, 1.0)), "here 2; found 3"),
    ],
    ids=["name", "pair", "class", "alpha"],
)
def test_methods_that_cannot_be_used(method: str | Method, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        _build(method=method, preset="default")


def test_a_compiled_network_takes_a_ray() -> None:
    compiled: Any = torch.compile(Own(), backend="eager")
    _build(compiled)
