"""The model card: what it tells, that names cannot break it, and that its code runs."""

import html
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from torch import nn

import paretocosmos
from paretocosmos.export import Exported, export
from paretocosmos.nn.conditioning import Concat
from paretocosmos.problems.tables import Table
from paretocosmos.runs import Run

RENDER = MarkdownIt("gfm-like", {"linkify": False})
EVIL = [
    "a|b",
    "<script>alert(1)</script>",
    "*bold* _em_ `code` ~~gone~~",
    "[link](javascript:alert(1))",
    "![picture](x)",
    "line\nbreak | # title",
    "back\\slash \\| $x$",
    "&lt;b&gt; & <b>",
    "``` fence",
    "www.example.org http://example.org",
    "native_country __init__",
]


def text_of(rendered: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", rendered)).strip()


def test_names_cannot_break_a_card(run_of: Callable[..., Run]) -> None:
    """A reader of Markdown gives back columns and categories, and the code in its fence."""
    frame = pd.DataFrame({name: [0.0, 1.0] for name in EVIL} | {"kind": ["```` fence", "b"]})
    table = Table.fit(frame)
    network = Concat(nn.Linear(len(table.features), 1), 2)
    card = export(run_of(network, table=table)).card
    columns = RENDER.render(card.read_text()).split(">Columns<")[1].split("</table>")[0]
    cells = [text_of(cell) for cell in re.findall(r"<td.*?</td>", columns, re.DOTALL)]
    assert cells[1::3] == [*(" ".join(name.split()) for name in EVIL), "kind"]
    assert set(re.findall(r"<(\w+)", columns.split("<tbody>")[1])) <= {"tr", "td"}
    compile(snippet(card), "usage", "exec")


def snippet(card: Path) -> str:
    (block,) = [token for token in RENDER.parse(card.read_text()) if token.type == "fence"]
    return block.content


@pytest.mark.system
def test_the_code_runs_as_it_stands(in_onnx: Exported, trained: Run) -> None:
    done = subprocess.run(
        [sys.executable, "-c", snippet(in_onnx.card)],
        capture_output=True,
        text=True,
        check=True,
        cwd=in_onnx.card.parent,
    )
    row: dict[str, list[Any]] = {name: [fill] for name, fill in trained.table.numeric.items()}
    row |= {name: [every[0]] for name, every in trained.table.categorical.items()}
    wanted = trained.predict(pd.DataFrame(row), ray=[0.5, 0.5])[0]
    (number,) = re.findall(r"'probability': .*?\[([\d.e-]+)\]", done.stdout)
    assert float(number) == pytest.approx(wanted, abs=1e-4)


def test_the_code_reads_rows_as_the_run_does(
    run_of: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truth values, numbers as categories, and every kind of missing value."""
    frame = pd.DataFrame(
        {
            "age": [20.0, 40, np.nan, 60],
            "owns": [True, False, True, False],
            "floor": [1, 2, 3, 1],
            "work": ["State", None, np.nan, "Own"],
        }
    )
    fitted = Table.fit(frame, categorical=["floor"])
    network = Concat(nn.Sequential(nn.Linear(len(fitted.features), 1)), objectives=2)
    run = run_of(network, table=fitted, input_shape=(len(fitted.features),))
    exported = export(run)
    code = snippet(exported.card)
    given = [{**row, "floor": float(row["floor"])} for row in frame.to_dict("records")]
    scope: dict[str, Any] = {}
    monkeypatch.chdir(exported.card.parent)
    start, end = code.index("rows = ["), code.index("x = np.array(")
    exec(code[:start], scope)
    exec(code[end:], scope | {"rows": given}, scope)
    wanted = run.predict(frame, ray=[0.5, 0.5])
    np.testing.assert_allclose(scope["outputs"][0], wanted, atol=1e-5)


def test_what_a_card_of_a_table_tells(in_onnx: Exported, trained: Run) -> None:
    card = in_onnx.card.read_text()
    titles = re.findall(r"^##? (.*)$", card, re.MULTILINE)
    assert titles == [
        "Model card: model.onnx",
        "How to call it",
        "Columns",
        "Data",
        "Objectives",
        "The front",
        "Fairness",
        "Training",
        "Limits",
    ]
    for said in (
        "the probability that income is low",
        r"| 1 | a\|b | number; where missing",
        r"&lt;script&gt;alert(1)&lt;/script&gt;, Private, State, (missing)",
        "problem: people",
        "tpr_gap: gap in who is found. Of those who belong to the positive class, the share that",
        "The groups of sex are compared: f, m. That column is not an input",
        "It says nothing of those wrongly taken for positive",
        "method: cosmos",
        "seed 1",
        f"paretocosmos {paretocosmos.__version__}",
        f"differs by at most {in_onnx.difference:.1e}",
    ):
        assert said in card
    rendered = RENDER.render(card)
    assert "<script" not in rendered
    front = rendered[rendered.index(">The front<") :]
    rows = front[: front.index("</table>")].count("<tr>") - 1
    assert rows == 7 < len(trained.front)
    best = f"{trained.front.values[0, 0]:.4f}"
    assert f"| {best} |" in card
    assert "estimates from the other columns" not in card  # as it does by a formula


def test_constant_classifiers_are_named(run_of: Callable[..., Run]) -> None:
    rate = np.array([0.0, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5, 0.6, 1.0])
    about = {"target": "y", "positive": "1", "sensitive": "s", "groups": ["a", "b"]}
    table = Table(numeric={"n": 0.0}, flagged=(), categorical={}, mean=(0.0,), scale=(1.0,))
    run = run_of(
        Concat(nn.Linear(1, 1), 2), table=table, about=about, metrics={"positive_rate": rate}
    )
    card = export(run).card.read_text()
    first, last = ("({:.2f}, {:.2f})".format(*run.front.rays[at]) for at in (0, -1))
    assert "CONSTANT: at 2 of 9 preferences all rows of the test split get the same class" in card
    assert f"{first}; {last}." in card
    assert len(re.findall(r"\bconstant \|$", card, re.MULTILINE)) == 2


def test_a_card_of_anything_else(run_of: Callable[..., Run]) -> None:
    network = Concat(nn.Linear(5, 3), 2)
    run = run_of(network, name="<b>mine</b>", names=("a|b", "__c__"))
    card = export(run).card.read_text()
    assert "N rows of 5: what the network takes" in card
    assert "They are logits" in card
    assert "## Columns" not in card
    assert "## Fairness" not in card
    assert r"a\|b: As the problem defines it." in card
    assert "&lt;b&gt;mine&lt;/b&gt;" in card
    assert "<b>" not in RENDER.render(card)
