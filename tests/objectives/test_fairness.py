"""Fairness objectives against a plain loop with counts, and against fairlearn."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from fairlearn import metrics
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from torch import Tensor

from paretocosmos.objectives import (
    AccuracyGap,
    DemographicParity,
    Deo,
    EqualizedOdds,
    FprGap,
    GroupObjective,
    RateObjective,
    SelectionAndTprGap,
    TprGap,
    WorstGroup,
)

RATES: tuple[type[RateObjective], ...] = (
    AccuracyGap,
    DemographicParity,
    EqualizedOdds,
    FprGap,
    TprGap,
)
MEANS: tuple[type[GroupObjective], ...] = (*RATES, WorstGroup)
KINDS: tuple[type[GroupObjective], ...] = (Deo, *MEANS)
# fairlearn's name of each reported value
ORACLES = {
    AccuracyGap: metrics.accuracy_score_difference,
    DemographicParity: metrics.demographic_parity_difference,
    EqualizedOdds: metrics.equalized_odds_difference,
    FprGap: metrics.false_positive_rate_difference,
    TprGap: metrics.equal_opportunity_difference,
}
GROUPS = [2, 3, 5]


def _sample(
    seed: int, count: int = 40, groups: int = 2
) -> tuple[Tensor, dict[str, Tensor], Iterator[tuple[float, int, int]]]:
    """Logits, targets, and the same sample by sample."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, generator=generator, dtype=torch.float64) * 2
    label = torch.randint(0, 2, (count,), generator=generator)
    sensitive = torch.randint(0, groups, (count,), generator=generator)
    each = zip(logits.tolist(), label.tolist(), sensitive.tolist(), strict=True)
    return logits, {"label": label, "sensitive": sensitive}, each


def _relaxed(logit: float, steepness: float) -> float:
    return math.tanh(steepness * max(0.0, 1 / (1 + math.exp(-logit))))


@given(seed=st.integers(0, 2**31), groups=st.integers(2, 4), steepness=st.floats(0.5, 5))
def test_deo_is_the_papers_loop(seed: int, groups: int, steepness: float) -> None:
    logits, targets, each = _sample(seed, groups=groups)
    samples, soft, hard = list(each), [0.0] * groups, [0] * groups
    for logit, y, a in samples:
        if y == 1:
            soft[a] += _relaxed(logit, steepness)
            hard[a] += logit > 0
    deo = Deo(groups=groups, steepness=steepness)
    for found, sums in ((deo.loss(logits, targets), soft), (deo.score(logits, targets), hard)):
        expected = (max(sums) - min(sums)) / len(samples)
        assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def _everybody(seed: int, groups: int) -> tuple[Tensor, dict[str, Tensor]]:
    """A sample in which every group has positives and negatives."""
    logits, targets, _ = _sample(seed, 20 * groups, groups)
    cells = torch.arange(2 * groups)
    targets["label"][: 2 * groups], targets["sensitive"][: 2 * groups] = cells % 2, cells // 2
    return logits, targets


