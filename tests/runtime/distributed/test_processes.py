"""Two processes against one: the same run, whatever the method; and what ends them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.processes import PATIENCE, Started, find_port, start, start_rank
from tests.runtime.distributed.cases import CASES, DIGITS, SETTINGS, loaded, table, train

from paretocosmos import fit
from paretocosmos.cli import main
from paretocosmos.runs import find_newest_checkpoint, list_checkpoints, load_run, load_tensors
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.progress import Progress

ROOT = Path(__file__).parents[3]
Begin = Callable[[Callable[[int], tuple[str, ...]]], list[Started]]
NEAR = 1e-9  # in float64: sums in another order
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that two processes trained together."""
    folder = tmp_path_factory.mktemp("two")

    def stop(at: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # after the first of two epochs, in one process
        train("cosmos", folder / "begun", progress=stop)
    command = [*TORCHRUN, str(Path(__file__).parent / "cases.py"), str(folder)]
    done = subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def _same(one: Path, two: Path) -> None:
    """The same weights, moments and fronts."""
    for last in (True, False):
        files = (find_newest_checkpoint(f) if last else f / "model.safetensors" for f in (one, two))
        ours, theirs = (load_tensors(file)[0] for file in files)
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            if not name.startswith("rng"):
                torch.testing.assert_close(tensor, theirs[name], rtol=NEAR, atol=NEAR)
    for file in ("front.json", "front_val.json"):
        values = [json.loads((folder / file).read_text())["values"] for folder in (one, two)]
        np.testing.assert_allclose(values[0], values[1], rtol=NEAR, atol=NEAR)


@pytest.mark.system
@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_run_of_one(case: str, shared: Path, tmp_path: Path) -> None:
    alone = train(case, tmp_path / "run")
    _same(shared / case, alone.folder)
    records = [json.loads((f / "run.json").read_text()) for f in (shared / case, alone.folder)]
    assert [record["processes"] for record in records] == [2, 1]
    assert records[0]["engine"] == records[1]["engine"]
    for mine, other in zip(*(record["evaluations"] for record in records), strict=True):
        assert mine["losses"] == pytest.approx(other["losses"], rel=NEAR)


@pytest.mark.system
def test_loaders_of_two_processes_give_the_run_of_one(shared: Path, tmp_path: Path) -> None:
    """Two read their splits anew every time; one has them in memory."""
    alone = loaded(tmp_path / "run")
    _same(shared / "loaded", alone.folder)
    records = [json.loads((f / "run.json").read_text()) for f in (shared / "loaded", alone.folder)]
    assert [record["processes"] for record in records] == [2, 1]
    assert {record["data"] for record in records} == {"streamed"}
    for mine, other in zip(*(record["evaluations"] for record in records), strict=True):
        assert mine["losses"] == pytest.approx(other["losses"], rel=1e-5)


@pytest.mark.system
def test_images_in_recorded_steps(shared: Path, tmp_path: Path) -> None:
    alone = fit(
        "multi_digits",
        preset="paper",
        settings=DIGITS,
        epochs=1,
        precision="fp64",
        out=tmp_path / "run",
    )
    _same(shared / "digits", alone.folder)


@pytest.mark.system
def test_seeds_train_one_after_the_other(shared: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        alone = fit(
            table(),
            preset="paper",
            seed=seed,
            settings=SETTINGS,
            epochs=1,
            precision="fp64",
            out=tmp_path / str(seed),
        )
        _same(shared / "seeds" / f"seed-{seed}", alone.folder)


@pytest.mark.system
def test_what_one_process_began_two_finish(shared: Path, tmp_path: Path) -> None:
    whole = train("cosmos", tmp_path / "whole")
    _same(shared / "begun", whole.folder)


@pytest.mark.system
def test_what_two_processes_began_one_finishes(shared: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(shared / "cosmos", again)
    record = json.loads((again / "run.json").read_text())
    (again / "run.json").write_text(json.dumps(record | {"status": "training"}))
    _same(train("cosmos", again, resume=True).folder, shared / "cosmos")


@pytest.mark.system
def test_processes_draw_different_dropout_and_hold_the_same_weights(shared: Path) -> None:
    first, second = (json.loads((shared / f"told-{r}.json").read_text()) for r in (0, 1))
    assert first[0] == second[0]
    assert set(first[1]) == set(second[1]) == {0.0, 2.0}  # dropped, or scaled
    assert first[1] != second[1]
    saved, _ = load_tensors(shared / "dropped" / "model.safetensors")
    assert saved["calls"] == 8  # of the first process: batches in an epoch


# ---------------------------------------------------------------- a process among others, alone


def test_shares_cover_every_sample_once_in_order() -> None:
    for samples in (2, 3, 7, 30):
        shares = [Processes(rank, 2).share(samples) for rank in (0, 1)]
        found = [at for share in shares for at in range(samples)[share]]
        assert found == list(range(samples))
    assert [Processes(rank, 3).share(2) for rank in range(3)] == [slice(0, 2)] * 3


def test_rays_agree_or_differ() -> None:
    rays = torch.eye(4)
    assert torch.equal(Processes(1, 2).share_of_rays(rays), rays[2:])
    assert torch.equal(Processes(1, 2).share_of_rays(rays[:1]), rays[:1])


# ---------------------------------------------------------------- what ends them


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Start two processes that are to train together, with arguments for each rank."""
    port = find_port()
    return lambda of: [start_rank(rank, port, tmp_path, *of(rank)) for rank in (0, 1)]


def _refused(both: list[Started]) -> str:
    """What the first of two processes says, where both refuse and the other says nothing."""
    (code, said), (other_code, other_said) = (one.ended() for one in both)
    assert (code, other_code) == (2, 2)
    assert "error:" not in other_said  # torch may warn of a name that no server knows
    return said


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _epoch(folder: Path) -> int:
    return next(iter(list_checkpoints(folder)), 0)


@pytest.mark.system
def test_a_lost_process_ends_the_others_with_a_usable_checkpoint(
    tmp_path: Path, begin: Begin
) -> None:
    given = ("toy_convex", "--epochs", "100000", "--out", "run", "--set", "rays=3")
    first, second = begin(lambda _: given)
    try:
        _until(lambda: _epoch(tmp_path / "run") >= 2)
    finally:
        second.send_signal(signal.SIGKILL)
    code, said = first.ended()
    assert code == 2
    (line,) = [line for line in said.splitlines() if line.startswith("error:")]
    assert "was lost" in line
    assert "`run`" in line
    assert "--resume" in line
    assert _epoch(tmp_path / "run") >= 2


@pytest.mark.system
def test_a_process_told_to_end_says_how_to_go_on(tmp_path: Path) -> None:
    given = ("train", "toy_convex", "--epochs", "100000", "--out", "run", "--set", "rays=3")
    process = start(*given, folder=tmp_path)
    try:
        _until(lambda: _epoch(tmp_path / "run") >= 2)
    finally:
        process.send_signal(signal.SIGTERM)
    code, said = process.ended()
    assert code == 130
    assert "continue with --out run --resume" in said


TABLE = ("--target", "paid", "--sensitive", "sex", "--epochs", "1", "--out", "run")
TOY = ("toy_convex", "--epochs", "1", "--out", "run")


@pytest.mark.system
def test_processes_that_disagree_about_data(tmp_path: Path, begin: Begin) -> None:
    for rank in (0, 1):
        rows = [f"{at % 7},{at % 2},{at % 3 % 2}" for at in range(100 + rank)]
        (tmp_path / f"{rank}.csv").write_text("a,sex,paid\n" + "\n".join(rows) + "\n")
    said = _refused(begin(lambda rank: (f"{rank}.csv", *TABLE)))
    assert "have the same data" in said
    assert "same command" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.system
def test_one_process_that_cannot_begin_ends_all(tmp_path: Path, begin: Begin) -> None:
    (tmp_path / "0.csv").write_text("a,sex,paid\n" + "1,0,1\n2,1,0\n3,1,1\n4,0,0\n" * 25)
    said = _refused(begin(lambda rank: (f"{rank}.csv", *TABLE)))
    assert "process 1 of 2: " in said
    assert "1.csv" in said


@pytest.mark.system
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--method", "cosmos", "--penalty"), "`method.settings.penalty`, found 0.1"),
        (("--engine", "foo"), "unknown engine `foo`"),
        (("--set", "rays_per_batch=5", "--set", "batch_size=100"), "use rays_per_batch=2"),
    ],
    ids=["disagree", "all refuse", "groups"],
)
def test_what_two_processes_refuse_is_said_once(
    given: tuple[str, ...], says: str, begin: Begin
) -> None:
    def of(rank: int) -> tuple[str, ...]:
        return (*TOY, *given, *[f"0.{rank + 1}"][: given[-1] == "--penalty"])

    assert _refused(begin(of)).count(says) == 1


@pytest.mark.system
def test_batch_statistics_of_a_single_sample_are_refused(begin: Begin) -> None:
    """A last batch of three leaves the second process one."""
    given = ("tests.runtime.distributed.cases:table", *TOY[1:])
    network = ("--backbone", "tests.runtime.distributed.cases:normed", "--set", "batch_size=26")
    said = _refused(begin(lambda _: (*given, *network)))
    assert "several values per channel" in said
    assert "`batch_size`" in said


@pytest.mark.parametrize("rank", ["1", "x"])
def test_a_rank_without_others_is_nobodys(
    rank: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(sys, "argv", ["paretocosmos", "list", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.system
def test_loading_a_run_of_two_processes(shared: Path) -> None:
    assert load_run(shared / "cosmos").front.names == ("binary_cross_entropy", "deo")
