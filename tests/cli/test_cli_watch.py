"""A page beside a training, from the command line."""

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.training.loop import Trainer

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretocosmos.explorer.live.POLL_SECONDS", 0.01)
    monkeypatch.setattr("paretocosmos.explorer.live.LINGER_SECONDS", 0.0)


@pytest.mark.system
def test_a_finished_run_is_over(cli: Call, folder: Path) -> None:
    ended = cli("watch", str(folder), "--no-open")
    assert ended.code == 0, ended.err
    assert re.search(r"training at http://127\.0\.0\.1:\d+/ \(on this machine only\)", ended.err)
    assert f"note: {folder} is finished" in ended.err
    assert ended.out == f"next  paretocosmos explore {folder}\n"


def test_what_is_no_run_is_refused(cli: Call, tmp_path: Path) -> None:
    ended = cli("watch", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "there is no run in" in ended.err


@pytest.mark.system
def test_a_training_is_seen_while_it_trains(
    cli: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paretocosmos.cli.options.save_picture", lambda run: None)
    seen: list[dict[str, Any]] = []
    told: list[str] = []
    finish = Trainer._finish

    def look_then_finish(trainer: Trainer) -> Any:
        told.append(capsys.readouterr().err)
        (address,) = re.findall(r"http://[\d.:]+/", told[0])
        with urllib.request.urlopen(f"{address}state.json", timeout=120) as answer:
            seen.append(json.loads(answer.read()))
        return finish(trainer)

    monkeypatch.setattr(Trainer, "_finish", look_then_finish)
    given = ("--epochs", "3", "--device", "cpu", "--engine", "eager", "--out", "run")
    ended = cli("train", "toy_convex", *given, "--watch")
    assert ended.code == 0, ended.err
    (state,) = seen
    assert (state["over"], state["runs"][0]["epoch"]) == (False, 3)
    (address,) = re.findall(r"http://[\d.:]+/", told[0])
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=5)
