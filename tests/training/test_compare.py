"""Several methods on one problem: the numbers, who is refused, who fails, and how to go on."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import fit
from paretocosmos.errors import ConfigurationError, FrontWarning, RunError
from paretocosmos.evaluation import move_batch
from paretocosmos.methods import Cosmos
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto import Front
from paretocosmos.problems import Problem, Split, load_problem
from paretocosmos.problems.functions import ToyProblem
from paretocosmos.runs import load_run
from paretocosmos.training.compare import Comparison, compare
from paretocosmos.training.progress import Progress
from paretocosmos.types import Batch, Outputs, Targets

SMALL: dict[str, Any] = {"device": "cpu", "engine": "eager"}
HIDDEN = {"hidden": "8"}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Methods of one network, of one per objective, and of five; look, do not touch."""
    methods = ("cosmos", "single_task", "pareto_mtl", "mgda")
    folder = tmp_path_factory.mktemp("compared") / "runs"
    return compare(
        "toy_convex",
        methods,
        preset="paper",
        seeds=(1, 2),
        epochs=2,
        settings=HIDDEN,
        out=folder,
        **SMALL,
    )


def test_a_comparison_leaves_every_run_and_one_file(done: Comparison) -> None:
    for method, runs in done.runs.items():
        for seed, run in zip((1, 2), runs, strict=True):
            assert run.folder == done.folder / method / f"seed-{seed}"
            assert load_run(run.folder).front == run.front
    saved = json.loads((done.folder / "compare.json").read_text())
    numbers = done.to_dict()
    assert numbers.pop("folder") == str(done.folder)
    fronts = saved.pop("fronts")
    assert saved == numbers
    assert (saved["problem"], saved["protocol"], saved["seeds"]) == ("toy_convex", "clean", [1, 2])
    for method, own in fronts.items():
        assert [Front.from_dict(one) for one in own] == [run.front for run in done.runs[method]]


def test_rows_say_how_many_points_and_networks(done: Comparison) -> None:
    found = {row["method"]: (row["points"], row["networks"]) for row in done.rows}
    assert found == {"cosmos": (25, 1), "single_task": (2, 2), "pareto_mtl": (5, 5), "mgda": (1, 1)}
    assert done.alone == ["single_task"]


def test_settings_are_for_all_or_for_one(tmp_path: Path) -> None:
    settings = {"linear.epochs": "1", "cosmos.penalty": 2, "batch_size": 128, **HIDDEN}
    methods = ["cosmos", "linear"]
    compared = compare(
        "toy_convex",
        methods,
        preset="paper",
        epochs=2,
        settings=settings,
        out=tmp_path / "runs",
        **SMALL,
    )
    records = {method: compared.runs[method][0].record for method in methods}
    assert records["cosmos"]["method"]["settings"]["penalty"] == 2
    assert {m: record["training"]["epochs"] for m, record in records.items()} == {
        "cosmos": 2,
        "linear": 1,  # its own goes before the one for all, wherever it stands
    }
    assert {record["training"]["batch_size"] for record in records.values()} == {128}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown method": ({"methods": ["cosmos", "lineer"]}, "did you mean `linear`.*phn_ls"),
    "twice": ({"methods": ["cosmos", "uniform", "cosmos"]}, "names `cosmos` twice"),
    "none": ({"methods": []}, "at least one name, found none"),
    "no seeds": ({"seeds": []}, "`seeds` must be different whole numbers"),
    "one seed": ({"seeds": 5}, "`seeds` must be different whole numbers, found 5"),
    "an object": (
        {"methods": [Cosmos()]},
        r"must be names, found \[Cosmos.*`package\.module:Name`",
    ),
    "a class": ({"methods": ["uniform", Cosmos]}, "`methods` must be names, found"),
    "rays_per_batch of one": (
        {"settings": {"uniform.rays_per_batch": 2}},
        "^uniform: `rays_per_batch` sets several rays",
    ),
    "seeds twice": ({"seeds": [1, 1]}, "`seeds` must be different whole numbers"),
    "second seed": ({"seeds": [1, -1]}, "`seed` must be at least 0.*found -1"),
    "engine": ({"engine": "eagre"}, "did you mean `eager`"),
    "told once": ({"epochs": 0}, "`epochs` must be at least 1, found 0$"),
    "told of one": ({"settings": {"cosmos.penalty": -1}}, "^cosmos: `penalty` must be finite"),
    "unknown setting": ({"settings": {"penalti": 1}}, "unknown setting `penalti`.*`penalty`"),
    "some": ({"settings": {"penalty": 2}}, "^uniform: unknown setting `penalty`"),
    "not compared": ({"settings": {"mgda.penalty": 2}}, "unknown setting `mgda.penalty`"),
    "all at once": ({"settings": {"a": 1, "cosmos.b": 2}}, "`a`.*`b`"),
    "reference": ({"settings": {"cosmos.reference": (2, 2)}}, "changes what is measured"),
    "no folder": ({"out": None, "resume": True}, "`resume` needs `out`"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=list(REFUSED))
