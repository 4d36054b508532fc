"""What a person is told after a training."""

import dataclasses
from pathlib import Path

import pytest

from paretocosmos import Run, fit
from paretocosmos.printing import print_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("printing") / "run"
    return fit("toy_convex", epochs=2, out=folder)


@pytest.mark.parametrize(("share", "told"), [(0.92, True), (0.5, False), (0.0, False)])
def test_a_front_with_little_to_choose_from_is_pointed_out(
    run: Run, capsys: pytest.CaptureFixture[str], share: float, told: bool
) -> None:
    test = run.record["metrics"]["test"] | {"dominated_share": share}
    metrics = {**run.record["metrics"], "test": test}
    print_run(dataclasses.replace(run, record={**run.record, "metrics": metrics}))
    shown = capsys.readouterr()
    assert ("most rays are dominated" in shown.err) == told
    assert f"{share:.0%} of 25 rays" in shown.out
