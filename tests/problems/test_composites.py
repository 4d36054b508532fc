"""The rule of the composites, against a slow loop."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.images import (
    RULES,
    Labelled,
    Rule,
    RuleName,
    compose_pairs,
    draw_recipes,
    paint_images,
    split_rows,
)

TEXT, PUBLISHED = RULES["text"], RULES["published"]


def labelled(count: int, seed: int, *, size: int = 6, dark: bool = False) -> Labelled:
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 60 if dark else 256, (count, size, size), dtype=np.uint8)
    return images, draw.integers(0, 4, count, dtype=np.uint8)


@pytest.fixture(scope="module")
def sources() -> tuple[Labelled, Labelled, Labelled]:
    return labelled(150, 1), labelled(60, 2), labelled(80, 3)


def slow(first: Labelled, second: Labelled, recipe: np.ndarray) -> np.ndarray:
    """What a recipe says, pixel by pixel."""
    size = first[0].shape[1]
    out = np.zeros((recipe.shape[1], size + 8, size + 8), np.uint8)
    for at, (i, j, a, b, c, d) in enumerate(recipe.T):
        for y in range(size):
            for x in range(size):
                out[at, a + y, b + x] = first[0][i, y, x]
        for y in range(size):
            for x in range(size):
                here = at, c + y, d + x
                out[here] = min(255, int(out[here]) + int(second[0][j, y, x]))
    return out


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("dark", [False, True], ids=["clipped", "never clipped"])
def test_like_the_slow_loop(dark: bool, rule: Rule) -> None:
    first, second = labelled(90, 1, dark=dark), labelled(50, 2, dark=dark)
    recipe = draw_recipes(first[1], second[1], rule, different=True, copies=2, stream=[5, 0])
    out = np.zeros((recipe.shape[1], 14, 14), np.uint8)
    paint_images(first[0], second[0], recipe, out)
    np.testing.assert_array_equal(out, slow(first, second, recipe))
    assert (int(out.max()) == 255) is not dark


def test_what_is_drawn() -> None:
    labels = np.random.default_rng(0).choice(3, 400, p=[0.6, 0.3, 0.1]).astype(np.uint8)
    recipe = draw_recipes(labels, labels, TEXT, different=True, copies=50, stream=[1, 0])
    top, bottom, corners = recipe[0], recipe[1], recipe[2:]
    assert (np.bincount(top) == 50).all()
    assert (labels[top] != labels[bottom]).all()
    # corners are uniform in 0..4 and 4..8, the partner uniform among the images of other classes
    n = recipe.shape[1]
    for corner, least in zip(corners, (0, 0, 4, 4), strict=True):
        np.testing.assert_allclose(np.bincount(corner - least, minlength=5) / n, 0.2, atol=0.015)
    assert abs(np.corrcoef(corners) - np.eye(4)).max() < 0.03
    for own in range(3):
        drawn = np.bincount(bottom[labels[top] == own], minlength=400)
        others = labels != own
        assert not drawn[~others].any()
        mean = drawn.sum() / others.sum()
        # chi-square per degree of freedom is near 1 for a uniform draw
        chance = ((drawn[others] - mean) ** 2 / mean).sum() / (others.sum() - 1)
        assert 0.7 < chance < 1.3


def test_the_published_rule_shifts_along_the_diagonal() -> None:
    labels = np.random.default_rng(0).integers(0, 10, 500).astype(np.uint8)
    recipe = draw_recipes(labels, labels, PUBLISHED, different=True, copies=40, stream=[1, 0])
    (y, x), (v, u) = recipe[2:4], recipe[4:]
    assert (y == x).all()
    assert (v == u).all()
    np.testing.assert_allclose(np.bincount(y) / len(y), [0.2] * 5, atol=0.015)
    np.testing.assert_allclose(np.bincount(v) / len(v), [0] * 5 + [1 / 3] * 3, atol=0.015)
    assert abs(np.corrcoef(y, v)[0, 1]) < 0.03


def test_any_class_where_it_does_not_matter() -> None:
    labels = np.zeros(200, np.uint8)
    recipe = draw_recipes(labels, labels[:70], PUBLISHED, different=False, copies=2, stream=[1, 0])
    assert set(recipe[1]) <= set(range(70))
    assert len(set(recipe[1])) > 60


def test_splits_and_labels(sources: tuple[Labelled, Labelled, Labelled]) -> None:
    one, two, three = sources
    made = compose_pairs((one, two), (three, two), rule=PUBLISHED, different=True, seed=1)
    assert made.counts == (270, 30, 160)
    assert made.images.shape == (460, 14, 14)
    assert made.labels.shape == (460, 2)
    # the same recipe before the split, split by scikit-learn
    recipe = draw_recipes(one[1], two[1], PUBLISHED, different=True, copies=2, stream=[1, 0])
    whole = np.zeros((300, 14, 14), np.uint8)
    paint_images(one[0], two[0], recipe, whole)
    labels = np.stack([one[1][recipe[0]], two[1][recipe[1]]], axis=1)
    expected = train_test_split(whole, labels, test_size=0.1, random_state=42)
    for found, part in zip(
        (made.images[:270], made.images[270:300], made.labels[:270], made.labels[270:300]),
        expected,
        strict=True,
    ):
        np.testing.assert_array_equal(found, part)


@pytest.mark.parametrize("count", [10, 37, 120_000])
def test_the_split_is_scikit_learn_s(count: int) -> None:
    keep, held = split_rows(count, 0.1)
    expected = train_test_split(np.arange(count), test_size=0.1, random_state=42)
    np.testing.assert_array_equal(keep, expected[0])
    np.testing.assert_array_equal(held, expected[1])


def test_the_seed_decides(sources: tuple[Labelled, Labelled, Labelled]) -> None:
    one, _, three = sources
    pair = ((one, one), (three, three))
    again = compose_pairs(*pair, rule=PUBLISHED, different=True, seed=1).sha256
    assert compose_pairs(*pair, rule=PUBLISHED, different=True, seed=1).sha256 == again
    assert compose_pairs(*pair, rule=PUBLISHED, different=True, seed=2).sha256 != again


@pytest.mark.parametrize(
    ("rule", "sha256"),
    [
        ("text", "97000e16f4167de15db88efb1669f46c9f585313de1af6523c6b958b43b72478"),
        ("published", "2c98efb3ffede008772a99e672e9133739e958468ee468fa0a94337134896321"),
    ],
)
def test_the_bytes_never_change(rule: RuleName, sha256: str) -> None:
    """No oracle: whoever changes a byte changes what earlier runs were trained on."""
    one = (np.arange(160 * 9, dtype=np.int64) % 251).astype(np.uint8).reshape(160, 3, 3)
    source = (one, (np.arange(160) % 7).astype(np.uint8))
    made = compose_pairs(
        (source, source), (source, source), rule=RULES[rule], different=True, seed=1
    )
    assert made.sha256 == sha256


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"seed": -1}, "`seed`.*found -1"), ({"copies": 0}, "`copies` must be 1")],
)
def test_refused_settings(changes: dict[str, int], sentence: str) -> None:
    one = labelled(20, 0)
    with pytest.raises(ConfigurationError, match=sentence):
        compose_pairs(
            (one, one), (one, one), rule=PUBLISHED, different=True, **({"seed": 1} | changes)
        )


def test_one_class_has_no_partner() -> None:
    one = (labelled(20, 0)[0], np.full(20, 3, np.uint8))
    with pytest.raises(DataError, match="classes, found only class 3"):
        compose_pairs((one, one), (one, one), rule=PUBLISHED, different=True, seed=1)


def test_too_few_images() -> None:
    one = labelled(1, 0)
    with pytest.raises(DataError, match="1 images are too few"):
        compose_pairs((one, one), (one, one), rule=PUBLISHED, different=False, seed=1, copies=1)
