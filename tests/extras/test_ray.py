"""Cells on a Ray cluster of two workers: the same runs, also where they share no disk."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import paretocosmos
from paretocosmos.errors import ConfigurationError
from paretocosmos.paper.recipe import Experiment, Recipe
from paretocosmos.paper.reproduction import Reproduction, reproduce
from paretocosmos.runs import load_run
from paretocosmos.training import tasks
from paretocosmos.training.tasks import Task

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

# What the workers import besides the package: a problem that kills its worker, so many times, and
# a method that waits until somebody has seen it train.
OWN = '''
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
from paretocosmos.methods import Linear
from paretocosmos.problems import load_problem

def deadly(*, protocol: str = "clean", marks: str = "", times: int = 1):
    """Kills its process, so many times."""
    begun = len(list(Path(marks).iterdir()))
    Path(marks, str(begun)).touch()
    if begun < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return load_problem("toy_convex")

@dataclass(frozen=True, kw_only=True)
class Watched(Linear):
    """Takes its time until somebody has seen it train."""
    seen: str = ""

    def at_epoch(self, epoch, state):
        if not Path(self.seen).exists():
            time.sleep(0.1)
        return super().at_epoch(epoch, state)
'''
SETTINGS = {"epochs": 2, "hidden": [8]}
RESULTS = ("front.json", "front_val.json", "model.safetensors")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "own_problems.py").write_text(OWN)
    return folder


@contextmanager
def _two_nodes(modules: Path) -> Iterator[tuple[Any, Any]]:
    """A cluster of two nodes with one CPU each, and the node that is not its head."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        paths = [str(modules), os.environ.get("PYTHONPATH", "")]
        patched.setenv("PYTHONPATH", ":".join(path for path in paths if path))
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.syspath_prepend(modules)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            yield made, made.add_node(num_cpus=1)
        finally:
            made.shutdown()


@pytest.fixture(scope="module")
def cluster(modules: Path) -> Iterator[str]:
    with _two_nodes(modules) as (nodes, _):
        yield nodes.address


def _recipe(*cells: Experiment) -> Recipe:
    return Recipe("mine", "Mine", "none", "table", cells)


def _cells(seeds: tuple[int, ...] = (1,)) -> tuple[Experiment, ...]:
    pairs = ((p, m) for p in ("toy_convex", "toy_concave") for m in ("cosmos", "linear"))
    return tuple(Experiment(p, m, None, SETTINGS, seeds) for p, m in pairs)


@contextmanager
def _unseen(folder: Path) -> Iterator[Path]:
    """A mark that no worker finds, as on a machine that does not share the disk."""
    yield Path("/nowhere/at/all")


@pytest.mark.parametrize("shared", [True, False])
def test_a_cluster_trains_the_same_cells(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    if not shared:
        monkeypatch.setattr(tasks, "_mark_folder", _unseen)
    recipe = _recipe(*_cells(seeds=(1, 2)))
    here = reproduce(recipe, out=tmp_path / "here", device="cpu")
    there = reproduce(recipe, out=tmp_path / "there", device="cpu", cluster=cluster)
    assert (here.failures, there.failures) == ({}, {})
    for cell in recipe.experiments:
        for seed in (1, 2):
            one, two = (cell.runs(tmp_path / out)[seed] for out in ("here", "there"))
            assert [(one / n).read_bytes() for n in RESULTS] == [
                (two / n).read_bytes() for n in RESULTS
            ]
            assert load_run(two).record["seeds_together"] == 2
            assert not (two / "checkpoint").exists()
    left = {path.name for path in (tmp_path / "there").iterdir()}
    assert left == {"cells", "mine.json"}
    assert not ray.is_initialized()


@pytest.mark.parametrize("shared", [True, False])
def test_a_node_is_killed_in_the_middle(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    if not shared:
        monkeypatch.setattr(tasks, "_mark_folder", _unseen)
    mark, killed = tmp_path / "seen", list[str]()
    settings = {"epochs": 300, "hidden": [8], "seen": str(mark)}
    recipe = _recipe(
        *(
            Experiment(p, "own_problems:Watched", None, settings)
            for p in ("toy_convex", "toy_concave")
        )
    )
    with _two_nodes(modules) as (nodes, second):

        def kill(at: Reproduction) -> None:
            running = [one for one in at.select("running") if one.progress is not None]
            # one on each node, in the middle of its training
            if len(running) == 2 and not killed:
                killed.append("second")
                nodes.remove_node(second, allow_graceful=False)
                mark.touch()

        there = reproduce(
            recipe, out=tmp_path / "there", device="cpu", cluster=nodes.address, progress=kill
        )
        here = reproduce(recipe, out=tmp_path / "here", device="cpu")
    assert (killed, there.failures, here.failures) == (["second"], {}, {})
    for cell in recipe.experiments:
        one, two = (cell.runs(tmp_path / out)[1] for out in ("here", "there"))
        assert all((one / name).read_bytes() == (two / name).read_bytes() for name in RESULTS)


@pytest.mark.parametrize(
    ("times", "state", "tried"), [(1, "done", 2), (99, "failed", 3)], ids=["once", "always"]
)
def test_a_cell_whose_worker_is_lost_is_tried_again_and_fails_alone(
    times: int, state: str, tried: int, cluster: str, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    settings = SETTINGS | {"marks": str(marks), "times": times}
    deadly = Experiment("own_problems:deadly", "linear", None, settings)
    recipe = _recipe(deadly, _cells()[0])
    done = reproduce(recipe, out=tmp_path / "out", device="cpu", cluster=cluster)
    assert [one.state for one in done.statuses.values()] == [state, "done"]
    assert len(list(marks.iterdir())) == tried
    for why in done.failures.values():
        assert why.startswith("its worker was lost 3 times (")
        assert "\n" not in why


def test_a_bug_far_away_leaves_its_log_here(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_mark_folder", _unseen)
    # there are no such marks, which nobody foresaw
    settings = SETTINGS | {"marks": "/nowhere", "times": 1}
    broken = Experiment("own_problems:deadly", "linear", None, settings)
    done = reproduce(
        _recipe(broken, _cells()[0]), out=tmp_path / "out", device="cpu", cluster=cluster
    )
    assert [one.state for one in done.statuses.values()] == ["failed", "done"]
    log = broken.folder(tmp_path / "out") / "error.log"
    assert f"`{log}`" in done.failures[broken.name]
    assert "FileNotFoundError" in log.read_text()


def test_a_worker_with_another_version_is_refused(tmp_path: Path) -> None:
    task = Task("a", tmp_path, lambda folder, progress: [])
    outcome, files = tasks._run_remotely(task, tmp_path, "99.0", None)
    assert outcome.error == (
        f"its worker has paretocosmos {paretocosmos.__version__}, not 99.0: install the same "
        "everywhere"
    )
    assert files == {}


def test_no_cluster_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no Ray cluster.*`127\.0\.0\.1:1`"):
        reproduce(_recipe(*_cells()), out=tmp_path, device="cpu", cluster="127.0.0.1:1")


def test_one_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    done = reproduce(_recipe(_cells()[0]), out=tmp_path, device="cpu", cluster="local")
    assert [one.state for one in done.statuses.values()] == ["done"]
    saved = json.loads((tmp_path / "mine.json").read_text())
    assert saved["cells"][0]["seeds_done"] == [1]
