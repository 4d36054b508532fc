"""What a person is told after a training."""

import dataclasses
from pathlib import Path

import pytest

from paretocosmos import Run, fit
from paretocosmos.printing import numbers_of_run, print_run, print_runs


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


def test_how_it_was_run_is_said(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    changed = {"engine": "captured", "precision": "bf16", "device": "cuda:1"}
    changed |= {"seconds_preparing": 12.34, "seconds_evaluating": 5.67}  # type: ignore[dict-item]
    print_run(dataclasses.replace(run, record={**run.record, **changed}))
    shown = " ".join(capsys.readouterr().out.split())
    assert "captured on cuda:1, bf16, 12.3 s to prepare" in shown


def test_images_are_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    record = {**run.record, "about": {"images": "two [digits] of MNIST", "sha256": "abc"}}
    print_run(dataclasses.replace(run, record=record))
    assert "two [digits] of MNIST" in capsys.readouterr().out


def _seeds(run: Run, *numbers: tuple[int, float, float, int]) -> list[Run]:
    """The run again and again, with other seeds, hypervolumes, seconds and stacks."""
    runs = []
    for seed, reached, seconds, together in numbers:
        test = run.record["metrics"]["test"] | {"hypervolume": reached}
        record = {
            **run.record,
            "seed": seed,
            "seconds_training": seconds,
            "seeds_together": together,
            "metrics": {**run.record["metrics"], "test": test},
        }
        folder = Path("a" * 60) / f"seed-{seed}"
        runs.append(dataclasses.replace(run, record=record, folder=folder))
    return runs


def test_seeds_are_a_table_with_their_mean(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    # two trained together in 10 s, one alone in 4 s; their mean is 2 and their deviation 1
    runs = _seeds(run, (1, 1.0, 10.0, 2), (2, 2.0, 10.0, 2), (9, 3.0, 4.0, 1))
    print_runs(runs)
    shown = capsys.readouterr().out
    for one in runs:
        (row,) = [line for line in shown.splitlines() if str(one.folder) in line]
        assert row.split()[:2] == [str(one.record["seed"]), f"{one.hypervolume:.4f}"]
    assert "mean hypervolume 2.0000 ± 1.0000" in shown
    assert "14.0 s of training in all" in shown


def test_one_seed_has_no_spread(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    print_runs(_seeds(run, (1, 1.0, 10.0, 1)))
    shown = capsys.readouterr().out
    assert "mean hypervolume 1.0000 on test" in shown
    assert "1 seed at a time" in shown


def test_numbers_of_a_run_are_its_records(run: Run) -> None:
    numbers = numbers_of_run(run)
    for name in ("seconds_preparing", "seconds_evaluating", "seeds_together", "precision"):
        assert numbers[name] == run.record[name]
    assert numbers["hypervolume"] == run.hypervolume
