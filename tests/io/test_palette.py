"""Colours that can be read and told apart, by the definitions of WCAG and of Machado et al."""

from itertools import combinations

import numpy as np
import pytest

from paretocosmos.io.palette import DARK, LIGHT, RUNS

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
BLIND = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour: str) -> np.ndarray:
    part = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other))
    return float((high + 0.05) / (low + 0.05))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_can_be_read_on_both_grounds(theme: dict[str, str]) -> None:
    for ground in ("paper", "raised"):
        for text in ("ink", "quiet", "accent", "amiss"):
            assert contrast(theme[text], theme[ground]) >= 4.5
    assert contrast(theme["on-accent"], theme["accent"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", BLIND)
def test_the_first_six_stay_apart_for_the_colour_blind(theme: str, kind: str) -> None:
    seen = {one: np.clip(np.array(BLIND[kind]) @ linear(one), 0, 1) for one in RUNS[theme][:6]}
    for one, other in combinations(seen, 2):
        assert np.abs(seen[one] - seen[other]).max() > 0.05
