"""Run folders: interrupted anywhere and resumed, read back, refused when damaged."""

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.resumed import results
from tests.small import files_at_most
from torch import Tensor, nn

from paretocosmos import evaluate, fit
from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError
from paretocosmos.methods import Gram, Method, State
from paretocosmos.nn.conditioning import Concat
from paretocosmos.pareto import sample_rays
from paretocosmos.problems import load_problem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs import FORMAT, Run, find_newest_checkpoint, list_checkpoints, load_run
from paretocosmos.training.progress import Progress

# Short batches, several rays, and a validation that is not in every epoch.
SETTINGS: dict[str, Any] = {
    "batch_size": 200,
    "rays_per_batch": 4,
    "evaluate_every": 2,
    "milestones": (3,),
}


class Killed(BaseException):
    """What no handler of errors may catch, as a signal would not be."""


@dataclass(frozen=True, kw_only=True)
class Averaging(Method):
    """A method that remembers: its running means must survive a kill."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        return sample_rays(count, objectives, generator=generator)

    def init(self, objectives: int) -> State:
        return {"mean": torch.zeros(objectives)}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        mean = 0.9 * state["mean"] + 0.1 * losses.mean(dim=0)
        return rays / (mean + 0.1), {"mean": mean}


class Own(nn.Module):
    """A network of one's own, with randomness and running statistics."""

    def __init__(self) -> None:
        super().__init__()
        layers = (nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3))
        self.net = nn.Sequential(nn.Linear(6, 8), *layers, nn.Linear(8, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        copies = ray.reshape(-1, 2).repeat_interleave(len(inputs) // (ray.numel() // 2), dim=0)
        return self.net(torch.cat([inputs, copies], dim=1))


def _epoch(folder: Path) -> int:
    """How far a run folder's checkpoint is; -1 before there is one."""
    return next(iter(list_checkpoints(folder)), -1)


def _go(folder: Path, **changes: Any) -> Run:
    given: dict[str, Any] = {"epochs": 6, "settings": SETTINGS, "device": "cpu"}
    given["engine"] = "eager"  # recording takes longer than these trainings
    return fit("toy_convex", preset="paper", out=folder, **given | changes)


# ---------------------------------------------------------------- interrupted and resumed


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "traced": lambda: {"engine": "traced"},
    "eager": dict,
    "state": lambda: {"method": Averaging()},
    "own network": lambda: {"model": _seeded(Own)},
    "double": lambda: {"precision": "fp64"},
    "half": lambda: {"precision": "bf16"},
    "own backbone": lambda: {
        "backbone": _seeded(lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)))
    },
}


def _seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(3)
    return make()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stops", [(1,), (2, 3, 5), (6,)], ids=str)
def test_stopped_and_resumed_equals_uninterrupted(
    tmp_path: Path, variant: str, stops: tuple[int, ...]
) -> None:
    given = VARIANTS[variant]()
    whole = _go(tmp_path / "whole", **given)
    cut = tmp_path / "cut"
    for epoch in stops:

        def stop(at: Progress, epoch: int = epoch) -> None:
            if at.epoch == epoch:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            _go(cut, resume=True, progress=stop, **given)
        assert _epoch(cut) == epoch
        torch.rand(11)  # the caller goes on living
    seen: list[int] = []
    run = _go(cut, resume=True, progress=lambda at: seen.append(at.epoch), **given)
    assert seen == list(range(stops[-1] + 1, 7))  # nothing is trained twice
    assert results(cut) == results(tmp_path / "whole")
    assert run.front == whole.front
    assert (
        run.record["evaluations"][-1]["hypervolume_val"]
        == (whole.record["evaluations"][-1]["hypervolume_val"])
    )
    assert not list(cut.rglob("*.tmp"))


class _Fuse:
    """Kills at the n-th touch of the disk: before a file is flushed, renamed, or a folder made."""

    def __init__(self, patch: pytest.MonkeyPatch, fatal: int) -> None:
        self.left = fatal
        for owner, name in ((os, "fsync"), (os, "replace"), (os, "mkdir"), (Path, "open")):
            patch.setattr(owner, name, self._wrap(getattr(owner, name)))

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Killed
            return original(*arguments, **named)

        return guarded


