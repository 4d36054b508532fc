"""Reproductions: what is trained and what is not, who fails alone, who must not be mixed."""

import fcntl
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.processes import PATIENCE

from paretocosmos import fit
from paretocosmos.errors import ConfigurationError, DivergedError, RunError
from paretocosmos.paper import experiment
from paretocosmos.paper.recipe import Recipe
from paretocosmos.paper.reproduction import Reproduction, reproduce
from paretocosmos.runs import load_run

Write = Callable[..., Recipe]
RESULTS = ("front.json", "front_val.json", "model.safetensors")


def _states(done: Reproduction) -> dict[str, str]:
    return {
        f"{s.experiment.problem} {s.experiment.method}": s.state for s in done.statuses.values()
    }


def _bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def _no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise AssertionError("this was trained already")

    monkeypatch.setattr(experiment, "fit", refuse)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def go(out: Path) -> Callable[..., Reproduction]:
    def call(recipe: Recipe | str, **given: Any) -> Reproduction:
        return reproduce(recipe, out=out, **({"device": "cpu"} | given))

    return call


Go = Callable[..., Reproduction]

# ---------------------------------------------------------------- what is trained


def test_every_cell_is_what_fit_gives(go: Go, recipe: Write, out: Path, tmp_path: Path) -> None:
    made = recipe(["toy_convex", "toy_concave"], ["cosmos", "linear"], seeds=(1, 2))
    done = go(made)
    assert set(_states(done).values()) == {"done"}
    assert done.failures == {}
    for cell in made.experiments:
        runs = fit(
            cell.problem,
            preset="paper",
            method=cell.method,
            seeds=(1, 2),
            settings={"epochs": 2, "hidden": (8,)},
            out=tmp_path / cell.name,
            device="cpu",
        )
        for run, folder in zip(runs, cell.runs(out).values(), strict=True):
            assert _bytes(folder) == _bytes(run.folder)
            assert load_run(folder).record["seeds_together"] == 2
            assert not (folder / "checkpoint").exists()  # nobody goes on from the end
        mean = sum(run.hypervolume for run in runs) / 2
        assert done.statuses[cell.name].hypervolume == pytest.approx(mean)


def test_the_file_says_all(go: Go, recipe: Write, out: Path) -> None:
    done = go(recipe(["toy_convex"], ["cosmos", "single_task"], seeds=(1, 2)))
    saved = json.loads((out / "mine.json").read_text())
    assert saved == done.to_dict()
    assert saved["rehearsal"] is None
    assert [cell["seeds_done"] for cell in saved["cells"]] == [[1, 2], [1, 2]]
    spent = saved["seconds"]
    assert spent["all"] == pytest.approx(sum(cell["seconds"] for cell in saved["cells"]))
    for cell in saved["cells"]:
        records = [
            json.loads((out / "cells" / cell["name"] / f"seed-{s}" / "run.json").read_text())
            for s in (1, 2)
        ]
        # both seeds trained at once: what the clock showed counts once
        assert cell["seconds_in"]["training"] == pytest.approx(records[0]["seconds_training"])
        judged = sum(record["seconds_evaluating"] for record in records)
        assert cell["seconds_in"]["evaluating"] == pytest.approx(judged)
        assert sum(cell["seconds_in"].values()) < cell["seconds"]


