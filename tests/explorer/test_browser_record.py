"""The page in a real browser: before and after somebody chose, and what is kept of a choice."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import Answers, Cell, Outcome, PageModel, write_report
from paretocosmos.objectives import Measure

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]


def save_record(shown: Any) -> Path:
    with shown.page.expect_download() as saved:
        shown.page.locator("#record-json").click()
    return Path(saved.value.path())


def test_test_data_lead_once_a_limit_has_chosen(show: Open, make_people_page: MakePage) -> None:
    shown = show(make_people_page())
    title = "#decision-title"
    assert shown.text(title) == "Nobody has chosen yet: equal weights, on validation data"
    assert "nobody has chosen yet" in shown.text("#sheet")
    shown.slide("300")
    assert shown.text(title) == "Current choice, on validation data"
    assert "nobody" not in shown.text("#sheet")
    shown.limit("30")
    assert shown.text(title) == "Current choice, on test data"
    assert "(test)" in shown.text("#counted")
    shown.page.locator("#slider").fill("300")  # by hand, as before
    shown.settle()
    assert shown.text(title) == "Current choice, on validation data"


def test_a_record_opens_again_from_its_own_file(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page(answers="hash")
    shown = show(view)
    shown.limit("30")
    shown.page.locator("#record-by").fill("A. Person")
    shown.page.locator("#record-why").fill("<b>it is fair</b> & cheap")
    shown.until(lambda: "& cheap" in shown.text("#sheet"))
    sheet, lead, path = shown.text("#sheet"), shown.text("#lead"), save_record(shown)
    assert "A. Person" in sheet
    assert "because <b>it is fair</b> & cheap" in sheet
    shown.until(lambda: "by=A" in shown.page.url)
    shown.page.reload()
    shown.settle()
    assert shown.text("#sheet") == sheet
    other = show(view)
    other.page.locator("#record-open").set_input_files(path)
    other.until(lambda: other.text("#sheet") == sheet)
    assert other.text("#lead") == lead
    assert other.page.locator(".chip input").input_value() == "30"
    assert other.text("#record-note") == "Opened."
    changed = show(make_people_page(answers="other"))
    changed.page.locator("#record-open").set_input_files(path)
    changed.until(lambda: "another model or other data" in changed.text("#record-note"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made.update(format="other"), "no decision"),
        (lambda made: made["chosen"].update(ray={"loss": 1}), "trades other things"),
        (lambda made: made["chosen"]["ray"].update(loss="1"), "trades other things"),
    ],
)
def test_a_file_that_is_no_record_of_the_page_changes_nothing(
    show: Open, make_people_page: MakePage, change: Callable[[Any], None], said: str, tmp_path: Path
) -> None:
    shown = show(make_people_page())
    made = json.loads(save_record(shown).read_text())
    change(made)
    (tmp_path / "made.json").write_text(json.dumps(made))
    before = shown.ray()
    shown.page.locator("#record-open").set_input_files(tmp_path / "made.json")
    shown.until(lambda: said in shown.text("#record-note"))
    assert shown.ray() == before


def test_bars_share_one_scale(show: Open, make_people_page: MakePage) -> None:
    shown = show(make_people_page())
    ends = shown.page.locator(".track-ends").all_text_contents()
    assert ends == ["040", "040"]  # the largest share is 0.33


def test_the_page_opens_on_the_best_run(show: Open, make_page: MakePage) -> None:
    view = make_page(runs=3)
    shown = show(dataclasses.replace(view, runs=view.runs[::-1]))
    assert shown.page.locator("#run").evaluate("it => it.selectedOptions[0].text") == "method 1"


def test_many_groups_with_long_names_are_two_in_the_headline(
    show: Open, make_people_page: MakePage
) -> None:
    view = make_people_page()
    names = [f"{'people of a very long description ' * 3}{at}" for at in range(6)]
    cells = tuple(
        Cell(name, f"of 100 {name}, # are selected", 0, at, (0, 1), "positive")
        for at, name in enumerate(names, start=1)
    )
    words = dataclasses.replace(
        view.words, outcomes=(Outcome("Selected", "", "gap", cells), view.words.outcomes[1])
    )
    answers = view.runs[0].answers
    assert isinstance(answers, Answers)
    share = np.linspace(0.1, 0.7, 7)[:, None, None] + np.zeros((7, 25, 3))
    runs = [
        dataclasses.replace(
            view.runs[0], answers=dataclasses.replace(answers, shares={"val": share, "test": share})
        )
    ]
    shown = show(dataclasses.replace(view, runs=runs, words=words), width=390, height=844)
    lead = shown.text("#lead")
    assert "10 are selected" in lead
    assert ", 60 (the lowest and the highest of 6)." in lead
    height = shown.page.locator("#lead").evaluate(
        "it => it.getBoundingClientRect().height / parseFloat(getComputedStyle(it).lineHeight)"
    )
    assert height < 8  # lines


def test_a_run_that_gets_further_within_a_limit_is_named(
    show: Open, make_people_page: MakePage
) -> None:
    view = make_people_page(runs=3)  # each is worse than the one before it
    shown = show(view)
    shown.limit("30")
    assert "Better in" not in shown.text("#verdict")
    shown.page.locator("#run").select_option("2")
    shown.settle()
    best, *_, worst = [run.fronts[0].choose(max={"gap": 0.3}) for run in view.runs]
    reached = f"{100 * best['loss']:.1f} of 100 instead of {100 * worst['loss']:.1f}"
    assert f"Better in method 1: wrong answers {reached}." in shown.text("#verdict")
    shown.click(shown.page.get_by_role("button", name="Take it"))
    assert shown.page.locator("#run").input_value() == "0"
    assert shown.ray() == pytest.approx(best.ray, abs=1e-4)
    assert "Better in" not in shown.text("#verdict")


def test_one_of_a_hundred_is_singular(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    answers = view.runs[0].answers
    assert isinstance(answers, Answers)
    shares = {split: np.full((3, 25, 3), 0.01) for split in ("val", "test")}
    run = dataclasses.replace(view.runs[0], answers=dataclasses.replace(answers, shares=shares))
    shown = show(dataclasses.replace(view, runs=[run]))
    said = "Of 100 men, 1 is selected; of 100 women, 1. In all, 1 of 100 answers is wrong."
    assert shown.text("#lead") == said


def test_a_new_limit_is_round(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    shown = show(view)
    shown.slide("317")
    val = view.runs[0].fronts[0]
    order = val.rays[:, 0].argsort()
    now = 100 * np.interp(shown.ray()[0], val.rays[order, 0], val.values[order, 1])
    shown.page.locator("#add-bound").select_option("gap")
    limit = float(shown.page.locator(".chip input").input_value())
    assert limit % 2 == 0
    assert now <= limit < now + 2


def test_right_answers_are_drawn_as_wrong_ones(show: Open, make_page: MakePage) -> None:
    """The best is at the lower left, and a limit goes the same way."""
    view = make_page()
    measure = Measure("right answers", "fewer mistakes", unit="of 100", larger=True)
    words = dataclasses.replace(
        view.words, measures={"accuracy": measure}, instead={"loss": "accuracy"}
    )
    shown = show(dataclasses.replace(view, words=words))
    grip = shown.page.locator(".grip.below")
    at_rest = grip.bounding_box()["x"]
    assert grip.get_attribute("aria-valuetext") == "no limit"
    grip.press("PageUp")  # a larger share of right answers is asked for
    shown.settle()
    assert "at least" in grip.get_attribute("aria-valuetext")
    assert grip.bounding_box()["x"] < at_rest - 10  # towards fewer wrong ones


def save_choice(shown: Any, path: Path, *, by: str, why: str, place: str) -> list[float]:
    """Choose by hand, write the decision to a file, and return its ray."""
    shown.page.locator("#slider").fill(place)
    shown.page.fill("#record-by", by)
    shown.page.fill("#record-why", why)
    shown.settle()
    path.write_bytes(save_record(shown).read_bytes())
    return list(json.loads(path.read_text())["chosen"]["ray"].values())


def test_records_of_two_people_are_compared(
    show: Open, make_people_page: MakePage, tmp_path: Path
) -> None:
    shown = show(make_people_page())
    paths = [tmp_path / "ann.json", tmp_path / "ben.json"]
    why = "<b>fair</b>; & 100%"
    rays = [
        save_choice(shown, paths[0], by="Ann", why=why, place="200"),
        save_choice(shown, paths[1], by="Ben; B.", why="accurate", place="800"),
    ]
    shown.slide("500")
    now = shown.ray()
    shown.page.set_input_files("#record-open", paths)
    shown.until(lambda: "compared as A and B" in shown.text("#record-note"))
    shown.until(lambda: "A=" in shown.page.url and "B=" in shown.page.url)
    for _ in range(2):  # at once, and after a reload
        rows = shown.page.locator("#pins tbody tr")
        told = [rows.nth(at).locator("td").all_text_contents()[:2] for at in (0, 1)]
        assert told == [["Ann", "Ben; B."], [why, "accurate"]]
        assert shown.ray() == pytest.approx(now, abs=1e-4)  # what was chosen stays
        shown.page.reload()
        shown.settle()
    for letter, ray in zip("AB", rays, strict=True):
        shown.click(shown.page.get_by_role("button", name=f"Take {letter}"))
        assert shown.ray() == pytest.approx(ray, abs=1e-4)
    paths[1].write_text("{}")
    shown.page.set_input_files("#record-open", paths)
    shown.until(lambda: "ben.json: This file is no decision" in shown.text("#record-note"))


def test_a_saved_page_opens_on_its_choice(
    show: Open, make_people_page: MakePage, chromium: Any, tmp_path: Path
) -> None:
    shown = show(make_people_page())
    shown.limit("30")
    shown.page.fill("#record-by", "Ann </script>")
    shown.settle()
    with shown.page.expect_download() as saved:
        shown.page.locator("#share").click()
    path = tmp_path / "copy.html"
    saved.value.save_as(path)
    troubles: list[str] = []
    page = chromium.new_page()
    page.on("console", lambda said: troubles.append(said.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(path.as_uri())
    assert page.locator(".chip input").input_value() == "30"
    assert page.locator("#record-by").input_value() == "Ann </script>"
    assert page.locator("#lead").text_content() == shown.page.locator("#lead").text_content()
    # a copy of the copy holds what was changed in the copy
    page.locator(".chip input").fill("20")
    with page.expect_download() as saved:
        page.locator("#share").click()
    saved.value.save_as(tmp_path / "second.html")
    page.goto((tmp_path / "second.html").as_uri())
    assert page.locator(".chip input").input_value() == "20"
    page.close()
    assert troubles == []


def test_a_page_on_a_server_copies_its_link(
    make_people_page: MakePage, chromium: Any, tmp_path: Path
) -> None:
    page = chromium.new_page(permissions=["clipboard-read", "clipboard-write"])
    address = "http://localhost/report.html"
    path = tmp_path / "page.html"
    write_report(path, make_people_page())
    page.route(address, lambda route: route.fulfill(path=path, content_type="text/html"))
    page.goto(address)
    page.locator("#slider").fill("200")
    page.get_by_role("button", name="Copy link").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    before = page.locator("#lead").text_content()
    assert copied.startswith(f"{address}#ray=")
    page.goto("about:blank")
    page.goto(copied)
    assert page.locator("#lead").text_content() == before
    page.close()