def test_what_can_be_refused_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Mapping[str, Any], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {"methods": ["cosmos", "uniform"], "out": "runs", **SMALL} | dict(given)
    with pytest.raises(ConfigurationError, match=says):
        compare("toy_convex", preset="paper", **asked)
    assert list(tmp_path.iterdir()) == []


def _given(dtype: torch.dtype = torch.float32, *, negative: bool = False) -> Problem:
    """A problem built by hand, in any precision; its second loss may be below 0."""
    toy = load_problem("toy_convex")
    objectives = (toy.objectives[0], Shifted(name="second", target="second"))
    fields = {field.name: getattr(toy, field.name) for field in dataclasses.fields(toy)}
    if negative:
        fields["objectives"] = objectives
    return Typed(**fields | {"spec": None, "dtype": dtype})


class Shifted(MeanSquaredError):  # noqa: N818
    """A loss that can be negative."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets) - 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Typed(ToyProblem):
    dtype: torch.dtype

    def split(self, name: Split) -> Batch:
        return move_batch(super().split(name), torch.device("cpu"), self.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_problem_as_an_object(dtype: torch.dtype, tmp_path: Path) -> None:
    problem, methods = _given(dtype), ["cosmos", "mgda", "epo"]
    given: dict[str, Any] = {"epochs": 1, "settings": HIDDEN, **SMALL}
    found = compare(problem, methods, preset="paper", out=tmp_path / "runs", **given)
    assert list(found.runs) == methods
    assert found.problem == "toy_convex"
    alone = fit(problem, preset="paper", method="mgda", out=tmp_path / "alone", **given)
    assert found.runs["mgda"][0].front == alone.front
    assert ["infeasible_share" in row for row in found.rows] == [False, False, True]


@pytest.mark.parametrize("method", ["epo", "phn_epo", "pareto_mtl", "mgda"])
def test_what_a_method_would_refuse_is_refused_before_another_is_trained(
    method: str, tmp_path: Path
) -> None:
    problem, asked = _given(negative=True), []
    with pytest.raises(ConfigurationError, match=f"^{method}: .*found -.* for `second`") as told:
        compare(
            problem,
            ["cosmos", method],
            preset="paper",
            out=tmp_path / "runs",
            progress=lambda *at: asked.append(at),
            **SMALL,
        )
    assert "\n" not in str(told.value)
    assert (asked, list(tmp_path.iterdir())) == ([], [])


def test_a_comparisons_folder_is_no_run(done: Comparison) -> None:
    says = f"holds the runs of several methods; give one of them.*{done.folder}/cosmos/seed-1`"
    with pytest.raises(RunError, match=says):
        load_run(done.folder)
    with pytest.raises(RunError, match=r"several seeds \(seed-1, seed-2\)"):
        load_run(done.folder / "cosmos")


def test_a_method_that_diverges_does_not_stop_the_others(tmp_path: Path) -> None:
    settings = HIDDEN | {"linear.learning_rate": "1e30"}
    methods = ["linear", "uniform"]
    given: dict[str, Any] = {"epochs": 2, "settings": settings, **SMALL}
    found = compare("toy_convex", methods, preset="paper", out=tmp_path / "runs", **given)
    assert list(found.runs) == ["uniform"]
    assert "became inf" in found.failures["linear"] or "became nan" in found.failures["linear"]
    saved = json.loads((tmp_path / "runs" / "compare.json").read_text())
    assert saved["failures"] == found.failures
    assert [row["method"] for row in saved["rows"]] == ["uniform"]
    with pytest.raises(RunError, match=r"^linear: the loss of"):
        compare("toy_convex", ["linear"], preset="paper", out=tmp_path / "other", **given)


def test_a_full_disk_stops_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **named: Any) -> None:
        asked.append(named["method"])
        raise RunError("no space left")

    asked: list[str] = []
    monkeypatch.setattr("paretocosmos.training.fit.fit", full)
    with pytest.raises(RunError, match=r"^no space left$"):
        compare("toy_convex", ["cosmos", "uniform"], preset="paper", out=tmp_path / "runs", **SMALL)
    assert asked == ["cosmos"]


def test_a_gpu_too_small_for_one_method_is_not_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tight(*given: Any, **named: Any) -> Any:
        if named["method"] == "cosmos":
            raise RunError("out of memory") from torch.cuda.OutOfMemoryError()
        return fit(*given, **named)

    monkeypatch.setattr("paretocosmos.training.fit.fit", tight)
    given: dict[str, Any] = {"epochs": 1, "settings": HIDDEN, **SMALL}
    found = compare(
        "toy_convex", ["cosmos", "uniform"], preset="paper", out=tmp_path / "runs", **given
    )
    assert (list(found.runs), found.failures) == (["uniform"], {"cosmos": "out of memory"})


@pytest.mark.parametrize("stop", [("cosmos", 1), ("single_task", 1), ("pareto_mtl", 1)], ids=str)
def test_an_interrupted_comparison_goes_on_to_the_same_numbers(
    done: Comparison, tmp_path: Path, stop: tuple[str, int]
) -> None:
    def interrupt(method: str, at: Progress) -> None:
        if (method, at.epoch) == stop:
            raise KeyboardInterrupt

    def again(**more: Any) -> Comparison:
        folder, seeds = tmp_path / "runs", (1, 2)
        given: dict[str, Any] = {"seeds": seeds, "epochs": 2, "settings": HIDDEN, **SMALL, **more}
        return compare("toy_convex", list(done.runs), preset="paper", out=folder, **given)

    with pytest.raises(KeyboardInterrupt):
        again(progress=interrupt)
    assert not (tmp_path / "runs" / "compare.json").exists()
    (tmp_path / "runs" / ".compare.json.0123456789ab.tmp").touch()  # as a kill leaves it
    finished = again(resume=True)
    assert not [path for path in (tmp_path / "runs").rglob("*") if path.name.startswith(".")]
    for method, runs in done.runs.items():
        assert [run.front for run in finished.runs[method]] == [run.front for run in runs]
    for one, two in zip(finished.rows, done.rows, strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
    with pytest.raises(RunError, match=r"other settings.*epochs"):
        again(resume=True, epochs=3)


def test_other_settings_of_the_last_method_are_refused_before_the_first_is_trained(
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"epochs": 1, "settings": HIDDEN, "out": tmp_path / "runs", **SMALL}
    compare("toy_convex", ["uniform"], preset="paper", **given)
    with pytest.raises(RunError, match="other settings"):
        compare(
            "toy_convex",
            ["cosmos", "uniform"],
            preset="paper",
            resume=True,
            **(given | {"epochs": 2}),
        )
    assert not (tmp_path / "runs" / "cosmos").exists()


def test_warnings_say_whose_they_are(tmp_path: Path) -> None:
    settings = HIDDEN | {"reference": (0.01, 0.01)}
    given: dict[str, Any] = {"epochs": 1, "settings": settings, **SMALL}
    with pytest.warns(FrontWarning, match=r"^uniform: no point of the front") as caught:
        compare(
            "toy_convex", ["uniform", "single_task"], preset="paper", out=tmp_path / "runs", **given
        )
    assert not [one for one in caught if str(one.message).startswith("single_task")]
