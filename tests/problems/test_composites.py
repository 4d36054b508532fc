"""The rule of the composites, against a slow loop."""

import numpy as np
import pytest

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.images.pairs import RULES, Labelled, RuleName, compose_pairs

TEXT, PUBLISHED = RULES["text"], RULES["published"]


def labelled(count: int, seed: int, *, size: int = 6, dark: bool = False) -> Labelled:
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 60 if dark else 256, (count, size, size), dtype=np.uint8)
    return images, draw.integers(0, 4, count, dtype=np.uint8)


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