def test_killed_at_every_touch_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"epochs": 2, "settings": {"evaluate_every": 1}}
    _go(tmp_path / "whole", **given)
    expected, kills, ended = results(tmp_path / "whole"), 0, False
    while not ended:
        cut = tmp_path / str(kills)
        with monkeypatch.context() as patch:
            _Fuse(patch, kills + 1)
            try:
                _go(cut, **given)
                ended = True
            except Killed:
                kills += 1
        run = _go(cut, resume=True, **given)
        assert results(cut) == expected, f"killed at touch {kills}"
        assert run.record["status"] == "finished"
        shutil.rmtree(cut)
    assert kills > 3 * 8  # opened, flushed and renamed: eight files and more


@pytest.mark.system
def test_a_disk_that_fills_up_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    sizes: list[int] = []
    _go(whole, progress=lambda at: sizes.append(find_newest_checkpoint(whole).stat().st_size))
    assert sizes[1] > sizes[0]  # the first validation adds the best network so far
    # a little more: the numbers of another run need not have as many digits
    with files_at_most(sizes[0] + 100), pytest.raises(RunError, match="continue with resume=True"):
        _go(cut)
    assert _epoch(cut) == 1
    assert sorted(file.name for file in cut.rglob("*")) == [
        "checkpoint",
        "epoch-0.safetensors",
        "epoch-1.safetensors",
        "run.json",
    ]
    # a little more: the numbers of another run need not have as many digits
    with files_at_most(sizes[0] + 100), pytest.raises(RunError, match="saved before is intact"):
        _go(cut, resume=True)  # still full
    _go(cut, resume=True)
    assert results(cut) == results(whole)


def test_a_finished_run_is_returned_as_it_is(tmp_path: Path) -> None:
    first = _go(tmp_path / "run")
    before = {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    times = {file: file.stat().st_mtime_ns for file in before}
    seen: list[Progress] = []
    again = _go(tmp_path / "run", resume=True, progress=seen.append)
    assert seen == []
    assert {file: file.read_bytes() for file in before} == before
    assert {file: file.stat().st_mtime_ns for file in before} == times
    assert again.front == first.front
    assert again.record == first.record


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"seed": 2}, ["seed: 1 there, 2 now"]),
        ({"epochs": 9}, ["training.epochs: 6 there, 9 now"]),
        ({"method": "linear"}, ["method.name: 'cosmos' there, 'linear' now"]),
        ({"protocol": "paper"}, ["problem.settings.protocol: 'clean' there, 'paper' now"]),
        ({"conditioning": "hypernet"}, ["conditioning.name: 'concat' there, 'hypernet' now"]),
        (
            {"settings": SETTINGS | {"penalty": 2, "layer": "layers.2"}, "deterministic": True},
            [
                "method.settings.penalty: 0.01 there, 2.0 now",
                "conditioning.settings.layer: None there, 'layers.2' now",
                "deterministic: False there, True now",
            ],
        ),
        ({"precision": "fp64"}, ["precision: 'tf32' there, 'fp64' now"]),
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_another_run_is_not_resumed(
    tmp_path: Path, changes: dict[str, Any], names: list[str], finished: bool
) -> None:
    def stop(at: Progress) -> None:
        if not finished:
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        _go(tmp_path / "run", progress=stop)
    before = find_newest_checkpoint(tmp_path / "run").read_bytes()
    with pytest.raises(RunError, match="other settings") as caught:
        _go(tmp_path / "run", resume=True, **changes)
    for name in names:
        assert name in str(caught.value)
    assert find_newest_checkpoint(tmp_path / "run").read_bytes() == before


@pytest.mark.parametrize("where", ["file/run", "file/deep/run", "x" * 300])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="choose another"):
        _go(tmp_path / where)
    with pytest.raises(RunError, match=r"is not a folder|choose another"):
        load_run(tmp_path / where)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


# ---------------------------------------------------------------- read back


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draw.integers(18, 80, 400), "hours": draw.normal(40, 9, 400)})
    frame["work"] = draw.choice(["State", "Private", "Own"], 400)
    frame["sex"] = draw.choice(["f", "m"], 400)
    frame["income"] = np.where(frame["age"] + draw.normal(0, 9, 400) > 45, "high", "low")
    frame.loc[::17, "hours"] = np.nan
    return frame


@pytest.fixture(scope="module")
def table_run(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("table")
    people.to_csv(folder / "people.csv", index=False)
    settings = {"target": "income", "sensitive": "sex", "positive": "high", "fairness": "deo"}
    given: dict[str, Any] = {"epochs": 4, "settings": settings | {"evaluate_every": 2}}
    return fit(
        str(folder / "people.csv"), preset="paper", out=folder / "run", device="cpu", **given
    )


def test_a_run_comes_back_as_it_was(table_run: Run) -> None:
    again = load_run(str(table_run.folder))
    assert again.front == table_run.front
    assert again.front_val == table_run.front_val
    assert again.record == table_run.record
    assert again.table == table_run.table
    assert again.folder == table_run.folder
    assert again.hypervolume == table_run.hypervolume
    assert isinstance(again.model, Concat)
    assert not again.model.training
    assert not table_run.model.training
    for name, value in table_run.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value)


