"""Records with a field that is not what it should be, under a hash that is right."""

import copy as copies
import json
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.strangers import change, copy, seal

from paretocosmos import fit, load_run
from paretocosmos.errors import ParetoCosmosError, RunError
from paretocosmos.experiments._cell import differences, read_done
from paretocosmos.experiments.recipe import Cell
from paretocosmos.explorer import look_at
from paretocosmos.explorer._pack import as_json, packed
from paretocosmos.printing import numbers_of_run

Place = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    *(None, [], {}, "x", "", "a\0b", -1, 0, 10**30, 1.5, 1e300, True),
    *([["x"]], {"a": {"b": 1}}),
)
GONE = "taken away"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit("toy_convex", epochs=1, out=tmp_path_factory.mktemp("toy") / "run").folder


@pytest.fixture
def folder(toy: Path, tmp_path: Path) -> Path:
    return copy(toy, tmp_path / "run")


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a record; of a list, the first entry."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*at, key))
    elif isinstance(value, list) and value:
        yield from _places(value[0], (*at, 0))


def _changed(record: dict[str, Any], at: Place, value: object) -> dict[str, Any]:
    changed = copies.deepcopy(record)
    holder: Any = changed
    for key in at[:-1]:
        holder = holder[key]
    if value == GONE:
        del holder[at[-1]]
    else:
        holder[at[-1]] = value
    return changed


@pytest.mark.parametrize("odd", [*ODD, GONE], ids=repr)
def test_whatever_a_record_holds_is_used_or_refused(folder: Path, odd: object) -> None:
    """In every place of it: what is not refused with a sentence can be shown and compared."""
    record = json.loads((folder / "run.json").read_text())
    cell = Cell("toy_convex", "cosmos")
    refused = []
    for at in _places(record):
        seal(folder, _changed(record, at, odd))
        try:
            run = load_run(folder)
            repr(run)
            numbers_of_run(run)
            list(differences(read_done(folder, cell, ()), cell))
            if at[0] in ("problem", "about", "training", "names", "input_shape", "metrics"):
                as_json(packed(look_at([run])))
                run.problem()
        except ParetoCosmosError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in sentence for sentence in refused)


def test_a_wrong_kind_is_named(folder: Path) -> None:
    for field, value, says in (
        ("training", [], r"`training` is an object.*found \[\]"),
        ("fixed_rays", "even", "`fixed_rays` is a list of at most 10000.* or null, found 'even'"),
        ("seed", True, "`seed` is a whole number from 0 to .*, found True"),
        ("files", {"../../etc/passwd": "0"}, "`files` is an object with the sha256 of model"),
        ("status", "odd", "`status` is `training` or `finished`, found 'odd'"),
    ):
        wrong = copy(folder, folder.with_name(field))
        record = json.loads((wrong / "run.json").read_text())
        seal(wrong, record | {field: value})
        with pytest.raises(RunError, match=f"run.json` is damaged: {says}"):
            load_run(wrong)


def test_a_field_that_is_gone_is_named(folder: Path) -> None:
    change(folder, lambda record: record["training"].pop("rays"))
    with pytest.raises(RunError, match=r"damaged: it lacks `training\.rays`; bring back"):
        load_run(folder)


def _large(**fields: Any) -> list[tuple[str, Any]]:
    return list(fields.items())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *_large(input_shape=[10_000_000], outputs=1_000_000, objectives=10_000_000),
        *_large(fixed_rays=[[0.5, 0.5]] * 9_999, names=["a"] * 500_000),
        ("input_shape", [2**13] * 4),
        ("backbone", {"name": "mlp", "settings": {"hidden": [10**9, 10**9]}}),
        ("backbone", {"name": "mlp", "settings": {"hidden": [100_000, 100_000]}}),
        ("backbone", {"name": "mlp", "settings": {"hidden": [1] * 20_000}}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_nothing_large_is_built_before_it_is_checked(folder: Path, field: str, value: Any) -> None:
    record = json.loads((folder / "run.json").read_text())
    seal(folder, record | {field: value})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError):
        load_run(folder)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 300, f"{grown} MB more"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers at the end of the range
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_whatever_a_front_holds_is_used_or_refused(folder: Path, odd: object) -> None:
    front = json.loads((folder / "front.json").read_text())
    record = json.loads((folder / "run.json").read_text())
    for at in _places(front):
        (folder / "front.json").write_text(json.dumps(_changed(front, at, odd)))
        seal(folder, record)
        with suppress(ParetoCosmosError):
            as_json(packed(look_at([load_run(folder)])))
