"""`explore` as a person meets it."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from paretocosmos import fit

Call = Callable[..., Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser would have been sent to."""
    addresses: list[str] = []

    def open_in_browser(url: str) -> bool:
        addresses.append(url)
        return len(addresses) < 2  # the second time there is none

    monkeypatch.setattr(webbrowser, "open", open_in_browser)
    return addresses


def test_it_writes_a_page_and_opens_it(cli: Call, finished: Path, opened: list[str]) -> None:
    done = cli("explore", str(finished))
    assert done.code == 0
    (address,) = opened
    assert address.startswith("file:///")
    page = Path(unquote(urlparse(address).path))
    assert done.out.startswith(f"page  {page}\nnext  paretocosmos choose ")
    assert "compas" in page.read_text(encoding="utf-8")
    assert '"samples":null' in page.read_text(encoding="utf-8")
    done = cli("explore", str(finished), "--samples", "--out", "my page.html")
    assert '"texts":[[' in Path("my page.html").read_text(encoding="utf-8")
    assert "no browser was found" in done.err
    assert opened[1].endswith("/my%20page.html")


def test_several_runs_json_and_no_browser(cli: Call, finished: Path, opened: list[str]) -> None:
    options = ["--out", "a.html", "--no-open", "--no-model", "--json"]
    done = cli("explore", str(finished), str(finished), *options)
    assert done.code == 0
    assert '"network":null' in Path("a.html").read_text(encoding="utf-8")
    found = json.loads(done.out)
    assert found["runs"] == [str(finished)] * 2
    assert Path(found["page"]) == Path("a.html").absolute()
    assert opened == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "`nowhere` is not a folder"),
        (["RUN", "--out", "."], "--out must be an .html file"),
        (["RUN", "--out", "no/where.html"], "--out must be an .html file"),
    ],
)
def test_bad_input_is_one_sentence(
    cli: Call, finished: Path, opened: list[str], arguments: list[str], says: str
) -> None:
    done = cli("explore", *(str(finished) if one == "RUN" else one for one in arguments))
    assert done.code == 2
    assert says in done.err
    assert opened == []


def test_moved_data_costs_the_counts_only(cli: Call, opened: list[str], tmp_path: Path) -> None:
    table = tmp_path / "loans.csv"
    rows = [f"{20 + row % 50},{'fm'[row % 2]},{row % 3 % 2}" for row in range(120)]
    table.write_text("age,sex,paid\n" + "\n".join(rows) + "\n")
    settings = {"target": "paid", "sensitive": "sex"}
    run = tmp_path / "run"
    fit(str(table), settings=settings, epochs=1, out=run, device="cpu", report=False)
    table.unlink()
    done = cli("explore", str(run), "--out", "b.html")
    assert done.code == 0
    assert "no counted answers" in done.err
    assert Path("b.html").exists()