def test_a_run_in_double_comes_back_in_double(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    settings = {"target": "income", "positive": "high", "sensitive": "sex", "fairness": "deo"}
    given: dict[str, Any] = {"epochs": 1, "settings": settings, "precision": "fp64"}
    run = fit(
        str(tmp_path / "people.csv"), preset="paper", out=tmp_path / "run", device="cpu", **given
    )
    again = load_run(run.folder)
    assert {p.dtype for p in again.model.parameters()} == {torch.float64}
    found = evaluate(again.model, again.problem(), rays=len(run.front))
    np.testing.assert_array_equal(found.values, run.front.values)
    one, two = (each.predict(people, ray=[0.5, 0.5]) for each in (run, again))
    np.testing.assert_array_equal(one, two)
    plain = fit(
        str(tmp_path / "people.csv"),
        preset="paper",
        out=tmp_path / "32",
        epochs=1,
        settings=settings,
    )
    np.testing.assert_allclose(plain.predict(people, ray=[0.5, 0.5]), one, atol=1e-4)


def test_predict_is_preprocessing_network_and_sigmoid(table_run: Run, people: pd.DataFrame) -> None:
    run, ray = load_run(table_run.folder), [0.3, 0.7]
    rows = people.drop(columns=["income", "sex"]).iloc[::-3]
    found = run.predict(rows, ray=ray)

    # the features by hand: standardised numbers, a flag where hours were missing, one-hot work
    problem = run.problem()
    assert isinstance(problem, TabularProblem)
    train = people.iloc[_train_rows(len(people))]
    columns = []
    for name in ("age", "hours"):
        median = train[name].median()
        fitted = train[name].fillna(median)
        columns.append((rows[name].fillna(median) - fitted.mean()) / fitted.std(ddof=0))
    flags = [rows["hours"].isna(), *((rows["work"] == w) for w in ("Own", "Private", "State"))]
    fits = [train["hours"].isna(), *((train["work"] == w) for w in ("Own", "Private", "State"))]
    columns += [(one - fit.mean()) / fit.std(ddof=0) for one, fit in zip(flags, fits, strict=True)]
    features = torch.tensor(np.column_stack(columns), dtype=torch.float32)
    with torch.no_grad():
        logits = run.model(features, torch.tensor(ray)).squeeze(1).double()
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logits.numpy())), rtol=1e-5)
    assert found.shape == (len(rows),)
    assert found.dtype == np.float64
    assert np.ptp(found) > 0.1
    np.testing.assert_allclose(run.predict(rows.iloc[:1], ray=torch.tensor(ray)), found[:1], 1e-6)


def _train_rows(count: int) -> np.ndarray:
    from sklearn.model_selection import train_test_split

    rest, _ = train_test_split(np.arange(count), test_size=0.2, random_state=1)
    return train_test_split(rest, test_size=0.125, random_state=1)[0]


@pytest.mark.parametrize("ray", [[0.5, -0.5], [1.0], [0.2, 0.2], [[0.5, 0.5], [0.1, 0.9]], "ab"])
def test_predict_refuses_what_is_no_ray(table_run: Run, people: pd.DataFrame, ray: Any) -> None:
    with pytest.raises(ConfigurationError, match="ray"):
        table_run.predict(people, ray=ray)


def test_predict_needs_a_table(tmp_path: Path, people: pd.DataFrame) -> None:
    run = _go(tmp_path / "run", epochs=1)
    assert run.table is None
    with pytest.raises(ConfigurationError, match=r"`run\.model\(inputs, ray\)`"):
        run.predict(people, ray=[0.5, 0.5])


