import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from paretocosmos.errors import MissingExtraError
from paretocosmos.pareto import Front
from paretocosmos.plotting import comparison_figure, front_figure, save_front


def front(*names: str, **rest: Any) -> Front:
    rays = np.full((1, len(names)), 1 / len(names))
    return Front(rays, 0.3 * np.ones_like(rays), names, np.full(len(names), 2.0), **rest)


def texts(figure: Figure) -> list[str]:
    found = figure.findobj(Text)
    return [one.get_text() for one in found if isinstance(one, Text)]


@pytest.mark.system
def test_matplotlib_is_imported_when_something_is_drawn_and_not_before() -> None:
    code = "import sys, paretocosmos.plotting; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_without_matplotlib_the_pip_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"paretocosmos\[plot\]"):
        front_figure([front("a", "b")])
    with pytest.raises(MissingExtraError, match=r"paretocosmos\[plot\]"):
        comparison_figure({"cosmos": [front("a", "b")]})


def test_the_same_front_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        save_front(tmp_path / name, [front("a", "b")], title="adult")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_no_global_state_is_read_or_changed(tmp_path: Path) -> None:
    save_front(tmp_path / "plain.png", [front("a", "b")])
    theirs: Any = {
        "font.size": 30,
        "axes.facecolor": "black",
        "figure.facecolor": "black",
        "savefig.facecolor": "black",
        "xtick.direction": "in",
        "font.weight": "bold",
    }
    with matplotlib.rc_context(theirs):
        save_front(tmp_path / "styled.png", [front("a", "b")])
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "styled.png").read_bytes()
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("binary_cross_entropy", "loss (cross-entropy)"),
        ("  two\n lines ", "two lines"),
        ("perte d'écart Δλ", "perte d'écart Δλ"),
        ("交叉熵", "objective 1"),
        ("交叉_熵" * 9, "objective 1"),
        ("交叉熵 loss", "□□□ loss"),
        ("loss \ud800\x00🎉", "loss □□□"),
        ("", "objective 1"),
        ("loss " * 9, "loss loss loss loss loss loss loss loss…"),
    ],
)
def test_a_name_is_shown_in_words_and_letters_of_the_font(name: str, read: str) -> None:
    (first, *_) = front_figure([front(name, "gap")]).axes
    assert first.get_xlabel() == f"{read}   ← smaller is better"


@pytest.mark.parametrize("objectives", [2, 3])
def test_names_the_font_cannot_write_are_drawn_quietly(tmp_path: Path, objectives: int) -> None:
    names = ("交叉熵", "公平性", "第三项")[:objectives]
    here = front(*names, split="测试")
    save_front(tmp_path / "front.png", [here, here], title="成人 by cosmos 𝖠")
    figure = front_figure([here, here], title="成人 by cosmos 𝖠")
    assert figure.get_suptitle() == "□□ by cosmos □"  # 𝖠: the bold weight lacks it
    drawn = " ".join(texts(figure))
    assert all(f"objective {number}" in drawn for number in range(1, objectives + 1))
    with warnings.catch_warnings():  # nor later, when no style holds
        warnings.simplefilter("error")
        figure.savefig(tmp_path / "theirs.png")