@pytest.mark.parametrize("kind", RATES)
@given(seed=st.integers(0, 2**31), groups=st.integers(2, 5), sharpness=st.floats(0.1, 2))
def test_the_loss_is_a_comparison_of_rates_in_a_loop(
    kind: type[RateObjective], seed: int, groups: int, sharpness: float
) -> None:
    logits, targets, each = _sample(seed, groups=groups)
    rates: dict[str, dict[int, list[float]]] = {}
    for logit, y, a in each:
        chosen = 1 / (1 + math.exp(-logit / sharpness))
        by_rate = {
            "accuracy": 1 - abs(y - chosen),
            "selected": chosen,
            "found" if y else "alarm": chosen,
        }
        for name, value in by_rate.items():
            rates.setdefault(name, {}).setdefault(a, []).append(value)
    # a group without such rows is left out
    means = {n: [sum(v) / len(v) for v in own.values()] for n, own in rates.items()}
    gaps = {name: max(own) - min(own) for name, own in means.items()}
    expected = {
        AccuracyGap: gaps["accuracy"],
        DemographicParity: gaps["selected"],
        EqualizedOdds: max(gaps["found"], gaps["alarm"]),
        FprGap: gaps["alarm"],
        TprGap: gaps["found"],
    }[kind]
    found = kind(groups=groups, sharpness=sharpness).loss(logits, targets)
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_two_gaps_at_once_are_the_larger_of_fairlearns() -> None:
    for seed in range(10):
        logits, targets = _everybody(seed, 3)
        truth = (targets["label"].numpy(), (logits > 0).long().numpy())
        groups = {"sensitive_features": targets["sensitive"].numpy()}
        selected = metrics.demographic_parity_difference(*truth, **groups)
        found = metrics.equal_opportunity_difference(*truth, **groups)
        score = SelectionAndTprGap(groups=3).score(logits, targets)
        assert score.item() == pytest.approx(max(selected, found))


@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_fairlearns(kind: type[RateObjective], groups: int, weighted: bool) -> None:
    for seed in range(10):
        logits, targets = _everybody(seed, groups)
        weight = torch.rand(len(logits), generator=torch.Generator().manual_seed(seed)) + 0.1
        expected = ORACLES[kind](
            targets["label"].numpy(),
            (logits > 0).long().numpy(),
            sensitive_features=targets["sensitive"].numpy(),
            sample_weight=weight.numpy() if weighted else None,
        )
        given = {**targets, "weight": weight} if weighted else targets
        found = kind(groups=groups).score(logits, given)
        assert found.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("groups", GROUPS)
def test_the_score_of_several_classes_is_fairlearns(kind: type[RateObjective], groups: int) -> None:
    """One against the rest, the largest; who is right is no question of one class."""
    draw = np.random.default_rng(groups)
    cells = np.array([(c, g) for c in range(3) for g in range(groups)])
    label = np.concatenate([cells[:, 0], draw.integers(0, 3, 40)])
    sensitive = np.concatenate([cells[:, 1], draw.integers(0, groups, 40)])
    logits = draw.normal(size=(len(label), 3))
    chosen = logits.argmax(axis=1)
    if kind is AccuracyGap:
        expected = ORACLES[kind](label, chosen, sensitive_features=sensitive)
    else:
        expected = max(
            ORACLES[kind](label == c, chosen == c, sensitive_features=sensitive) for c in range(3)
        )
    targets = {"label": torch.from_numpy(label), "sensitive": torch.from_numpy(sensitive)}
    objective, outputs = kind(groups=groups), torch.from_numpy(logits)
    assert objective.score(outputs, targets).item() == pytest.approx(expected, rel=1e-6)
    # two classes by two logits are one logit, their difference; each is the positive one once
    two = {**targets, "label": (targets["label"] > 0).long()}
    same = EqualizedOdds(groups=groups) if kind in (TprGap, FprGap) else objective
    pair, alone = outputs[:, :2], outputs[:, 1] - outputs[:, 0]
    torch.testing.assert_close(objective.loss(pair, two), same.loss(alone, two))
    torch.testing.assert_close(objective.score(pair, two), same.score(alone, two))


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_worst_group_is_sklearns_and_fairlearns(
    groups: int, classes: int, weighted: bool
) -> None:
    draw = np.random.default_rng(groups)
    label, sensitive = draw.integers(0, classes, 60), np.arange(60) % groups
    logits = draw.normal(size=(60, classes))
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    weight = draw.uniform(0.1, 1, 60) if weighted else np.ones(60)
    own = [sensitive == group for group in range(groups)]
    expected = max(
        log_loss(label[g], chance[g], labels=range(classes), sample_weight=weight[g]) for g in own
    )
    targets = {"label": torch.from_numpy(label), "sensitive": torch.from_numpy(sensitive)}
    if classes == 2:
        told = {"sensitive_features": sensitive, "sample_weight": weight}
        assert metrics.log_loss_group_max(label, chance[:, 1], **told) == pytest.approx(expected)
    targets["weight"] = torch.from_numpy(weight)
    outputs = torch.from_numpy(logits)
    for same in (outputs, outputs[:, 1] - outputs[:, 0]) if classes == 2 else (outputs,):
        for verb in ("loss", "score"):
            found = getattr(WorstGroup(groups=groups), verb)(same, targets)
            assert found.item() == pytest.approx(expected, rel=1e-6)


