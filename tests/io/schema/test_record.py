"""Run folders with a field that is not what it should be, under a hash that is right."""

import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.io.schema.odd import GONE, ODD, changed, places
from tests.strangers import change, copy, seal

from paretocosmos import load_run
from paretocosmos.cli.train import summarize_run
from paretocosmos.errors import ParetoCosmosError, RunError
from paretocosmos.explorer import build_page_model
from paretocosmos.explorer.serialize import serialize_page, to_json
from paretocosmos.paper.experiment import read_finished
from paretocosmos.paper.recipe import Experiment


@pytest.mark.system
@pytest.mark.parametrize("odd", [*ODD, GONE], ids=repr)
def test_whatever_a_record_holds_is_used_or_refused(folder: Path, odd: object) -> None:
    """In every place of it: what is not refused with a sentence can be shown and compared."""
    record = json.loads((folder / "run.json").read_text())
    cell = Experiment("toy_convex", "cosmos")
    refused = []
    for at in places(record):
        seal(folder, changed(record, at, odd))
        try:
            run = load_run(folder)
            repr(run)
            summarize_run(run)
            read_finished(folder, cell, ())
            if at[0] in ("problem", "about", "training", "names", "input_shape", "metrics"):
                to_json(serialize_page(build_page_model([run])))
                run.problem()
        except ParetoCosmosError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in sentence for sentence in refused)


def test_a_wrong_kind_is_named(folder: Path) -> None:
    for field, value, says in (
        ("training", [], r"`training` must be a mapping, found \[\]"),
        ("fixed_rays", "even", "`fixed_rays` must be a list, found 'even'"),
        ("fixed_rays", [[0.5, True]], r"`fixed_rays\[0\]\[1\]` must be a number, found True"),
        ("seed", True, "`seed` must be a whole number, found True"),
        ("seed", -1, "`seed` must be at least 0, found -1"),
        ("files", {"../../etc/passwd": "0"}, "a name in `files` must be `model.*etc/passwd"),
        ("status", "odd", "`status` must be `training` or `finished`, found 'odd'"),
        ("outputs", "two", "`outputs.all` must be a whole number, found 'two'"),
        ("names", ["a"], "it has 2 objectives and 1 names"),
        ("method", {"name": "cosmos"}, r"`method\.settings` is missing"),
        ("method", {"name": "a", "settings": {}, "b": 1}, "`method`: unknown key `b`"),
    ):
        wrong = copy(folder, folder.with_name(f"{field}-{len(says)}"))
        record = json.loads((wrong / "run.json").read_text())
        seal(wrong, record | {field: value})
        with pytest.raises(RunError, match=rf"run\.json` is damaged: {says}.*restore"):
            load_run(wrong)


def test_a_field_that_is_gone_is_named(folder: Path) -> None:
    change(folder, lambda record: record["training"].pop("rays"))
    with pytest.raises(RunError, match=r"`training\.rays`.*restore"):
        load_run(folder)


def test_a_run_that_was_begun_lacks_what_a_finished_one_has(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    later = ("label", "metrics", "files", "evaluations", "seconds_training")
    seal(folder, {key: value for key, value in record.items() if key not in later})
    with pytest.raises(RunError, match="damaged: `label` is missing"):
        load_run(folder)
    change(folder, lambda record: record.update(status="training"))
    with pytest.raises(RunError, match="is not finished"):
        load_run(folder)


# made where they are needed: millions of entries would stay for as long as the tests run
LARGE: dict[str, tuple[str, Callable[[], Any]]] = {
    "a row": ("input_shape", lambda: [10_000_000]),
    "a picture": ("input_shape", lambda: [2**13] * 4),
    "outputs": ("outputs", lambda: 1_000_000),
    "objectives": ("objectives", lambda: 10_000_000),
    "rays": ("fixed_rays", lambda: [[0.5, 0.5]] * 9_999),
    "names": ("names", lambda: ["a"] * 500_000),
    "very wide": ("backbone", lambda: {"name": "mlp", "settings": {"hidden": [10**9, 10**9]}}),
    "wide": ("backbone", lambda: {"name": "mlp", "settings": {"hidden": [100_000, 100_000]}}),
    "deep": ("backbone", lambda: {"name": "mlp", "settings": {"hidden": [1] * 20_000}}),
    # as many mistakes as a file can hold
    "empty": ("evaluations", lambda: [{}] * 1_000_000),
    "no texts": ("names", lambda: [1] * 1_000_000),
    "no hashes": ("files", lambda: dict.fromkeys(map(str, range(1_000_000)), 0)),
    "no numbers": ("metrics", lambda: {"test": dict.fromkeys(map(str, range(1_000_000)), "")}),
}


def peak_memory() -> int:
    """Return the most bytes that this process has held."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) << 10


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("field", "value"), LARGE.values(), ids=list(LARGE))
def test_nothing_large_is_built_before_it_is_checked(
    folder: Path, field: str, value: Callable[[], Any]
) -> None:
    record = json.loads((folder / "run.json").read_text())
    seal(folder, record | {field: value()})
    Path("/proc/self/clear_refs").write_text("5")  # forget the earlier peak
    before = peak_memory()
    with pytest.raises(RunError):
        load_run(folder)
    assert peak_memory() - before < 300 << 20


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers at the end of the range
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_whatever_a_front_holds_is_used_or_refused(folder: Path, odd: object) -> None:
    front = json.loads((folder / "front.json").read_text())
    record = json.loads((folder / "run.json").read_text())
    for at in places(front):
        (folder / "front.json").write_text(json.dumps(changed(front, at, odd)))
        seal(folder, record)
        with suppress(ParetoCosmosError):
            to_json(serialize_page(build_page_model([load_run(folder)])))
