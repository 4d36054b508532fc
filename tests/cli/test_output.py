"""What a person is told after a training."""

import dataclasses
import io
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from paretocosmos import Run, fit
from paretocosmos.cli.compare import print_comparison
from paretocosmos.cli.console import err, print_fields, print_markup, print_next_command
from paretocosmos.cli.results import print_consequences
from paretocosmos.cli.train import print_run, print_runs
from paretocosmos.training.compare import BASELINES, Comparison
from paretocosmos.training.progress import Progress, show_bars


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("printing") / "run"
    return fit("toy_convex", preset="paper", epochs=2, out=folder)


def _with(run: Run, fixed: list[list[float]] | None, networks: list[dict[str, Any]]) -> Run:
    """The run as another method would leave it: networks for fixed rays, or one for all."""
    test = run.record["metrics"]["test"] | {"hypervolume_ideal": 2.71828}
    more = {"fixed_rays": fixed, "networks": networks, "parameters": 6891 * len(networks)}
    record = {**run.record, **more, "metrics": {"test": test, "val": test}}
    front = run.front if fixed is None else run.front.take(range(len(fixed)))
    return dataclasses.replace(run, record=record, front=front)


def test_several_networks_are_counted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    epochs = (5, 10, 5, 20, 15)
    rays = [[0.1 * k, 1 - 0.1 * k] for k in range(1, 6)]
    several = _with(
        run, rays, [{"ray": r, "epoch_selected": e} for r, e in zip(rays, epochs, strict=True)]
    )
    print_run(several)
    shown = " ".join(capsys.readouterr().out.split())
    assert "5 networks x 6,891 parameters" in shown
    assert "epochs 5 to 20 selected" in shown
    assert "of 5 networks" in shown
    assert "ideal" not in shown
    print_runs([several])
    shown = capsys.readouterr().out
    assert " 5 to 20 " in shown
    assert "5 networks x 6,891 parameters each" in shown