def test_parity_needs_no_label() -> None:
    logits, targets, _ = _sample(3)
    for verb in ("loss", "score"):
        found = getattr(DemographicParity(), verb)
        without = found(logits, {"sensitive": targets["sensitive"]})
        torch.testing.assert_close(without, found(logits, targets))


def test_counts_are_unfair_to_groups_of_different_size_where_rates_are_not() -> None:
    targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    assert Deo().score(torch.ones(4), targets) == 0.5
    assert TprGap().score(torch.ones(4), targets) == 0
    assert DemographicParity().score(torch.ones(4), targets) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_other_types_of_targets_change_nothing(kind: type[GroupObjective]) -> None:
    logits, targets, _ = _sample(5)
    expected = kind().loss(logits, targets)
    for same in (
        {name: target[:, None] for name, target in targets.items()},
        {name: target.double() for name, target in targets.items()},
        {name: target.bool() for name, target in targets.items()},
    ):
        torch.testing.assert_close(kind().loss(logits, same), expected)
        torch.testing.assert_close(kind().loss(logits[:, None], same), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_logits_meet_float32_weights(kind: type[GroupObjective]) -> None:
    logits, targets, _ = _sample(6)
    given = {**targets, "weight": torch.ones(len(logits))}
    expected = kind().loss(logits, targets).item()
    assert kind().loss(logits.bfloat16(), given).item() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_other_names_are_read(kind: type[GroupObjective]) -> None:
    logits, targets, _ = _sample(7)
    expected = kind().loss(logits, targets)
    renamed = {"label": targets["label"], "sex": targets["sensitive"]}
    objective = kind(name="gap", output="b", sensitive="sex")
    assert objective.loss({"a": -logits, "b": logits}, renamed) == expected
    assert objective.name == "gap"


# Gradients


@pytest.mark.parametrize("kind", [Deo])
@pytest.mark.parametrize("groups", [2, 3])
def test_gradcheck(kind: type[GroupObjective], groups: int) -> None:
    logits, targets, _ = _sample(8, count=12, groups=groups)
    objective = kind(groups=groups)
    assert torch.autograd.gradcheck(
        lambda x: objective.loss(x, targets), (logits.requires_grad_(),)
    )


@pytest.mark.parametrize("kind", MEANS)
def test_far_beyond_noise_the_gradient_is_that_of_the_value(kind: type[GroupObjective]) -> None:
    """Many rows and a wide gap: finite differences of the value are the gradient."""
    logits, targets, _ = _sample(8, count=40_000)
    label = targets["label"].double()
    shift = torch.where(targets["sensitive"] == 1, 2.0, -2.0) * (1 + label)  # not the same twice
    unlike = logits + shift * (2 * label - 1 if kind is AccuracyGap else 1)
    objective = kind() if kind is WorstGroup else kind(sharpness=1.0)  # type: ignore[call-arg]
    step, leaf = 1e-4, unlike.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(objective.loss(leaf, targets), leaf)
    for direction in (torch.randn_like(logits), (targets["sensitive"] == 1).double()):
        ends = [objective.loss(unlike + step * side * direction, targets) for side in (1, -1)]
        slope = (ends[0] - ends[1]).item() / (2 * step)
        assert (gradient * direction).sum().item() == pytest.approx(slope, rel=0.02, abs=1e-5)


def test_the_noise_of_batches_makes_nobody_a_constant() -> None:
    """Groups alike: a plain gap of small batches shrinks with the spread of predictions, in the
    mean; the gradient that is trained on does not."""
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(2000, 24, generator=draw, dtype=torch.float64)
    targets = {"sensitive": (torch.arange(24) % 3 == 0).long()}
    parity = DemographicParity(sharpness=1.0)

    def slope(of: Callable[[Tensor, dict[str, Tensor]], Tensor]) -> Tensor:
        """How a batch's loss changes as all logits grow."""
        by_size = torch.func.grad(lambda size, x: of(size * x, targets))
        one = torch.tensor(1.0, dtype=torch.float64)
        return torch.vmap(by_size, (None, 0))(one, logits)

    def plain(x: Tensor, targets: dict[str, Tensor]) -> Tensor:
        first = targets["sensitive"] == 0
        chosen = torch.sigmoid(x)
        return ((chosen * first).sum() / 16 - (chosen * ~first).sum() / 8).abs()

    trained, noisy = slope(parity.loss), slope(plain)
    assert noisy.mean() > 30 * noisy.std() / math.sqrt(len(noisy))
    assert trained.mean().abs() < 3 * trained.std() / math.sqrt(len(trained)) < noisy.mean() / 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("label", "sensitive"),
    [
        ([1, 1, 0, 1], [0, 0, 0, 0]),  # a group is absent
        ([1, 1, 0, 0], [0, 0, 1, 1]),  # a group has no positive
        ([0, 0, 0, 0], [0, 1, 0, 1]),  # nobody is positive
    ],
)
def test_absent_groups_in_a_batch_give_a_finite_loss(
    kind: type[GroupObjective], label: list[int], sensitive: list[int]
) -> None:
    logits = torch.tensor([3.0, -1.0, 0.5, 100.0], requires_grad=True)
    targets = {"label": torch.tensor(label), "sensitive": torch.tensor(sensitive)}
    loss = kind().loss(logits, targets)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert loss >= 0
    assert gradient.isfinite().all()
    rows = zip(sensitive, label, strict=True)
    compared = {a for a, y in rows if y or kind is not TprGap}
    if kind in (TprGap, DemographicParity) and len(compared) < 2:
        # one group alone has no gap, and nothing to learn from
        assert loss.item() == pytest.approx(0, abs=1e-6)
        assert gradient.abs().max() < 1e-6


