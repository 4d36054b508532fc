"""A training as others see it: from its folder, over loopback, until it ends."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretocosmos import fit, load_run
from paretocosmos.explorer.live import Watch, read_state
from paretocosmos.io.files import is_locked, lock_folder
from paretocosmos.io.palette import RUNS
from paretocosmos.training.progress import Progress

SMALL: dict[str, Any] = {"epochs": 3, "device": "cpu", "engine": "eager", "preset": "paper"}


@pytest.fixture
def states(tmp_path: Path) -> list[dict[str, Any]]:
    """What a folder says after every epoch of a training in it, and when it is finished."""
    seen: list[dict[str, Any]] = []

    def follow(at: Progress) -> None:
        seen.append(read_state(tmp_path))

    fit("toy_convex", out=tmp_path / "run", progress=follow, **SMALL)
    return [*seen, read_state(tmp_path)]


def test_the_folder_of_a_training_tells_how_far_it_is(
    states: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert [state["runs"][0]["epoch"] for state in states] == [1, 2, 3, 3]
    assert [state["over"] for state in states] == [False, False, False, True]
    assert [state["runs"][0]["status"] for state in states][-2:] == ["training", "finished"]
    assert states[0]["runs"][0]["seconds_left"] > 0
    record = load_run(tmp_path / "run").record
    last = states[-1]["runs"][0]["evaluations"]
    assert [one["hypervolume_val"] for one in last] == [
        one["hypervolume_val"] for one in record["evaluations"]
    ]
    assert last[-1]["values"] == record["evaluations"][-1]["values"]
    assert len(states[0]["runs"][0]["evaluations"]) <= len(last)


def test_a_killed_training_has_stopped(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"status": "training"}))
    state = read_state(folder)
    assert (state["over"], state["runs"][0]["status"]) == (True, "stopped")
    with lock_folder(folder):
        assert is_locked(folder)
        assert read_state(folder)["runs"][0]["status"] == "training"
    assert not is_locked(folder)


def _get(address: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.system
def test_the_page_is_for_this_machine_and_ends_with_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretocosmos.explorer.live.POLL_SECONDS", 0.01)
    monkeypatch.setattr("paretocosmos.explorer.live.LINGER_SECONDS", 0.0)
    with Watch(lambda: folder) as watch:
        assert watch.address.startswith("http://127.0.0.1:")
        code, text = _get(watch.address + "state.json")
        assert (code, json.loads(text)) == (200, json.loads(json.dumps(read_state(folder))))
        for name in ("", "watch.js", "watch.css", "page.css"):
            assert _get(watch.address + name)[0] == 200
        assert _get(watch.address, Host="evil.example")[0] == 403
        assert _get(watch.address + "../run.json")[0] == 404
        (folder / "report.html").unlink(missing_ok=True)
        assert _get(watch.address + "report.html")[0] == 404
        (folder / "report.html").write_text("the page")
        assert _get(watch.address + "report.html") == (200, "the page")
        assert watch.wait()["over"]
        address = watch.address
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


@pytest.mark.system
def test_nothing_is_shown_before_there_is_a_folder() -> None:
    place: Callable[[], Path | None] = lambda: None  # noqa: E731
    with Watch(place) as watch:
        assert json.loads(_get(watch.address + "state.json")[1])["runs"] == []


def test_a_browser_draws_it_without_complaint(folder: Path, chromium: Any) -> None:
    complaints: list[str] = []
    with Watch(lambda: folder) as watch:
        page = chromium.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(watch.address)
        page.wait_for_selector("figure")
        assert page.locator("figure").count() == 3
        assert page.locator("#standing").inner_text() == "The training has ended."
        assert "epoch 1 of 1, finished" in page.locator("main").inner_text()
        assert page.locator("circle").count() == 25
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        # in the colours of the explorer: without them lines would not be seen
        drawn = page.evaluate("getComputedStyle(document.querySelector('polyline')).stroke")
        assert drawn == "rgb({}, {}, {})".format(*bytes.fromhex(RUNS["light"][0].removeprefix("#")))
        page.close()
    assert complaints == []
