"""The command line as a person meets it: what it prints, what it leaves, what it refuses."""

import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.small import files_at_most, watch

import paretocosmos
from paretocosmos import fit, registry
from paretocosmos.cli.listing import KINDS
from paretocosmos.config.resolve import make_plan
from paretocosmos.config.settings import describe_pair, get_pairs
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.paper.recipe import load_recipe, recipe_names
from paretocosmos.runs import find_newest_checkpoint, load_run
from paretocosmos.training.loop import Trainer

PLAIN = ("--epochs", "2", "--device", "cpu", "--set", "hidden=8")
SMALL = (*PLAIN, "--engine", "eager")  # recording takes longer than these trainings
LIKE_FINISHED = (*SMALL, "--preset", "paper")
RESULTS = ("front.json", "front_val.json", "model.safetensors")


Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a picture, which takes longer than the training."""
    monkeypatch.setattr("paretocosmos.cli.options.save_picture", lambda run: None)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draw.integers(18, 80, 300), "hours": draw.normal(40, 9, 300)})
    frame["work"] = draw.choice(["State", "Private"], 300)
    frame["sex"] = draw.choice(["f", "m"], 300)
    frame["income"] = np.where(frame["age"] + draw.normal(0, 9, 300) > 45, "high", "low")
    return frame


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; look, do not touch."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    given: dict[str, Any] = {"epochs": 2, "settings": {"hidden": "8"}, "device": "cpu"}
    fit("toy_convex", preset="paper", out=folder, **given)
    return folder


def _one_sentence(ended: Any, says: str) -> None:
    """Refused with exit code 2, one line, the way out in it, and nothing else anywhere."""
    assert ended.code == 2, ended
    assert ended.out == ""
    lines = ended.err.strip().splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("error: ")
    assert ended.err.lower().count("error:") == 1
    assert "Traceback" not in ended.err
    assert re.search(says, ended.err), ended.err


# ---------------------------------------------------------------- what it prints


def test_list_is_what_find_finds(cli: Call) -> None:
    ended = cli("list", "--json")
    found = json.loads(ended.out)
    assert ended.code == 0
    recipes = found.pop("recipes")
    assert recipes == {name: load_recipe(name).title for name in recipe_names()}
    assert {kind: list(things) for kind, things in found.items()} == {
        kind: [*registry.names(kind), *(get_pairs() if kind == "methods" else ())] for kind in KINDS
    }
    assert found["methods"]["cosmos"] == registry.summary("methods", "cosmos")
    assert found["methods"]["phn_ls"] == describe_pair("phn_ls")["summary"]
    for name in ("adult", "cosmos", "phn_epo", "concat", "mlp", "deo"):
        assert re.search(rf"^\s*{name}\s", cli("list").out, re.MULTILINE)


def test_train_prints_one_json_object_and_notes_beside_it(cli: Call, undrawn: None) -> None:
    ended = cli("train", "toy_convex", *PLAIN, "--seed", "4", "--out", "here", "--json")
    assert ended.code == 0
    assert all(line.startswith("note:") for line in ended.err.splitlines())
    assert ended.out.count("\n") == 1
    numbers = json.loads(ended.out)
    run = load_run("here")
    expected: dict[str, Any] = {
        "run": "here",
        "problem": "toy_convex",
        "method": "cosmos",
        "preset": "default",
        "protocol": "clean",
        "seed": 4,
        "parameters": sum(one.numel() for one in run.model.parameters()),
        "hypervolume": run.hypervolume,
        "hypervolume_val": run.record["metrics"]["val"]["hypervolume"],
        "span": run.record["metrics"]["test"]["span"],
        "dominated_share": run.record["metrics"]["test"]["dominated_share"],
        "seconds_training": run.record["seconds_training"],
        "seconds_preparing": run.record["seconds_preparing"],
        "seconds_evaluating": run.record["seconds_evaluating"],
        "samples_per_second": 2 * 512 / run.record["seconds_training"],
        "peak_memory": run.record["peak_memory"],
        "share_waiting": 0.0,
        "data": "on the device",
        "seeds_together": 1,
        "precision": "tf32",
        "engine": "eager",
    }
    assert expected.items() <= numbers.items()


def test_every_option_arrives(cli: Call, undrawn: None) -> None:
    ended = cli(
        *("train", "toy_concave", *PLAIN, "--method", "cosmos", "--protocol", "paper", "--seed"),
        *("7", "--penalty", "2", "--alpha", "0.1,0.5", "--engine", "eager", "--deterministic"),
        *("--set", "batch_size=128", "--set", "method.alignment=inverse", "--json"),
        *("--precision", "fp64"),
    )
    assert ended.code == 0, ended.err
    numbers = json.loads(ended.out)
    assert numbers["run"] == "runs/toy_concave-cosmos-7"
    record = json.loads(Path(numbers["run"], "run.json").read_text())
    assert record["problem"] == {"name": "toy_concave", "settings": {"protocol": "paper"}}
    assert record["method"]["settings"] == {
        "penalty": 2.0,
        "alpha": [0.1, 0.5],
        "stratified": False,
        "alignment": "inverse",
        "normalise": False,
        "floor": 0.0,
        "least": None,
        "least_epochs": 0,
    }
    assert record["training"]["batch_size"] == 128
    assert record["training"]["epochs"] == 2
    assert (record["seed"], record["deterministic"], record["device"]) == (7, True, "cpu")
    assert record["engine"] == "eager"
    assert record["precision"] == numbers["precision"] == "fp64"
    assert numbers["protocol"] == numbers["preset"] == "paper"  # the one implies the other
    assert numbers["scores"] == "mean over batches of 256"


def test_seeds_print_a_list_and_leave_a_run_each(cli: Call, undrawn: None) -> None:
    ended = cli("train", "toy_convex", *SMALL, "--seeds", "2, 5,1", "--out", "here", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    every = json.loads(ended.out)
    assert [numbers["seed"] for numbers in every] == [2, 5, 1]
    for numbers in every:
        assert numbers["run"] == f"here/seed-{numbers['seed']}"
        assert numbers["seeds_together"] == 3
        assert numbers["hypervolume"] == load_run(numbers["run"]).hypervolume
    again = cli("evaluate", "here/seed-5", "--json")
    assert json.loads(again.out) == json.loads(Path("here/seed-5/front.json").read_text())


def test_seeds_end_with_a_row_each_and_their_mean(cli: Call, pages: None) -> None:
    ended = cli("train", "toy_convex", *SMALL, "--seeds", "1,2", "--out", "here")
    assert ended.code == 0, ended.err
    reached = [load_run(f"here/seed-{seed}").hypervolume for seed in (1, 2)]
    for seed, one in zip((1, 2), reached, strict=True):
        row = next(line for line in ended.out.splitlines() if f"here/seed-{seed}" in line)
        assert f"{one:.4f}" in row
        assert Path(f"here/seed-{seed}/report.html").exists()
        assert Path(f"here/seed-{seed}/front.png").exists()
    spread = np.std(reached, ddof=1)
    assert f"mean hypervolume {np.mean(reached):.4f} ± {spread:.4f}" in ended.out
    assert "2 seeds at a time" in ended.out
    assert Path("here/report.html").exists()
    assert ended.out.splitlines()[-2:] == [
        "page  here/report.html",
        "next  paretocosmos explore here",
    ]


def test_a_csv_gives_a_front_and_its_report(cli: Call, people: pd.DataFrame, pages: None) -> None:
    people.to_csv("my.csv", index=False)
    columns = ("--target", "income", "--sensitive", "sex")
    asked = cli("train", "my.csv", *columns, *SMALL)
    _one_sentence(asked, "classes `high` and `low`.* line: --positive ...")
    ended = cli("train", "my.csv", *columns, "--positive", "low", *SMALL)
    assert ended.code == 0, ended.err
    folder = Path("runs", "my-linear-1")
    assert {file.name for file in folder.iterdir()} == {
        *("run.json", "front.json", "front_val.json", "model.safetensors", "table.json"),
        *("front.png", "report.html", "checkpoint"),
    }
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "tpr_gap" in page
    run = load_run(folder)
    assert run.front.names == ("binary_cross_entropy", "tpr_gap")
    assert run.predict(people, ray=[0.5, 0.5]).shape == (300,)
    for sex in "fm":
        ends = 100 * run.front.metrics[f"selection_rate_{sex}"][[0, -1]]
        row = rf"predicted “low” in “{sex}” +{ends[0]:.1f} to {ends[1]:.1f} of 100"
        assert re.search(rf"{row} +selection_rate_{sex}", ended.out)
    assert ended.out.index("right answers") < ended.out.index("hypervolume")
    ended = cli("train", "my.csv", *columns, "--positive", "high", *SMALL, "--json")
    printed = json.loads(ended.out)
    assert printed["run"] == "runs/my-linear-1-2"
    assert (printed["target"], printed["positive"]) == ("income", "high")
    rates = [
        load_run(path).record["problem"]["settings"]["positive"]
        for path in ("runs/my-linear-1", "runs/my-linear-1-2")
    ]
    assert rates == ["low", "high"]


def test_evaluate_reproduces_the_front(cli: Call, finished: Path) -> None:
    for split, file in (("test", "front.json"), ("val", "front_val.json")):
        ended = cli("evaluate", str(finished), "--split", split, "--json")
        assert (ended.code, ended.err) == (0, "")
        assert json.loads(ended.out) == json.loads((finished / file).read_text())


def test_one_ray_is_no_front(cli: Call, finished: Path) -> None:
    two = cli("evaluate", str(finished), "--ray", "0.3,0.7", "--ray", "0.7,0.3").out
    assert re.search(r"^order .*; span \d", two, re.MULTILINE)
    one = cli("evaluate", str(finished), "--ray", "0.3,0.7").out
    assert re.search(r"^hypervolume \d", one, re.MULTILINE)
    assert "order" not in one


def test_evaluate_at_other_rays(cli: Call, finished: Path) -> None:
    ended = cli("evaluate", str(finished), "--ray", "0.3,0.7", "--ray", "1,0", "--json")
    assert np.allclose(json.loads(ended.out)["rays"], [[0.3, 0.7], [1.0, 0.0]])
    ended = cli("evaluate", str(finished), "--rays", "3", "--split", "train")
    front = json.loads(
        cli("evaluate", str(finished), "--rays", "3", "--split", "train", "--json").out
    )
    for row in front["values"]:
        assert all(f"{value:.4f}" in ended.out for value in row)
    assert "on train" in ended.out
    assert "whole split" in ended.out


def test_what_a_table_predicts_is_said_and_recorded(cli: Call, people: pd.DataFrame) -> None:
    people.to_csv("my.csv", index=False)
    columns = ("--target", "income", "--sensitive", "sex", "--positive", "high")
    ended = cli("train", "my.csv", *columns, "--drop", "age", "--out", "run", *SMALL)
    assert ended.code == 0, ended.err
    record = json.loads(Path("run", "run.json").read_text())
    about = record["about"]
    assert (about["target"], about["sensitive"]) == ("income", "sex")
    assert sorted(about["groups"]) == sorted(set(people["sex"]))
    assert f"`{about['positive']}` of `income`" in ended.out
    assert "age" not in json.loads(Path("run", "table.json").read_text())["numeric"]
    people.sample(frac=0.9, random_state=1).to_csv("other.csv", index=False)
    ended = cli("evaluate", "run", "--data", "other.csv", "--split", "test")
    _one_sentence(ended, "not what it was trained on")


def test_version(cli: Call) -> None:
    ended = cli("--version")
    assert (ended.code, ended.out) == (0, f"paretocosmos {paretocosmos.__version__}\n")


def test_notes_are_on_stderr_and_once(
    cli: Call, undrawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warned(*given: Any, **named: Any) -> Any:
        for _ in range(2):
            warnings.warn("known to be [odd]", BenchmarkWarning, stacklevel=1)
        return make_plan(*given, **named)

    monkeypatch.setattr("paretocosmos.training.jobs.make_plan", warned)
    ended = cli("train", "toy_convex", *SMALL, "--json")
    assert ended.err == "note: known to be [odd]\n"
    assert json.loads(ended.out)["problem"] == "toy_convex"


def test_a_missing_plotting_package_costs_the_picture_only(
    cli: Call, pages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = cli("train", "toy_convex", *SMALL, "--out", "run")
    assert ended.code == 0
    assert "no front.png" in ended.err
    assert 'pip install "paretocosmos[plot]"' in ended.err
    assert Path("run/report.html").exists()
    assert not Path("run/front.png").exists()


# ---------------------------------------------------------------- what it refuses


COSMOS = ("--method", "cosmos")
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "problem": (("adlt",), "unknown problem `adlt`; did you mean `adult`"),
    "setting": (("toy_convex", *COSMOS, "--set", "penalti=1"), "did you mean `penalty`"),
    "no key": (("toy_convex", "--set", "=3"), "--set takes KEY=VALUE"),
    "penalty": (("toy_convex", *COSMOS, "--penalty", "-1"), "`penalty` must be .* at least 0"),
    "device": (("toy_convex", "--device", "cuda:99"), "on the command line: --device cpu"),
    "seeds": (
        ("toy_convex", "--seeds", "a,b"),
        "--seeds takes whole numbers such as 1,2,3, found `a,b`",
    ),
    "target": (("toy_convex", "--target", "income"), "only tables take --target"),
    "resume": (("toy_convex", "--resume"), "`resume` needs `out`.*--out"),
    "no columns": (("table",), r"`table` needs `data` and `target`.*--target \.\.\."),
    "parent": (("toy_convex", "--out", "/dev/null/run"), "choose another `out`.*--out"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_input_to_train_is_one_sentence(
    cli: Call, tmp_path: Path, arguments: tuple[str, ...], says: str, as_json: bool
) -> None:
    _one_sentence(cli("train", *arguments, *["--json"][: int(as_json)]), says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ray", "says"),
    [
        (("0.5,0.6",), "divide the ray by its sum"),
        (("a,b",), "--ray takes numbers such as 0.3,0.7"),
        (("0.5,0.5", "1"), "2 numbers that sum to 1"),
    ],
)
def test_bad_rays_are_one_sentence(
    cli: Call, finished: Path, ray: tuple[str, ...], says: str
) -> None:
    options = [part for one in ray for part in ("--ray", one)]
    _one_sentence(cli("evaluate", str(finished), *options), says)


def test_the_papers_scores_of_a_table_with_a_rare_group(cli: Call, people: pd.DataFrame) -> None:
    """A batch of 256 without positives of a group has no gap: one sentence, not a crash."""
    many = pd.concat([people] * 9, ignore_index=True)
    many["sex"] = np.where(np.arange(len(many)) % 90 == 0, "f", "m")
    many["income"] = np.where(many["sex"] == "f", "low", many["income"])
    many.to_csv("my.csv", index=False)
    ended = cli(
        *("train", "my.csv", "--target", "income", "--sensitive", "sex", "--protocol", "paper"),
        *("--positive", "low", *SMALL, "--out", "run", "--json"),
    )
    _one_sentence(ended, r"score of `tpr_gap` on `val` is not a number.*protocol `clean`")


def test_a_reference_point_that_nothing_dominates_is_a_note(cli: Call, undrawn: None) -> None:
    ended = cli("train", "toy_convex", *SMALL, "--set", "reference=0.01,0.01", "--json")
    assert ended.code == 0
    numbers = json.loads(ended.out)
    assert numbers["hypervolume"] == numbers["hypervolume_val"] == 0
    assert ended.err.count("note:") == 1
    assert "larger entries" in ended.err
    again = cli("evaluate", numbers["run"])
    assert (again.code, again.err.count("note:")) == (0, 1)
    assert "hypervolume 0.0000 with reference point [0.01, 0.01]" in again.out


def test_an_output_folder_that_exists_is_left_alone(cli: Call, finished: Path) -> None:
    shutil.copytree(finished, "run")
    before = {file: file.read_bytes() for file in Path("run").rglob("*") if file.is_file()}
    _one_sentence(
        cli("train", "toy_convex", *LIKE_FINISHED, "--out", "run"),
        "exists; choose another `out`.*--out",
    )
    other = cli("train", "toy_convex", *LIKE_FINISHED, "--out", "run", "--resume", "--seed", "2")
    _one_sentence(other, "seed: 1 there, 2 now.*choose another `out`.*--out")
    assert {file: file.read_bytes() for file in before} == before
    assert len(list(Path("run").rglob("*"))) == len(list(finished.rglob("*")))


@pytest.mark.system
def test_a_full_disk_at_any_time(cli: Call, pages: None, tmp_path: Path, finished: Path) -> None:
    given = ("train", "toy_convex", *LIKE_FINISHED, "--out", "run", "--json")
    with files_at_most(200):
        ended = cli(*given)
    _one_sentence(ended, r"could not write `run/run.json`: File too large;.*make room")
    assert list(tmp_path.iterdir()) == []
    begun = 5000  # run.json fits; the generators alone are larger
    with files_at_most(begun):
        ended = cli(*given)
    _one_sentence(ended, r"epoch-0.safetensors.*make room or choose another folder.*--resume")
    assert list(tmp_path.iterdir()) == []
    last = find_newest_checkpoint(finished).stat().st_size
    with files_at_most(last + 100):  # training fits, the page does not
        ended = cli(*given)
    _one_sentence(ended, r"report.html.*what was saved before is intact.*--resume")
    assert cli(*given, "--resume").code == 0
    assert Path("run/report.html").stat().st_size > last
    for name in RESULTS:
        assert Path("run", name).read_bytes() == (finished / name).read_bytes()


def _interrupt_at(patch: pytest.MonkeyPatch, number: int) -> None:
    """Press Ctrl-C when that epoch begins."""
    epochs = itertools.count(1)

    def interrupt(*_: object, **__: object) -> None:
        if next(epochs) == number:
            signal.raise_signal(signal.SIGINT)

    watch(patch, Trainer, "train_epoch", interrupt)


@pytest.mark.system
@pytest.mark.parametrize(
    ("out", "says"), [(("--out", "run"), "continue with --out run --resume"), ((), "start again")]
)
def test_ctrl_c_in_the_first_epoch(
    cli: Call, undrawn: None, monkeypatch: pytest.MonkeyPatch, out: tuple[str, ...], says: str
) -> None:
    with monkeypatch.context() as patch:
        _interrupt_at(patch, 1)
        ended = cli("train", "toy_convex", *SMALL, *out)
    assert ended.code == 130
    assert says in ended.err


@pytest.mark.system
@pytest.mark.parametrize("together", [True, False])
def test_ctrl_c_with_seeds_says_how_to_go_on(
    cli: Call, undrawn: None, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    given = ("train", "toy_convex", *SMALL, "--seeds", "1,2", "--json")
    whole = json.loads(cli(*given, "--out", "whole").out)
    with monkeypatch.context() as patch:
        patch.setattr("paretocosmos.training.fit.fits_stack", lambda plan: together)
        _interrupt_at(patch, 2)
        ended = cli(*given, "--out", "here")
    assert (ended.code, ended.out) == (130, "")
    (way_out,) = re.findall(r"continue with (--out \S+ )--resume", ended.err)
    assert way_out == "--out here "  # with the same --seeds, not the folder of one
    again = cli(*given, *way_out.split(), "--resume")
    assert again.code == 0, again.err
    for one, two in zip(json.loads(again.out), whole, strict=True):
        assert one["hypervolume"] == pytest.approx(two["hypervolume"], rel=1e-4)


@pytest.mark.system
def test_a_refusal_of_the_real_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paretocosmos", "train", "toy_convex", "--penalty", "-1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    ended = SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
    _one_sentence(ended, "`penalty`")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--epochs", "1", "--set", "epochs=2"), "`epochs` is set twice"),
        (("--penalty", "1", "--set", "penalty=2"), "`penalty` is set twice"),
        (("--set", f"hidden={','.join(['8'] * 101)}"), "100 layers, found 101"),
        (("--set", "hidden=2000000"), "`hidden` must be at least 1 and at most 65,536"),
        (("--set", "hidden=20000,20000"), "at most 268,435,456 weights between its layers"),
        (("--method", "x" * 5000), "unknown method `xxx"),
        (("--method", "\x1b[31mred\x07\n"), "unknown method `\\x1b[31mred\\x07\\n`"),
        (("--epochs", "\x1b[31m" + "x" * 5000), "Invalid value for '--epochs'"),
        (("--out", "\udcff"), "found '\\udcff': rename"),
        (("--\x1b[31mred",), "--\\x1b[31mred"),
    ],
)
def test_what_is_refused_is_short_and_steers_no_terminal(
    cli: Callable[..., Any], given: tuple[str, ...], says: str
) -> None:
    code, out, err = cli("train", "toy_convex", "--device", "cpu", *given)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())
    assert len(err) < 2000
    assert not any(ord(letter) < 32 and letter != "\n" for letter in err)
    assert not list(Path().iterdir())


@pytest.mark.system
def test_no_room_for_what_is_printed_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "paretocosmos", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the disk is full")
    assert "Traceback" not in done.stderr
