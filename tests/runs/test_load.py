"""Run folders that are whole, hashed, and still not what a training writes."""

import shutil
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.strangers import change

from paretocosmos import fit, load, load_run
from paretocosmos.cli.train import print_run
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.nn.backbones import Tabular
from paretocosmos.problems.tables import read_embedded
from paretocosmos.runs import checkpoint, problem_from_rows


def test_a_stranger_need_not_say_how_much_is_dominated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit(
        "toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager"
    ).folder

    def edit(record: dict[str, Any]) -> None:
        for key in ("span", "dominated_share"):
            del record["metrics"]["test"][key]
        record["about"] = {"sensitive": "sex", "groups": 3}

    change(folder, edit)
    print_run(load_run(folder))
    assert "0% of 25 rays" in capsys.readouterr().out


def test_a_buffer_may_mask_with_infinity(tmp_path: Path) -> None:
    class Masked(torch.nn.Module):
        mask: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 2)
            self.register_buffer("mask", torch.tensor([0.0, float("-inf")]))

        def forward(self, inputs: torch.Tensor, ray: torch.Tensor) -> torch.Tensor:
            joined = torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1)
            return self.layer(joined) + self.mask.isfinite()

    given: dict[str, Any] = {"epochs": 1, "out": tmp_path / "run", "report": False}
    fit("toy_convex", preset="paper", model=Masked(), **given)
    assert load_run(tmp_path / "run", model=Masked()).front.names == ("first", "second")


def _set(*place: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(record: dict[str, Any]) -> None:
        part: Any = record
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value

    return edit


GROUPING = ("about", "grouping")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (_set("about", "target", value=3), r"run.json` is damaged: `about.target` must be text"),
        (_set("about", "negative", value=None), "`positive` and `negative`"),
        (_set("about", "answer", value="yes"), "`about.answer` must be a mapping"),
        (
            _set("about", "answer", value={"task": "guess", "classes": [], "mean": 0, "scale": 1}),
            "`about.answer.task` must be `binary`",
        ),
        (
            _set("about", "answer", value={"task": "binary", "classes": [], "mean": 0, "scale": 1}),
            "`answer` has 0 classes for the task `binary`",
        ),
        (_set(*GROUPING, value=[]), "`about.grouping` must be a mapping"),
        (_set(*GROUPING, "places", value=[]), "`about.grouping.places` must have at least 1"),
        (_set(*GROUPING, "places", value=[0]), "`cells` have a place each"),
        (_set(*GROUPING, "places", value=[7, 9]), "`places` are the indices of `names`"),
        (_set(*GROUPING, "attributes", 0, "labels", value="f"), "labels` must be a list"),
    ],
)
def test_what_a_damaged_record_says_of_a_table_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], says: str
) -> None:
    folder = shutil.copytree(load("compas").folder, tmp_path / "run")
    with pytest.raises(RunError, match=says):
        load_run(change(folder, edit))


@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
def test_an_objective_of_a_record_reads_a_target_of_its_problem(tmp_path: Path) -> None:
    folder = shutil.copytree(load("compas").folder, tmp_path / "run")
    run = load_run(change(folder, _set("objective_specs", 0, "settings", "target", value="odd")))
    rows = read_embedded("compas").tail(100)
    for use in (run.problem, partial(problem_from_rows, run, rows)):
        with pytest.raises(RunError, match="`binary_cross_entropy` reads the target `odd`"):
            use()


def test_weights_that_are_nan_are_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(load("compas").folder, tmp_path / "run")
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"paretocosmos": "{}"})
    with pytest.raises(RunError, match=r"model.safetensors` is damaged: a weight is NaN"):
        load_run(change(folder, lambda record: None))


# ---------------------------------------------------------------- paths that are no text


def test_a_folder_that_could_not_be_read_is_refused_before_training(tmp_path: Path) -> None:
    out = tmp_path / "b\udcff" / "run"
    with pytest.raises(ConfigurationError, match=r"UTF-8 text.*rename"):
        fit("toy_convex", epochs=1, out=out)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigurationError, match=r"UTF-8 text.*rename"):
        load_run(out)


def test_data_whose_path_could_not_be_recorded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"target": "a", "sensitive": "b"}
    with pytest.raises(ConfigurationError, match=r"UTF-8 text"):
        fit("b\udcff/people.csv", settings=settings, out="run")
    assert not Path("run").exists()


@pytest.mark.parametrize("handed_over", [False, True])
def test_weights_larger_than_the_network_are_refused_unread(
    handed_over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager")
    file = run.folder / "model.safetensors"
    more = {"more": torch.zeros(3_000_000)}
    save_file(load_file(file) | more, file, metadata={"paretocosmos": "{}"})
    change(run.folder, lambda record: None)
    monkeypatch.setattr(
        "paretocosmos.runs.record.hash_file", lambda _: pytest.fail("it was hashed")
    )
    monkeypatch.setattr(checkpoint, "_read_tensors", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(RunError, match="do not fit the network"):
        load_run(run.folder, model=run.model if handed_over else None)


def test_weights_of_another_network_are_refused_in_a_few_words(tmp_path: Path) -> None:
    run = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager")
    file = run.folder / "model.safetensors"
    weights = load_file(file)
    first = weights.pop(next(iter(weights)))
    more = {f"{'long' * 50}.{number}": first.clone() for number in range(9)}
    save_file(weights | more, file, metadata={"paretocosmos": "{}"})
    change(run.folder, lambda record: None)
    with pytest.raises(RunError, match=r"1 missing .* and 9 that it does not have") as refused:
        load_run(run.folder)
    assert len(str(refused.value)) < 600


def test_a_wide_record_is_measured_without_memory() -> None:
    """A file says how wide a sample is, before anything tells whether there are such weights."""
    tracemalloc.start()
    try:
        with torch.device("meta"):
            network = Tabular((1 << 22,), 1, knots=((0.0, 1.0), (), (0.0, 2.0, 3.0)))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert network.embed.in_features == (1 << 22) - 2 + 1 + 2
