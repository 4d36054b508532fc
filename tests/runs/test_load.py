"""Run folders that are whole, hashed, and still not what a training writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.strangers import change

from paretocosmos import fit, load_run
from paretocosmos.cli.output._run import print_run
from paretocosmos.errors import RunError


@pytest.mark.parametrize("name", ["front.json", "front_val.json"])
@pytest.mark.parametrize("provenance", [{}, {"problem": "toy_convex"}, {"problem": 1, "scores": 2}])
def test_fronts_say_what_they_are_of(
    tmp_path: Path, name: str, provenance: dict[str, object]
) -> None:
    folder = fit(
        "toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager"
    ).folder
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | {"provenance": provenance}))
    change(folder, lambda record: None)
    with pytest.raises(RunError, match="do not record their problem"):
        load_run(folder)


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