def test_what_is_done_is_not_trained_again(
    go: Go, recipe: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    first = go(made)
    _no_training(monkeypatch)
    again = go(made)
    assert again.to_dict() == first.to_dict()  # its times too
    assert set(_states(again).values()) == {"done"}


def test_recipes_share_their_cells(
    go: Go, recipe: Write, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(recipe(["toy_convex"], ["cosmos", "linear"]))
    _no_training(monkeypatch)
    other = go(recipe(["toy_convex"], ["linear"], name="other"))
    assert _states(other) == {"toy_convex linear": "done"}
    assert {path.name for path in out.iterdir()} == {"cells", "mine.json", "other.json"}


def test_seeds_that_are_missing_are_added(go: Go, recipe: Write, out: Path) -> None:
    made = recipe(["toy_convex"], ["cosmos"], seeds=(1, 2, 3))
    go(made, seeds=[2])
    folders = made.experiments[0].runs(out)
    kept = (folders[2] / "run.json").read_bytes()
    done = go(made)
    assert done.statuses[made.experiments[0].name].seeds_done == (1, 2, 3)
    assert (folders[2] / "run.json").read_bytes() == kept
    assert load_run(folders[1]).record["seeds_together"] == 2


def test_only_what_is_asked_is_trained(go: Go, recipe: Write) -> None:
    made = recipe(["toy_convex", "toy_concave"], ["cosmos", "linear"])
    done = go(made, only=["toy_convex", "linear"])
    assert _states(done) == {
        "toy_convex cosmos": "waiting",
        "toy_convex linear": "done",
        "toy_concave cosmos": "waiting",
        "toy_concave linear": "waiting",
    }
    assert [one.experiment.problem for one in done.statuses.values() if one.asked] == ["toy_convex"]


def test_a_rehearsal_is_kept_apart_and_marked(go: Go, recipe: Write, out: Path) -> None:
    made = recipe(["toy_convex"], ["cosmos"])
    real = go(made)
    short = go(made, epochs=1)
    assert (real.file, short.file) == (out / "mine.json", out / "rehearsal-1" / "mine.json")
    assert json.loads(short.file.read_text())["rehearsal"] == 1
    cell = short.recipe.experiments[0]
    assert json.loads((cell.folder(out) / "cell.json").read_text())["rehearsal"] == 1
    epochs = [
        load_run(one.runs(out)[1]).record["training"]["epochs"] for one in (*made.experiments, cell)
    ]
    assert epochs == [2, 1]


# ---------------------------------------------------------------- interrupted


def test_an_interrupted_cell_goes_on(go: Go, recipe: Write, out: Path, tmp_path: Path) -> None:
    made = recipe(["toy_convex"], ["linear", "cosmos"], epochs=4)

    def interrupt(at: Reproduction) -> None:
        running = [one.progress.epoch for one in at.select("running") if one.progress is not None]
        if at.select("done") and running == [2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(made, progress=interrupt)
    saved = json.loads((out / "mine.json").read_text())
    assert [cell["state"] for cell in saved["cells"]] == ["done", "waiting"]
    spent = saved["cells"][1]["seconds"]
    assert spent > 0
    seen: list[int] = []

    def look(at: Reproduction) -> None:
        seen.extend(one.progress.epoch for one in at.select("running") if one.progress is not None)

    assert set(_states(go(made, progress=look)).values()) == {"done"}
    assert seen == [3, 4]
    saved = json.loads((out / "mine.json").read_text())
    assert saved["cells"][1]["seconds"] > spent  # both sittings count
    assert saved["seconds"]["all"] > sum(saved["seconds"][p] for p in ("training", "preparing"))
    whole = fit(
        "toy_convex",
        preset="paper",
        settings={"epochs": 4, "hidden": (8,)},
        out=tmp_path / "whole",
        device="cpu",
    )
    assert _bytes(made.experiments[1].runs(out)[1]) == _bytes(whole.folder)


@pytest.mark.system
def test_a_killed_reproduction_goes_on(go: Go, recipe: Write, out: Path, tmp_path: Path) -> None:
    recipe(["toy_convex"], ["cosmos", "linear"], epochs=4)
    made = recipe(["toy_convex"], ["cosmos", "linear"], epochs=4)
    begun = made.experiments[1].folder(out) / "seed-1"
    code = f"""
import os, signal
from pathlib import Path
from paretocosmos.paper.reproduction import reproduce
from paretocosmos.runs import list_checkpoints

def kill(at):
    if list_checkpoints(Path({str(begun)!r})):
        os.kill(os.getpid(), signal.SIGKILL)

reproduce({str(tmp_path / "mine.toml")!r}, out={str(out)!r}, device="cpu", progress=kill)
"""
    killed = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False)
    assert killed.returncode == -signal.SIGKILL
    first = (made.experiments[0].runs(out)[1] / "run.json").read_bytes()
    assert set(_states(go(made)).values()) == {"done"}
    assert (made.experiments[0].runs(out)[1] / "run.json").read_bytes() == first
    for cell in made.experiments:
        whole = fit(
            "toy_convex",
            preset="paper",
            method=cell.method,
            settings={"epochs": 4, "hidden": (8,)},
            out=tmp_path / cell.method,
            device="cpu",
        )
        assert _bytes(cell.runs(out)[1]) == _bytes(whole.folder)


def test_what_a_killed_process_left_of_a_cell_that_is_done_goes(
    go: Go, recipe: Write, out: Path
) -> None:
    made = recipe(["toy_convex"], ["linear"], seeds=(1, 2))
    go(made)
    cell, run = made.experiments[0].folder(out), made.experiments[0].runs(out)[2]
    before = {path for path in out.rglob("*") if path.is_file()}
    (run / "checkpoint").mkdir()
    left = (
        out / ".mine.json.0123456789ab.tmp",
        cell / ".lock",
        cell / ".cell.json.0123456789ab.tmp",
        run / ".lock",
        run / ".front.json.0123456789ab.tmp",
        run / "checkpoint" / "epoch-2.safetensors",
    )
    other = out / ".another.json.0123456789ab.tmp"  # of a recipe that may be at work
    for path in (*left, other):
        path.touch()
    go(made)
    assert {path for path in out.rglob("*") if path.is_file()} == before | {other}
    assert not (run / "checkpoint").exists()


# ---------------------------------------------------------------- who fails alone


def test_a_cell_that_fails_does_not_stop_the_others(
    go: Go, recipe: Write, own: str, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose data is missing, and one that stops with what nobody foresaw."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "empty").mkdir()
    problems = [f"{own}:broken", "celeba_easy", "toy_convex"]
    made = recipe(problems, ["linear"], hidden=None)
    assert made.experiments[0].name.startswith("own_problems-broken/")
    done = go(made, data=tmp_path / "empty")
    assert [one.state for one in done.statuses.values()] == ["failed", "failed", "done"]
    bug, missing = done.failures.values()
    log = made.experiments[0].folder(out) / "error.log"
    assert bug.startswith("stopped by ZeroDivisionError (on purpose)")
    assert f"`{log}` has the details" in bug
    assert 'raise ZeroDivisionError("on purpose")' in log.read_text()
    assert "CelebA" in missing
    assert str(tmp_path / "empty") in missing
    saved = json.loads((out / "mine.json").read_text())
    assert [cell["error"] for cell in saved["cells"]] == [bug, missing, None]
    # asked for another cell, those that failed before are known, but are no failure of this time
    later = go(made, only=["toy_convex"])
    assert [one.state for one in later.statuses.values()] == ["failed", "failed", "done"]
    assert later.failures == {}


def test_a_setting_that_nothing_takes_fails_before_anything_is_trained(
    go: Go, recipe: Write
) -> None:
    done = go(recipe(["toy_convex"], ["cosmos", "linear"], penalty=2.0))
    assert list(_states(done).values()) == ["done", "failed"]
    assert "unknown setting `penalty`" in next(iter(done.failures.values()))


def test_a_cell_that_failed_is_tried_again(
    go: Go, recipe: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipe(["toy_convex"], ["cosmos"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(experiment, "fit", lambda *given, **more: 1 / 0)
        assert list(_states(go(made)).values()) == ["failed"]
    assert list(_states(go(made)).values()) == ["done"]


def test_a_seed_that_diverges_keeps_no_other_back(
    go: Go, recipe: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverging(*given: Any, seeds: Sequence[int], **more: Any) -> Any:
        if 2 in seeds:
            raise DivergedError("a loss became nan")
        return fit(*given, seeds=seeds, **more)

    monkeypatch.setattr(experiment, "fit", diverging)
    made = recipe(["toy_convex"], ["cosmos"], seeds=(1, 2, 3))
    done = go(made)
    (one,) = done.statuses.values()
    assert (one.state, one.seeds_done) == ("failed", (1, 3))
    assert one.error == "seed 2: a loss became nan"


def test_a_cell_that_another_process_trains_is_left_alone(go: Go, recipe: Write, out: Path) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    folder = made.experiments[0].folder(out)
    folder.mkdir(parents=True)
    with (folder / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        done = go(made)
    assert list(_states(done).values()) == ["failed", "done"]
    (why,) = done.failures.values()
    assert why.startswith(f"`{folder}` is being trained by another process")
    assert list(_states(go(made)).values()) == ["done", "done"]
    assert not (folder / ".lock").exists()


# ---------------------------------------------------------------- who must not be mixed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": "0.0.1"}, "version: '0.0.1' there, '"),
        ({"precision": "bf16"}, "precision: 'bf16' there, 'tf32' now"),
        ({"device": "cuda"}, "device: 'cuda' there, 'cpu' now"),
        ({"label": "phn_ls"}, "method: 'phn_ls' there, 'cosmos' now"),
        ({"training": {"epochs": 50}}, "training.epochs: 50 there, 2 now"),
        ({"backbone": {"name": "mlp", "settings": {"hidden": [60, 25]}}}, "backbone.hidden: "),
    ],
)
def test_a_run_with_other_settings_is_refused(
    go: Go, recipe: Write, out: Path, change: dict[str, Any], says: str
) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    go(made, only=["cosmos"])
    path = made.experiments[0].runs(out)[1] / "run.json"
    record = json.loads(path.read_text())
    nested = {k: record[k] | v if k == "training" else v for k, v in change.items()}
    path.write_text(json.dumps(record | nested))
    done = go(made)
    assert list(_states(done).values()) == ["failed", "done"]
    (why,) = done.failures.values()
    assert re.match(rf"`{path.parent}` holds a run with other settings than this recipe", why)
    assert says in why
    assert json.loads(path.read_text()) == record | nested  # it is left as it is


@pytest.mark.parametrize("change", [{"device": "cuda"}, {"precision": "bf16"}])
def test_a_cell_that_is_not_asked_for_may_have_any_device_and_precision(
    go: Go, recipe: Write, out: Path, change: dict[str, str]
) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    go(made, only=["cosmos"])
    path = made.experiments[0].runs(out)[1] / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert list(_states(go(made, only=["linear"])).values()) == ["done", "done"]
    if "device" in change:  # nor may the others, where none is asked for
        assert go(made, device="auto").failures == {}


def test_cells_on_other_images_are_refused(go: Go, recipe: Write, out: Path) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    go(made)
    for cell, checksum in zip(made.experiments, ("aaa", "bbb"), strict=True):
        path = cell.runs(out)[1] / "run.json"
        about = {"about": {"sha256": checksum}}
        path.write_text(json.dumps(json.loads(path.read_text()) | about))
    done = go(made)
    assert list(_states(done).values()) == ["done", "failed"]
    assert "images: sha256 bbb there, aaa elsewhere" in done.failures[made.experiments[1].name]


@pytest.mark.parametrize(
    ("name", "content"),
    [("front.json", None), ("front.json", "{}"), ("run.json", '{"format": 2, "sta')],
    ids=["missing", "changed", "record"],
)
def test_a_damaged_run_costs_its_cell_and_says_the_way_out(
    go: Go, recipe: Write, out: Path, name: str, content: str | None
) -> None:
    made = recipe(["toy_convex"], ["cosmos", "linear"])
    go(made)
    folder = made.experiments[0].runs(out)[1]
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    done = go(made)
    assert list(_states(done).values()) == ["failed", "done"]
    (why,) = done.failures.values()
    assert f"`{folder / name}` " in why
    assert why.endswith(f"; remove `{folder}` and start again to train it again")
    shutil.rmtree(folder)
    assert list(_states(go(made)).values()) == ["done", "done"]


def test_a_file_named_from_where_one_stands_is_the_same_file(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n % 7},{n % 2},{n % 3 % 2}\n" for n in range(80))
    Path("people.csv").write_text("age,sex,label\n" + rows)
    Path("own.toml").write_text(
        """\
title = "A table"
section = "none"
shows = "fronts"
seeds = [1]
[[grid]]
problems = ["table"]
methods = ["cosmos"]
settings = { data = "people.csv", target = "label", sensitive = "sex", epochs = 1, rays = 3 }
"""
    )
    for _ in range(2):
        done = go("own.toml")
        assert done.failures == {}
        assert list(_states(done).values()) == ["done"]


# ---------------------------------------------------------------- refused at once


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"workers": -1}, "`workers` must be from 0 to 256, found -1"),
        ({"workers": 2, "cluster": "local"}, "found both: give one"),
        ({"data": "nowhere"}, "`data` must be a folder, found `nowhere`"),
        ({"device": "cuda:77"}, "`cuda:77` does not exist"),
        ({"precision": "fp8"}, "unknown precision `fp8`"),
        ({"seeds": [1, 1]}, "`seeds` must be different whole numbers"),
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"only": ["cosmo"]}, "did you mean `cosmos`"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    go: Go, recipe: Write, out: Path, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        go(recipe(["toy_convex"], ["cosmos"]), **given)
    assert not out.exists()


def test_a_folder_that_cannot_be_is_refused(recipe: Write, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot use"):
        reproduce(recipe(["toy_convex"], ["cosmos"]), out=tmp_path / "file")