@pytest.mark.parametrize("kind", MEANS)
def test_an_absent_group_leaves_the_value_of_the_others(kind: type[GroupObjective]) -> None:
    logits, targets, _ = _sample(9, groups=2)
    torch.testing.assert_close(
        kind(groups=3).loss(logits, targets), kind(groups=2).loss(logits, targets)
    )
    assert kind(groups=3).score(logits, targets).isnan()


@pytest.mark.parametrize(
    ("lacking", "undefined"), [(1, {TprGap, EqualizedOdds}), (0, {FprGap, EqualizedOdds})]
)
def test_the_score_is_nan_where_a_group_has_none_of_the_rows(
    lacking: int, undefined: set[type[RateObjective]]
) -> None:
    logits, targets = _everybody(13, groups=3)
    label = torch.where(targets["sensitive"] == 2, 1 - lacking, targets["label"])
    for kind in RATES:
        objective = kind(groups=3)
        given = {**targets, "label": label}
        assert objective.score(logits, given).isnan() == (kind in undefined)
        assert objective.loss(logits, given).isfinite()
        lacks = {1: "positives", 0: "negatives"}[lacking]
        assert (lacks in kind.over) == (kind in undefined)


def test_a_step_down_the_gradient_narrows_the_gap() -> None:
    logits, targets, _ = _sample(10)
    for kind in KINDS:
        leaf = logits.clone().requires_grad_()
        loss = kind().loss(leaf, targets)
        (gradient,) = torch.autograd.grad(loss, leaf)
        with torch.no_grad():
            assert kind().loss(leaf - 0.1 * gradient, targets) < loss
