"""One pass with a ray for each row gives what a pass for each row gives, however rays enter."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos import fit
from paretocosmos.serving.batching import MAX_PASS_ROWS, Network, to_probabilities
from paretocosmos.serving.schemas import TableRows


@pytest.mark.parametrize(
    ("preset", "conditioning"), [("paper", "concat"), ("default", "film"), ("paper", "hypernet")]
)
def test_rays_of_their_own(
    people: Path, rows: list[dict[str, Any]], tmp_path: Path, preset: str, conditioning: str
) -> None:
    settings = {"target": "rich", "sensitive": "sex", "hidden": "8"}
    given: dict[str, Any] = {"conditioning": conditioning, "settings": settings, "device": "cpu"}
    run = fit(str(people), preset=preset, epochs=2, out=tmp_path / "run", **given)
    assert run.table is not None
    reader = TableRows(run.table)
    network = Network(run, reader)
    numbers, _ = reader.to_numbers([reader.row.model_validate(row) for row in rows[:30]])
    rays = np.random.default_rng(1).dirichlet([1, 1], 30).astype(np.float32)
    expected = [
        run.predict(pd.DataFrame([row]), ray=ray)[0]
        for row, ray in zip(rows[:30], rays.tolist(), strict=True)
    ]
    whole = network.predict(numbers, rays)["probability"]
    assert whole.tolist() == pytest.approx(expected, abs=1e-6)
    assert np.ptp(whole) > 0
    network.limit = 7  # several passes
    parts = network.predict(numbers, rays)["probability"]
    assert parts.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_hypernetwork_has_smaller_passes(people: Path, tmp_path: Path) -> None:
    settings = {"target": "rich", "sensitive": "sex", "hidden": "400,400"}
    given: dict[str, Any] = {"conditioning": "hypernet", "settings": settings, "device": "cpu"}
    run = fit(str(people), preset="paper", epochs=1, out=tmp_path / "run", **given)
    emitted = (len(run.table.features) + 1) * 400 + 401 * 400 + 401
    network = Network(run, TableRows(run.table))
    assert network.limit == 16_000_000 // emitted < MAX_PASS_ROWS


def test_probabilities_of_classes() -> None:
    logits = np.array([[0.0, np.log(3)], [5.0, 5.0]], dtype=np.float32)
    assert to_probabilities(logits) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))
    for one in (np.array([[0.0], [np.log(3)]]), np.array([0.0, np.log(3)])):
        assert to_probabilities(one.astype(np.float32)) == pytest.approx(np.array([0.5, 0.75]))
