"""Loggers against the real packages: what was told is what their own readers find."""

import json
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.resumed import stop_at

from paretocosmos import Run, fit
from paretocosmos.errors import CallbackWarning
from paretocosmos.integrations.loggers import make_logger

# those packages are behind with what others deprecate, and leave temporary folders to the system
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),
]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, and without a word to anybody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    for name in ("WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


def _go(logger: str, **given: Any) -> Run:
    options = {"epochs": 3, "settings": {"evaluate_every": 2}, "device": "cpu", **given}
    return fit("toy_convex", out="run", callbacks=[make_logger(logger)], **options)


def _stopped_and_resumed(logger: str) -> Run:
    with pytest.raises(InterruptedError):
        _go(logger, progress=stop_at(2))
    return _go(logger, resume=True)


def _evaluations(run: Run) -> dict[int, float]:
    return {one["epoch"]: one["hypervolume_val"] for one in run.record["evaluations"]}


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = _stopped_and_resumed("tensorboard=logs")
    (place,) = (tmp_path / "logs").iterdir()
    assert place.name == "toy_convex-cosmos-1"
    found = EventAccumulator(str(place)).Reload()
    reached = {one.step: one.value for one in found.Scalars("hypervolume/val")}
    assert reached == pytest.approx(_evaluations(run))
    assert [one.step for one in found.Scalars("loss/first")] == [1, 2, 3]
    last = run.record["evaluations"][-1]["losses"]["second"]
    assert found.Scalars("loss/second")[-1].value == pytest.approx(last)
    (final,) = found.Scalars("hypervolume/test")
    assert final.value == pytest.approx(run.hypervolume)
    told = found.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert json.loads(told)["training"] == run.record["training"]
    (front,) = found.Tensors("front/test/text_summary")
    lines = front.tensor_proto.string_val[0].decode().splitlines()
    assert lines[0] == "weight of first | weight of second | first | second"
    assert len(lines) == 2 + len(run.front)
    assert float(lines[2].split(" | ")[2]) == pytest.approx(run.front.values[0, 0], rel=1e-3)
    fit("toy_convex", epochs=1, out="other", callbacks=[make_logger("tensorboard=logs")])
    names = sorted(one.name for one in (tmp_path / "logs").iterdir())
    assert names == ["toy_convex-cosmos-1", "toy_convex-cosmos-1-2"]


def _records(path: Path) -> Iterator[bytes]:
    """The records of a LevelDB log, which is what W&B writes: blocks of 32 KiB, parts in them."""
    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # all of it, or its last part
            yield whole
            whole = b""


def _written(log: Path) -> list[Any]:
    """What W&B has written once it is done, which is a moment after the run has ended."""
    from wandb.proto.wandb_internal_pb2 import Record

    until = time.monotonic() + 300
    while time.monotonic() < until:
        found = [Record.FromString(part) for part in _records(log)]
        if any(one.HasField("exit") for one in found):
            return found
        time.sleep(0.05)
    raise AssertionError("it never ended")


def test_wandb(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    run = _stopped_and_resumed("wandb=fronts")
    places = sorted((tmp_path / "wandb").glob("offline-run-*"))
    # not by the folder's name: W&B adds "-1" to the second of one second
    (_,) = {log.name for place in places for log in place.glob("run-*.wandb")}  # both are one run
    rows, ends, settings = dict[int, dict[str, Any]](), list[int](), dict[str, Any]()
    for place in places:
        for one in _written(next(place.glob("*.wandb"))):
            if one.HasField("history"):
                values = {
                    "/".join(item.nested_key) or item.key: json.loads(item.value_json)
                    for item in one.history.item
                }
                rows.setdefault(values["epoch"], {}).update(values)
            elif one.HasField("exit"):
                ends.append(one.exit.exit_code)
            elif one.HasField("run"):
                assert one.run.project == "fronts"
                settings |= {u.key: json.loads(u.value_json) for u in one.run.config.update}
    assert sorted(rows) == [1, 2, 3]
    reached = {e: row["hypervolume/val"] for e, row in rows.items() if "hypervolume/val" in row}
    assert reached == pytest.approx(_evaluations(run))
    assert rows[3]["loss/second"] == run.record["evaluations"][-1]["losses"]["second"]
    assert rows[3]["hypervolume/test"] == pytest.approx(run.hypervolume)
    assert settings["training"] == run.record["training"]
    assert sorted(ends) == [0, 1]
    table = places[-1] / "files" / rows[3]["front/test/path"]
    content = json.loads(table.read_text())
    assert content["columns"] == ["weight of first", "weight of second", "first", "second"]
    assert [row[2:] for row in content["data"]] == run.front.values.tolist()


def test_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    from mlflow import MlflowClient

    store = f"sqlite:///{tmp_path}/store.db"
    run = _stopped_and_resumed(f"mlflow={store}")
    client = MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("paretocosmos")
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.run_name, found.info.status) == ("toy_convex-cosmos-1", "FINISHED")

    def history(name: str) -> dict[int, float]:
        return {one.step: one.value for one in client.get_metric_history(found.info.run_id, name)}

    assert history("hypervolume/val") == pytest.approx(_evaluations(run))
    assert sorted(history("loss/first")) == [1, 2, 3]
    assert history("hypervolume/test") == {3: pytest.approx(run.hypervolume)}
    assert found.data.params["training.epochs"] == "3"
    files = {one.path for one in client.list_artifacts(found.info.run_id, "fronts")}
    assert files == {f"fronts/{name}.json" for name in ("val-00002", "val-00003", "test-00003")}
    front = client.download_artifacts(found.info.run_id, "front.json", str(tmp_path))
    assert json.loads(Path(front).read_text()) == run.front.to_dict()


def test_a_store_that_cannot_be_had_costs_the_log_alone(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    (tmp_path / "logs").write_text("a file")
    with pytest.warns(CallbackWarning, match="`TensorBoard` failed at `started`"):
        run = _go("tensorboard=logs")
    assert run.record["status"] == "finished"


def test_the_command_line_logs(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    command = [sys.executable, "-m", "paretocosmos", "train", "toy_convex", "--epochs", "1"]
    done = subprocess.run([*command, "--log-to", "tensorboard"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (place,) = (tmp_path / "runs/tensorboard").iterdir()
    assert list(place.glob("events.*"))
