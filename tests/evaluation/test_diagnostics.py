"""Sensitivity by its definition, and findings of networks that are wrong in a known way."""

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from paretocosmos import FunctionProblem, evaluate, load_problem
from paretocosmos.evaluation import (
    bootstrap_intervals,
    compute_sensitivity,
    diagnose,
    draw_paired_scores,
    find_missing_ends,
    find_missing_middle,
    find_one_end,
    find_problems,
    find_weak_order,
    load_samples_for,
)
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    DemographicParity,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    TprGap,
)
from paretocosmos.pareto import Front, even_rays
from paretocosmos.problems import Problem, Split
from paretocosmos.types import Batch, Inputs, Outputs, Targets

RAYS = even_rays(9, 2)


class Head(nn.Module):
    """x plus how far the ray moves it."""

    def __init__(self, by: float = 1.0) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Inputs, ray: Tensor) -> Tensor:
        return x[:, 0] + self.by * ray[1]


class TwoHeads(Head):
    def forward(self, x: Inputs, ray: Tensor) -> Outputs:  # type: ignore[override]
        return {"insensitive": x[:, 0], "moved": super().forward(x, ray)}


# Sensitivity


def _by_hand(x: list[float], rays: list[list[float]], by: float, order: list[int]) -> float:
    middle = sum(ray[1] for ray in rays) / len(rays)
    moved = [abs(by * ray[1] - by * middle) for ray in rays for _ in x]
    apart = [abs(x[i] - x[k]) for i, k in enumerate(order)]
    return (sum(moved) / len(moved)) / (sum(apart) / len(apart))


def test_sensitivity_is_its_definition() -> None:
    x = torch.randn(50, 1, generator=torch.Generator().manual_seed(1))
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0)).tolist()
    for by in (0.0, 0.3, -2.0):
        expected = _by_hand(x[:, 0].tolist(), RAYS.tolist(), by, order)
        assert compute_sensitivity(Head(by), x, RAYS) == pytest.approx(expected, abs=1e-6)
        assert compute_sensitivity(TwoHeads(by), x, RAYS) == pytest.approx(expected / 2, abs=1e-6)


def test_sensitivity_of_samples_alike_is_nothing_or_no_number() -> None:
    same = torch.ones(20, 1)
    assert compute_sensitivity(Head(0.0), same, RAYS) == 0
    assert math.isnan(compute_sensitivity(Head(1.0), same, RAYS))


def test_sensitivity_does_not_depend_on_the_unit_of_the_outputs() -> None:
    class Scaled(Head):
        def forward(self, x: Inputs, ray: Tensor) -> Tensor:
            return 1000 * super().forward(x, ray)

    x = torch.randn(30, 1, generator=torch.Generator().manual_seed(2))
    assert compute_sensitivity(Scaled(), x, RAYS) == pytest.approx(
        compute_sensitivity(Head(), x, RAYS), rel=1e-4
    )


# Draws


def test_draws_are_of_the_same_samples_for_every_ray() -> None:
    generator = torch.Generator().manual_seed(3)
    outputs = torch.randn(1, 60, generator=generator).expand(3, -1) + torch.tensor([[0], [1], [2]])
    targets = {"label": torch.randn(60, generator=generator)}

    def mean(outputs: Outputs, targets: Targets) -> Tensor:
        return outputs.mean()

    drawn = draw_paired_scores([mean, MeanSquaredError().score], outputs, targets, draws=50)
    assert drawn.shape == (50, 3, 2)
    np.testing.assert_allclose(drawn[:, 1, 0] - drawn[:, 0, 0], 1, atol=1e-5)
    # the standard error of a mean, within a fifth
    expected = float(outputs[0].std()) / math.sqrt(60)
    assert drawn[:, 0, 0].std() == pytest.approx(expected, rel=0.25)
    low, high = bootstrap_intervals({"mean": mean}, outputs[0], targets)["mean"]
    assert low < np.quantile(drawn[:, 0, 0], 0.5) < high


# Findings


def _front(values: npt.ArrayLike) -> Front:
    rays = RAYS.double().numpy()
    return Front(rays, np.asarray(values), ("loss", "gap"), np.array([2.0, 2.0]))


def _noise(front: Front, size: float) -> npt.NDArray[np.float64]:
    draw = np.random.default_rng(0)
    return front.values + size * draw.normal(size=(200, *front.values.shape))