def test_one_point_is_no_front(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    print_run(_with(run, [[0.5, 0.5]], [{"epoch_selected": 10}]))
    shown = capsys.readouterr().out
    for words in ("dominated", "networks", "rays"):
        assert words not in shown
    assert "epoch 10 selected, 6,891 parameters" in shown


def test_networks_for_one_objective_each_have_an_ideal_point(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    print_run(_with(run, [[1.0, 0.0], [0.0, 1.0]], [{"epoch_selected": 10}] * 2))
    assert re.search(r"ideal point +2.7183 on test, 2.7183 on val", capsys.readouterr().out)


def _compared(run: Run) -> Comparison:
    """Five methods with long numbers; `worst` is dominated by all others."""

    def shifted(by: float, *, seed: int) -> Run:
        front = dataclasses.replace(run.front, values=run.front.values + by)
        return dataclasses.replace(run, front=front, record={**run.record, "seed": seed})

    runs = {name: [shifted(0.0, seed=1), shifted(0.0, seed=2)] for name in BASELINES[:4]}
    runs["single_task"] = [
        _with(one, [[1.0, 0.0], [0.0, 1.0]], [{"epoch_selected": 1}] * 2) for one in runs["cosmos"]
    ]
    worse = [shifted(10.0, seed=seed) for seed in (1, 2)]
    return Comparison(run.folder, "toy", {**runs, "worst": worse})


def test_a_pipe_loses_nothing(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    compared = _compared(run)
    print_comparison(compared)
    shown = capsys.readouterr().out
    assert "…" not in shown
    traded, _, table = shown.partition("\n\n")
    assert traded.split()[:4] == ["on", "test", "first", "second"]
    first, last = (f"{one:.4g}" for one in run.front.values[[0, -1], 0])
    assert f"{first} to {last}" in traded
    lines = {line.split()[0]: line for line in table.splitlines()}
    for row in compared.rows:
        line = lines[row["method"]]
        assert f"{row['hypervolume']:.4f} ± {row['hypervolume_std']:.4f}" in line
        for other, share in row["dominated_by"].items():
            assert f"{other} {share:.0%}" in line
    assert "2 x 6,891" in lines["single_task"]
    assert "2.7183" in shown  # of its ideal point
    assert len(compared.rows[-1]["dominated_by"]) == 5


def test_separate_networks_are_shown_from_the_same_end_as_others(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = np.linspace(0, 1, len(run.front))
    front = dataclasses.replace(run.front, values=np.stack([steps, 1 - steps], axis=1))
    mixed = front.take(np.random.default_rng(0).permutation(len(front)))
    networks = dataclasses.replace(mixed, provenance={**mixed.provenance, "networks": len(mixed)})
    runs = {
        "linear": [dataclasses.replace(run, front=front)],
        "separate": [dataclasses.replace(run, front=networks)],
    }
    print_comparison(Comparison(run.folder, "toy", runs))
    traded = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert [line.split(maxsplit=1)[1].split() for line in traded[1:]] == [
        ["0", "to", "1", "1", "to", "0"]
    ] * 2
    print_run(runs["separate"][0])
    shown = " ".join(capsys.readouterr().out.split())
    assert "from the network best at “lower first” to the one best at “lower second”" in shown


def test_the_traded_objective_is_shown_and_not_another(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper's difference of counts falls while the gap between rates rises."""
    steps = np.linspace(0, 0.3, len(run.front))
    metrics = {"accuracy": 0.9 - steps, "tpr_gap": steps}
    names = ("binary_cross_entropy", "deo")
    values = np.stack([0.1 + steps, 0.3 - steps], axis=1)
    front = dataclasses.replace(run.front, names=names, values=values, metrics=metrics)
    print_consequences(dataclasses.replace(run, front=front, trained_on=None))
    shown = " ".join(capsys.readouterr().out.split())
    assert "gap in how many are found 30.0 to 0.0 points deo" in shown
    assert "tpr_gap" not in shown


def test_beside_separate_networks_the_table_has_their_measures(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = _compared(run)
    runs = {**compared.runs, "separate": compared.runs["cosmos"]}
    print_comparison(dataclasses.replace(compared, runs=runs))
    shown = capsys.readouterr().out
    shown = shown.partition("\n\n")[2].partition("\n")[2]
    assert shown.split()[:5] == ["method", "order", "range", "behind", "hypervolume"]
    lines = {line.split()[0]: line.split() for line in shown.splitlines()}
    assert lines["cosmos"][2:4] == ["100%", "0.000"]
    assert lines["worst"][2] == "100%"
    assert float(lines["worst"][3]) > 10


# ---------------------------------------------------------------- bars


def _at(**changes: Any) -> Progress:
    at = Progress(
        epoch=99,
        epochs=100,
        losses={"binary_cross_entropy": 0.4567, "demographic_parity": 0.0123},
        hypervolume_val=3.34567,
        seconds=12.0,
        engine="captured",
        folder=Path("run"),
        unit="images",
        samples_per_second=1_234_567.0,
        seconds_left=3_725.0,
        memory=130_100_000_000,
        waiting=0.034,
    )
    return dataclasses.replace(at, **changes)


LONG = {"a_loss_with_a_long_name": 0.1234, "another_loss_with_a_long_name": 12.3456}
MANY = {f"task_{number}": 0.5 + number for number in range(10)}
SHOWN: dict[str, tuple[dict[str, float], tuple[str, ...]]] = {
    "two": ({"top_left": 0.1234, "bottom_right": 0.4567}, ("top_left 0.123", "bottom_right 0.457")),
    "three": ({"a": 0.1, "b": 0.2, "c": 0.3}, ("a 0.100  b 0.200  c 0.300",)),
    "long": (LONG, ("a_loss_with… 0.123  another_los… 12.346",)),
    "many": (MANY, ("0.500  1.500  2.500  3.500  4.500  5.500  +4",)),
}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 100 columns, as rich sees it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(err, "_width", 100)
    monkeypatch.setattr(err, "is_interactive", True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def _plain(text: str) -> list[str]:
    """Lines of a terminal without what moves its cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", text).splitlines()


@pytest.mark.parametrize(("losses", "said"), SHOWN.values(), ids=list(SHOWN))
def test_a_bar_has_room_in_100_columns(
    terminal: None,
    capsys: pytest.CaptureFixture[str],
    losses: dict[str, float],
    said: tuple[str, ...],
) -> None:
    seen: list[Path] = []
    with show_bars(seen, log=True) as show:
        show.update("", _at(losses=losses))
    shown = capsys.readouterr().err
    lines = _plain(shown)
    assert max(map(len, lines)) <= 100
    assert seen == [Path("run")]
    for words in (*said, "99/100", "HV val 3.3457", "1:02:0"):
        assert any(words in line for line in lines), words
    assert "1,234,567 images/s  130.1 GB  3 % waiting for data" in lines
    if losses is not LONG:
        assert "…" not in shown


def test_a_bar_for_each_method_and_one_cost(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_bars(log=True) as show:
        show.update("cosmos", _at(hypervolume_val=None))
        show.update(
            "phn_epo", _at(samples_per_second=3.21, unit="samples", memory=None, waiting=0.0)
        )
    lines = _plain(capsys.readouterr().err)
    last = [line for line in lines if line.strip()][-3:]
    assert [line.split()[0] for line in last] == ["cosmos", "phn_epo", "3.2"]
    assert last[-1] == "3.2 samples/s  0 % waiting for data"
    assert max(map(len, lines)) <= 100


class Clock:
    """Time that passes when told to, beside a console of 80 columns."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("paretocosmos.training.progress.time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(err, "_width", 80)
    return clock


def test_a_log_gets_a_line_now_and_then(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with show_bars(log=True) as show:
        for epoch in range(1, 101):
            clock.now += 2.0
            show.update("", _at(epoch=epoch))
        lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"epoch {n}/100" for n in range(15, 101, 15)]
    assert lines[0] == (
        "epoch 15/100  binary_cross_entropy 0.457  demographic_parity 0.012  HV val 3.3457  "
        "1,234,567 images/s  130.1 GB  3 % waiting for data  1:02:05 left"
    )
    assert capsys.readouterr().err == ""  # no bar beside the lines
    with show_bars(log=True) as both:
        clock.now += 31
        both.update("phn_ls", _at(hypervolume_val=None))
        assert capsys.readouterr().err.startswith("phn_ls  epoch 99/100  ")


def test_a_terminal_has_no_lines_and_quiet_has_nothing(
    terminal: None, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_bars(log=True) as show:
        clock.now += 100
        show.update("", _at())
    shown = capsys.readouterr().err
    assert "\x1b[" in shown
    assert "left" not in shown
    with show_bars(quiet=True, log=True) as show:
        clock.now += 100
        show.update("", _at())
    assert capsys.readouterr().err == ""


def test_names_from_files_cannot_steer_a_terminal(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    front = dataclasses.replace(run.front, names=("\x1b[2J\x1b[31m", "[bold]gap\x07\n"))
    about = {"positive": "\x1b]0;title\x07", "target": "[red]"}
    print_run(dataclasses.replace(run, front=front, record={**run.record, "about": about}))
    shown = capsys.readouterr().out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert r"\x1b[2J" in shown
    assert "[bold]gap" in shown
    assert r"`\x1b]0;title\x07` of `[red]`" in shown


def test_a_narrow_terminal_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied, a path or a command, is in one piece."""
    console = Console(file=io.StringIO(), width=50, force_terminal=True, color_system=None)
    monkeypatch.setattr("paretocosmos.cli.console.get_stdout", lambda: console)
    words = "a sentence with `binary_cross_entropy` in it and a path"
    path = "/a/very/long/path/that/nobody/can/shorten/and/must/be/copied/run.json"
    with console.capture() as shown:
        print_markup(console, f"[bold]{words}[/] {path} in it")
    lines = shown.get().splitlines()
    assert path in lines
    assert " ".join(lines) == f"{words} {path} in it"
    assert all(len(line) <= 50 for line in lines if line != path)
    with console.capture() as shown:
        print_fields({"run": path, "what it says": words})
    lines = shown.get().splitlines()
    assert lines[0].split() == ["run", path]
    assert [line[:16].strip() for line in lines[1:]] == ["what it says", "", ""]
    assert max(map(len, lines[1:])) <= 50
    with console.capture() as shown:
        print_next_command("choose", "runs/my run", "--max", "demographic_parity=0.02")
    command = shlex.split(shown.get().removeprefix("next  "))
    assert command[1:] == ["choose", "runs/my run", "--max", "demographic_parity=0.02"]