def test_the_problem_of_a_run_is_loaded_again(table_run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.csv"
    shutil.copy(table_run.record["problem"]["settings"]["data"], moved)
    for problem in (table_run.problem(), table_run.problem(data=str(moved))):
        assert isinstance(problem, TabularProblem)
        assert problem.positive == "high"
        assert problem.names == table_run.front.names
        found = evaluate(table_run.model, problem)
        np.testing.assert_array_equal(found.values, table_run.front.values)
    run = _go(tmp_path / "run", epochs=1, settings={"reference": "3,4"})
    assert load_run(run.folder).problem().reference == (3.0, 4.0)


def test_a_problem_built_by_hand_cannot_be(people: pd.DataFrame, tmp_path: Path) -> None:
    problem = TabularProblem.from_frame(people, target="income", positive="high", sensitive="sex")
    run = fit(problem, preset="paper", epochs=1, out=tmp_path / "run", device="cpu")
    loaded = load_run(run.folder)
    assert loaded.predict(people, ray=[0.5, 0.5]).shape == (400,)
    with pytest.raises(RunError, match=r"`evaluate\(run\.model, problem\)`"):
        loaded.problem()


def test_a_network_of_ones_own_must_be_handed_over(tmp_path: Path) -> None:
    run = _go(tmp_path / "run", model=_seeded(Own), epochs=2)
    with pytest.raises(RunError, match=r"pass .* as `model`"):
        load_run(run.folder)
    with pytest.raises(RunError, match="do not fit") as caught:
        load_run(run.folder, model=nn.Linear(2, 2))
    assert "\n" not in str(caught.value)
    again = load_run(run.folder, model=Own())
    assert not again.model.training
    assert evaluate(again.model, load_problem("toy_convex")).values.tolist() == (
        run.front.values.tolist()
    )
    backbone = _go(tmp_path / "backbone", backbone=nn.Linear(4, 2), epochs=1)
    rebuilt = load_run(backbone.folder, model=Concat(nn.Linear(4, 2), 2))
    assert torch.equal(
        rebuilt.model(torch.ones(1, 4), torch.tensor([0.5, 0.5])),
        backbone.model(torch.ones(1, 4), torch.tensor([0.5, 0.5])),
    )


# ---------------------------------------------------------------- damaged


def _cut(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def _drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _change(name: str, **changes: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        content |= changes
        kept = {key: value for key, value in content.items() if value != "gone"}
        (folder / name).write_text(json.dumps(kept))

    return damage


DAMAGES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "no folder": (shutil.rmtree, "folder that `train`"),
    "no run.json": (_drop("run.json"), "folder of a finished run"),
    "no front": (_drop("front.json"), "front.json` does not exist"),
    "no val front": (_drop("front_val.json"), "front_val.json` does not exist"),
    "no table": (_drop("table.json"), "table.json` does not exist"),
    "no model": (_drop("model.safetensors"), "incomplete: restore"),
    "half a run.json": (_cut("run.json"), "damaged: train again"),
    "half a front": (_cut("front.json"), r"front.json` is damaged .*sha256"),
    "half a model": (_cut("model.safetensors"), "model.safetensors` is damaged"),
    "half a table": (_cut("table.json"), "damaged"),
    "other table": (_change("table.json", mean="gone"), "damaged"),
    "other front": (_change("front.json", values=[[1.0]]), "damaged"),
    "front of nothing": (_change("front.json", values="gone"), "damaged"),
    "newer": (
        _change("run.json", format=FORMAT + 1, version="9.9"),
        r"another version \(9.9\).*upgrade",
    ),
    "not ours": (_change("run.json", format="gone"), "does not come from paretocosmos"),
    "unfinished": (_change("run.json", status="training"), "resume=True"),
    "keys missing": (_change("run.json", backbone="gone", training="gone"), "is missing"),
    "other network": (
        _change("run.json", backbone={"name": "mlp", "settings": {"hidden": [3]}}),
        "run.json` is damaged",
    ),
    "unknown backbone": (
        _change("run.json", backbone={"name": "perceptron", "settings": {}}),
        "run.json` .*unknown backbone `perceptron`",
    ),
    "odd settings": (
        _change("run.json", backbone={"name": "mlp", "settings": {"depth": 3}}),
        "run.json` is damaged",
    ),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_folder_is_one_sentence(
    table_run: Run, tmp_path: Path, damage: Callable[[Path], None], says: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(table_run.folder, folder)
    damage(folder)
    with pytest.raises(ParetoCosmosError, match=says) as caught:
        load_run(folder)
    assert "\n" not in str(caught.value)


def test_other_images_than_those_trained_on_are_refused(tmp_path: Path) -> None:
    settings = {"copies": 1, "rays": 2, "batch_size": 1000, "reference": (4.0, 4.0)}
    run = fit("multi_digits", preset="paper", epochs=1, settings=settings, out=tmp_path / "run")
    assert run.problem().about["sha256"] == run.record["about"]["sha256"]
    spoilt = {**run.record, "about": {**run.record["about"], "sha256": "another"}}
    with pytest.raises(RunError, match=r"not those .* trained on"):
        dataclasses.replace(run, record=spoilt, trained_on=None).problem()