GOOD = _front(1 - RAYS.double().numpy())
# `gap` falls to .1, and is larger at the ray with most weight on it than with equal weights.
HOOKED = _front(np.stack([np.linspace(0, 1, 9), [1, 0.9, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.5]], 1))
# Both ends and the middle; what lies between them is behind the middle.
LOSS = np.array([0, 0.5, 0.51, 0.52, 0.4, 0.53, 0.54, 0.55, 1])
HEAPED = _front(np.stack([LOSS, LOSS[::-1]], axis=1))
# All rays at one end of a concave front, but for rounding.
COLLAPSED = _front(np.stack([np.linspace(0, 1e-3, 9), np.linspace(1, 0.998, 9)], axis=1))
TURNED = _front(np.stack([1 - RAYS[:, 0].numpy(), RAYS[:, 1].numpy()], axis=1))


@pytest.mark.parametrize(
    ("front", "moved", "noise", "losses", "gradients", "kinds"),
    [
        (GOOD, 0.5, 0.01, {}, {}, []),
        (GOOD, float("nan"), 0.01, {}, {}, []),  # cannot be measured
        (GOOD, 0.009, 0.01, {}, {}, ["insensitive"]),
        (COLLAPSED, float("nan"), 1e-6, {}, {}, ["insensitive"]),
        (COLLAPSED, 0.5, 1e-6, {}, {}, []),  # the outputs differ
        (TURNED, 0.5, 0.01, {}, {}, ["wrong_order"]),
        (HOOKED, 0.5, 0.01, {}, {}, ["worse_corner"]),
        (HOOKED, 0.5, 0.1, {}, {}, []),  # by chance
        (HEAPED, 0.5, 0.01, {}, {}, ["dominated"]),
        (HEAPED, 0.5, 0.1, {}, {}, []),
        (TURNED, 0.5, 9.0, {}, {}, ["no_conflict"]),  # in the wrong order by chance
        (GOOD, 0.5, 9.0, {}, {}, ["no_conflict"]),
        (GOOD, 0.5, 0.01, {"loss": 1.0, "gap": 0.001}, {}, []),  # small, and its weight tells
        (TURNED, 0.5, 0.01, {"loss": 1.0, "gap": 0.001}, {}, ["wrong_order", "drowned"]),
        (TURNED, 0.5, 0.01, {"loss": 1.0, "gap": 0.02}, {}, ["wrong_order"]),
        (GOOD, 0.5, 0.01, {}, {"loss": 0.1, "gap": 0.0}, ["no_gradient"]),
        (GOOD.take([0]), 0.0, 0.01, {}, {}, []),  # one point has no order
    ],
)
def test_each_kind_is_found_where_it_is_and_nowhere_else(
    front: Front,
    moved: float,
    noise: float,
    losses: dict[str, float],
    gradients: dict[str, float],
    kinds: list[str],
) -> None:
    found = find_problems(front, moved, _noise(front, noise), losses=losses, gradients=gradients)
    assert [one.kind for one in found] == kinds
    for one in found:  # one sentence, with the way out
        assert "\n" not in one.text
        assert ": " in one.text or ", so " in one.text
        assert not one.text.endswith(".")


@pytest.mark.parametrize(
    ("noise", "still"),
    [
        ((0.02, 0.05), {"loss": (0.40, 0.42), "gap": (0.30, 0.33)}),
        ((0.001, 0.05), {"gap": (0.30, 0.33)}),  # the loss moves far beyond its noise
    ],
)
def test_only_what_stays_within_its_noise_is_named(
    noise: tuple[float, float], still: dict[str, tuple[float, float]]
) -> None:
    """Gaps of 30 points, which 5 points of noise would hide no trade-off of."""
    loss, gap = np.linspace(0.40, 0.42, 9), np.linspace(0.33, 0.30, 9)
    front = _front(np.stack([loss, gap], axis=1))
    drawn = np.random.default_rng(0).normal(size=(20_000, 9, 2)) * noise
    (found,) = find_problems(front, 0.5, front.values + drawn)
    assert found.kind == "no_conflict"
    numbers = re.findall(r"`(\w+)` \(([\d.]+) to ([\d.]+), noise ±([\d.]+)\)", found.text)
    assert [name for name, *_ in numbers] == list(still)
    sizes = dict(zip(front.names, noise, strict=True))
    for name, *ends, half in numbers:
        assert [float(end) for end in ends] == pytest.approx(still[name])
        # a difference of two draws has a standard deviation √2 times as large
        assert float(half) == pytest.approx(1.96 * math.sqrt(2) * sizes[name], rel=0.03)


