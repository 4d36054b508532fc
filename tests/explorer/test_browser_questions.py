"""Choosing by questions in a real browser, answered by people whose preferences are known."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import PageModel

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]


def read_gaps(shown: Any) -> list[float]:
    """Return the gaps on the two cards, as shares."""
    found = re.findall(r"who is selected: (\d+\.\d+)", shown.text("#quiz-body"))
    return [float(gap) / 100 for gap in found]


def answer_all(shown: Any, answer: Callable[[float, float], str]) -> int:
    """Answer until a choice is offered, and return the number of answers."""
    shown.page.locator("#ask").click()
    for count in itertools.count():
        if "fits your answers" in shown.text("#quiz-title"):
            return count
        assert f"Question {count + 1} of 8" in shown.text("#quiz-text")
        shown.page.get_by_role("button", name=answer(*read_gaps(shown))).click()
    raise AssertionError


@pytest.mark.parametrize("ideal", [0.13, 0.25, 0.35, 0.45])
def test_questions_find_what_somebody_wants(
    show: Open, make_people_page: MakePage, ideal: float
) -> None:
    """Somebody who always prefers the gap that is closer to the ideal."""
    view = make_people_page()
    shown = show(view)

    def answer(first: float, second: float) -> str:
        return "The first" if abs(first - ideal) < abs(second - ideal) else "The second"

    assert 5 <= answer_all(shown, answer) <= 8
    said = re.search(r"selected (?:of|from (\d+\.\d) to) (\d+\.\d)", shown.text("#quiz-text"))
    low, high = (float(end or said[2]) / 100 for end in said.groups())
    assert low - 0.02 <= ideal <= high + 0.02
    assert high - low < 0.2  # of a range of 0.5
    shown.click(shown.page.get_by_role("button", name="Take this choice"))
    assert shown.numbers("gap")[0] == pytest.approx(ideal, abs=0.04)


def test_a_choice_by_questions_is_kept_and_recorded(
    show: Open, make_people_page: MakePage, tmp_path: Path
) -> None:
    view = make_people_page()
    shown = show(view)
    count = answer_all(
        shown, lambda first, second: "Neither is better" if first > 0.5 else "The first"
    )
    shown.page.get_by_role("button", name="Take this choice").click()
    shown.until(lambda: "asked=" in shown.page.url)
    shown.page.reload()
    shown.settle()
    ray = shown.ray()
    assert f"found by {count} questions" in shown.text("#sheet")
    assert shown.text("#decision-title") == "Current choice, on test data"
    with shown.page.expect_download() as saved:
        shown.page.locator("#record-json").click()
    record = json.loads(saved.value.path().read_text())
    assert len(record["questions"]) == count
    rays = view.runs[0].fronts[0].rays.tolist()
    assert all(one[key] in rays for one in record["questions"] for key in ("first", "second"))
    # moved by hand, it is no answer to questions any more; its record brings them back
    shown.page.locator("#slider").fill("50")
    shown.until(lambda: "found by" not in shown.text("#sheet"))
    path = tmp_path / "decision.json"
    path.write_text(json.dumps(record))
    shown.page.set_input_files("#record-open", path)
    shown.until(lambda: f"found by {count} questions" in shown.text("#sheet"))
    assert shown.ray() == pytest.approx(ray, abs=1e-4)


@pytest.mark.parametrize("width", [0.0, 1.0])
def test_two_that_the_data_cannot_tell_apart_are_said_to_be_so(
    show: Open, make_people_page: MakePage, width: float
) -> None:
    view = make_people_page()
    front, answers = view.runs[0].fronts[0], view.runs[0].answers
    assert answers is not None
    ends = {
        name: np.stack([column - width, column + width], axis=-1)
        for name, column in zip(front.names, front.values.T, strict=True)
    }
    answers = dataclasses.replace(answers, gaps={"val": ends, "test": ends})
    runs = [dataclasses.replace(view.runs[0], answers=answers)]
    shown = show(dataclasses.replace(view, runs=runs))
    shown.page.locator("#ask").click()
    assert "Question 1 of 8" in shown.text("#quiz-text")
    assert ("cannot tell these two apart" in shown.text("#quiz-text")) == (width > 0)


def test_nothing_is_asked_where_a_limit_leaves_one_choice(
    show: Open, make_people_page: MakePage
) -> None:
    shown = show(make_people_page())
    shown.limit("12.5")
    shown.page.locator("#ask").click()
    assert "There is nothing to ask" in shown.text("#quiz-title")
    shown.page.keyboard.press("Escape")
    assert not shown.page.locator("#quiz").is_visible()