def test_a_bad_corner_and_dominated_rays_are_said_in_numbers() -> None:
    (corner,) = find_problems(HOOKED, 0.5, _noise(HOOKED, 0.01))
    assert "`gap` (0.5 against 0.4);" in corner.text
    assert "`loss`" not in corner.text
    (dominated,) = find_problems(HEAPED, 0.5, _noise(HEAPED, 0.01))
    assert dominated.text.startswith("67% of the rays")


def test_one_ray_that_beats_all_others_has_the_noise_of_its_values() -> None:
    values = np.linspace(0, 1, 9)[:, None] + [1, 0.3]  # the first ray is best in both
    front = _front(values)
    (found,) = find_problems(front, 0.5, _noise(front, 9.0))
    assert re.search(r"`loss` \(1, noise ±1\d\) and `gap` \(0\.3, noise ±1\d\)", found.text)


def test_a_front_without_numbers_has_no_trade_off_to_judge() -> None:
    front = _front(np.full((9, 2), np.nan))
    assert find_problems(front, 0.5, _noise(front, 0.1)) == []


class Flat(Objective):
    """Counts only, so that nothing can be learned from it."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return (outputs > 0).float().mean()


@dataclass(frozen=True, kw_only=True, eq=False)
class Between(Problem):
    """An output near x for the one, near x + 1 for the other, with some noise in both."""

    def split(self, name: Split) -> Batch:
        generator = torch.Generator().manual_seed(len(name))
        x = torch.randn(3000, 1, generator=generator)
        noise = 0.3 * torch.randn(3000, 2, generator=generator)
        return Batch(x, {"one": x[:, 0] + noise[:, 0], "two": x[:, 0] + 1 + noise[:, 1]})


def _problem(*, second: Objective | None = None) -> Problem:
    one = MeanSquaredError(name="one", target="one")
    two = second or MeanSquaredError(name="two", target="two")
    return Between(
        name="between", objectives=(one, two), reference=(4.0, 4.0), input_shape=(1,), outputs=1
    )


@pytest.mark.parametrize(
    ("by", "kinds"),
    [
        (1.0, []),  # more weight on `two` moves the output towards it
        (-1.0, ["wrong_order"]),
        (0.0, ["insensitive"]),
        (0.0001, ["insensitive"]),
    ],
)
def test_a_network_is_examined(by: float, kinds: list[str]) -> None:
    problem, model = _problem(), Head(by)
    front = evaluate(model, problem, split="val", rays=40)
    found = diagnose(model, problem, front, load_samples_for(model, problem, "val"))
    assert [one.kind for one in found.findings] == kinds
    expected = compute_sensitivity(model, problem.split("val").inputs, even_rays(40, 2))
    assert found.sensitivity == pytest.approx(expected, rel=0.15, abs=1e-9)
    assert diagnose(model, problem, front, load_samples_for(model, problem, "val")) == found


class Deaf(nn.Module):
    """One output for all inputs, which the ray moves by so much."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Inputs, ray: Tensor) -> Tensor:
        return 0 * x[:, 0] + self.by * ray[1]


@pytest.mark.parametrize(("by", "kinds"), [(1.0, []), (0.001, ["insensitive"])])
def test_outputs_that_ignore_inputs_are_judged_by_values(by: float, kinds: list[str]) -> None:
    problem, model = _problem(), Deaf(by)
    front = evaluate(model, problem, split="val", rays=40)
    found = diagnose(model, problem, front, load_samples_for(model, problem, "val"))
    assert math.isnan(found.sensitivity)
    assert [one.kind for one in found.findings] == kinds
    for one in found.findings:
        values = [f"`{n}` {v:.3g}" for n, v in zip(front.names, front.values.min(0), strict=True)]
        assert f"nearly the same values ({', '.join(values)}), so" in one.text


class Tiny(MeanSquaredError):  # noqa: N818
    """In another unit."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return 1e-6 * super().loss(outputs, targets)


@pytest.mark.parametrize("scaled", [False, True])
def test_losses_that_were_brought_to_one_scale_drown_nobody(scaled: bool) -> None:
    problem, model = _problem(second=Tiny(name="two", target="two")), Head(-1.0)
    front = evaluate(model, problem, split="val", rays=9)
    found = diagnose(model, problem, front, load_samples_for(model, problem, "val"), scaled=scaled)
    assert [one.kind for one in found.findings] == ["wrong_order", *["drowned"] * (not scaled)]


def test_what_gives_no_gradient_is_found() -> None:
    problem = _problem(second=Flat(name="flat"))
    front = evaluate(Head(), problem, split="val", rays=9)
    found = diagnose(Head(), problem, front, load_samples_for(Head(), problem, "val"))
    first = found.findings[0]
    assert (first.kind, first.text.split()[0]) == ("no_gradient", "`flat`")


@pytest.mark.parametrize(
    ("sharpness", "kinds"), [(1.0, []), (6.0, []), (400.0, ["missing_middle"])]
)
def test_a_front_that_jumps_from_end_to_end_is_named(sharpness: float, kinds: list[str]) -> None:
    rays = even_rays(25, 2).double().numpy()
    first = 1 / (1 + np.exp(sharpness * (rays[:, 0] - rays[:, 1] - 0.01)))
    front = Front(rays, np.stack([first, 1 - first], axis=1), ("a", "b"), np.array([2.0, 2.0]))
    assert [problem.kind for problem in find_missing_middle(front)] == kinds
    few = front.take(np.arange(0, 25, 3))  # too far apart to tell
    assert find_missing_middle(few) == []


@pytest.mark.parametrize(
    ("values", "start", "named"),
    [
        ([[0.01, 0.9], [0.02, 0.8]], (0.3, 0.3), ["b"]),
        ([[0.01, 0.9], [0.02, 0.8]], (0.3, 0.75), []),  # the rays move it by more
        ([[0.01, 0.9], [0.02, 0.8]], (0.3, math.nan), []),  # a gap of equal answers says nothing
        ([[0.2, 0.9], [0.2, 0.8]], (0.1, 0.3), ["a", "b"]),
    ],
)
def test_objectives_that_every_ray_gave_up_are_named(
    values: list[list[float]], start: tuple[float, float], named: list[str]
) -> None:
    front = Front([[0.9, 0.1], [0.1, 0.9]], values, ("a", "b"), (2, 2))
    draws = np.stack([front.values] * 40)
    found = find_one_end(front, np.array(start), draws)
    assert [name for name in front.names if found and f"`{name}`" in found[0].text] == named
    noise = np.random.default_rng(0).normal(size=draws.shape)
    assert find_one_end(front, np.array(start), draws + noise) == []


def test_an_end_that_a_function_has_and_its_front_has_not_is_found() -> None:
    problem = load_problem("zdt3")
    assert isinstance(problem, FunctionProblem)
    front = problem.exact_front(100)
    assert find_missing_ends(front, problem.objectives) == []
    # without its last piece, where the second objective is smallest
    (finding,) = find_missing_ends(
        front.take(np.flatnonzero(front.values[:, 0] < 0.7)), problem.objectives
    )
    assert finding.kind == "missing_end"
    assert "`f2` (-0.45 at best, -0.773 possible)" in finding.text


def test_weights_of_several_gaps_that_do_not_order_them_are_named() -> None:
    draw = np.random.default_rng(0)
    rays = draw.dirichlet(np.ones(3), 30)
    gaps = (BinaryCrossEntropy(), DemographicParity(groups=2), TprGap(groups=2))
    names = tuple(objective.name for objective in gaps)
    values = 1 - rays
    assert find_weak_order(Front(rays, values, names, (2, 2, 2)), gaps) == []
    values[:, 2] = draw.random(30)
    tangled = Front(rays, values, names, (2, 2, 2))
    (finding,) = find_weak_order(tangled, gaps)
    assert finding.kind == "weak_order"
    assert f"`{names[0]}` 1.00, `{names[1]}` 1.00, `{names[2]}` " in finding.text
    assert "`selection_and_tpr_gap`" in finding.text
    losses = (gaps[0], MeanSquaredError(), MeanAbsoluteError())
    assert find_weak_order(tangled, losses) == []  # no gaps
