"""The page in a real browser, as somebody uses it who must sign a decision.

`show` fails a test whose page complained in the console or asked for anything but itself.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import PageModel, RunView
from paretocosmos.pareto import Front, even_rays

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]

SEEN = """(selectors) => selectors.filter((one) => {
  const box = document.querySelector(one).getBoundingClientRect();
  return !(box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0
    && box.right <= innerWidth);
})"""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_three_questions_are_answered_while_the_slider_has_the_focus(
    show: Open, make_people_page: MakePage, width: int, height: int
) -> None:
    """What is traded, what is chosen now, what it costs whom."""
    shown = show(make_people_page(), width=width, height=height)
    shown.page.locator("#slider").focus()
    asked = ["#trade", "#lead", "#cost"]
    assert shown.page.evaluate(SEEN, [*asked, "#slider"]) == []
    whom = ["#outcomes .outcome:first-child", "#slider"]
    if width > 1000:
        assert shown.page.evaluate(SEEN, whom) == []
        return
    for _ in range(2):  # swipes, each as far as a thumb goes
        if shown.page.evaluate(SEEN, whom) == []:
            break
        shown.page.mouse.wheel(0, 0.7 * height)
        shown.settle()
    assert shown.page.evaluate(SEEN, whom) == []
    assert shown.page.evaluate("document.activeElement.id") == "slider"


def test_consequences_move_with_the_slider(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    shown = show(view)
    shown.slide("300")
    answers, val = view.runs[0].answers, view.runs[0].fronts[0]
    first, order = shown.ray()[0], val.rays[:, 0].argsort()

    def at(cell: int, end: int) -> float:
        return float(np.interp(first, val.rays[order, 0], answers.shares["val"][cell, order, end]))

    men, women = (round(100 * at(cell, 0)) for cell in (0, 1))
    said = f"Of 100 men, {men} are selected; of 100 women, {women}."
    assert shown.text("#lead") == f"{said} In all, 15 of 100 answers are wrong."
    row = ".cell >> nth=1"
    assert shown.text(f"{row} >> .value") == f"{100 * at(1, 0):.1f} of 100"
    assert shown.text(f"{row} >> .ends-of") == f"{100 * at(1, 1):.1f} to {100 * at(1, 2):.1f}"
    boxes = [shown.page.locator(f"{row} >> {part}").bounding_box() for part in (".track", ".range")]
    span = 0.4 if at(1, 2) > 0 else 0  # the scale ends at the next round number above 0.33
    assert (boxes[1]["x"] - boxes[0]["x"]) / boxes[0]["width"] == pytest.approx(
        at(1, 1) / span, abs=0.01
    )
    assert boxes[1]["width"] / boxes[0]["width"] == pytest.approx(0.05 / span, abs=0.01)
    assert "(" in shown.text(".gap >> nth=0")


def test_a_limit_is_in_the_units_of_its_metric(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    shown = show(view)
    val, test = view.runs[0].fronts
    shown.limit("30")
    point = val.choose(max={"gap": 0.3})
    assert shown.ray() == pytest.approx(point.ray, abs=1e-4)
    assert "--max gap=0.3" in shown.text("#command")
    assert "points" in shown.text(".chip")
    place = int(np.abs(val.rays[:, 0] - point.ray[0]).argmin())
    best = test.values[val.values[:, 0].argmin(), 0]  # what no limit would cost
    assert f"{100 * (test.values[place, 0] - best):.1f} more wrong answers" in shown.text("#cost")
    # as `paretocosmos choose` has it: asked, reached on which data, kept or not
    reached = [f"{100 * front.values[place, 1]:.1f}" for front in (val, test)]
    said = (
        f"asked at most 30 points; validation {reached[0]}, kept; test {reached[1]} (95 % interval"
    )
    assert said in shown.text("#verdict").replace("Asked", "asked")
    assert f"The gap in who is selected: {said}" in shown.text("#sheet")
    shown.slide("0")
    assert shown.text("#verdict").count("not kept") == 2
    shown.page.locator(".chip input").fill("0.0001")
    shown.settle()
    assert "gap in who is selected at most 0.0001 points. The closest has" in shown.text("#verdict")


def test_who_loses_most_by_a_limit_is_said(show: Open, make_people_page: MakePage) -> None:
    """In people, on test data, on the page and in the record; the group that loses most alone."""
    view = make_people_page()
    selected, wrong = view.words.outcomes
    selected = dataclasses.replace(selected, larger=False)  # to be selected does harm
    words = dataclasses.replace(view.words, outcomes=(selected, wrong))
    shown = show(dataclasses.replace(view, words=words))
    val = view.runs[0].fronts[0]
    bound = float(np.quantile(val.values[:, 1], 0.1))
    shown.limit(f"{100 * bound:.6f}")
    place = int(np.abs(val.rays[:, 0] - val.choose(max={"gap": bound}).ray[0]).argmin())
    best = int(val.values[:, 0].argmin())
    shares = view.runs[0].answers.shares["test"][:2, :, 0]
    men, women = 100 * (shares[:, place] - shares[:, best])
    assert women > men > 1
    told = f"Worse on test data, too: of 100 women, {women:.0f} more are selected."
    assert told in shown.text("#cost")
    assert told in shown.text("#sheet")


def test_two_choices_are_kept_and_compared(show: Open, make_people_page: MakePage) -> None:
    shown = show(make_people_page())
    for letter, place in (("A", "100"), ("B", "900")):
        shown.slide(place)
        shown.click(shown.page.locator(f"#pin-{letter}"))
    assert shown.text("#pins thead") == "Of 100ABDifference"
    cells = shown.page.locator("#pins tbody tr >> nth=0").locator("td").all_text_contents()
    a, b, apart = (float(one.replace("−", "-")) for one in cells)
    assert b - a == pytest.approx(apart, abs=0.11)
    assert abs(apart) > 5
    assert shown.page.locator(".track .pin:visible").count() == 6
    before = shown.ray()
    shown.click(shown.page.get_by_role("button", name="Take A"))
    assert shown.ray() != before
    shown.click(shown.page.get_by_role("button", name="Forget both"))
    assert shown.page.locator("#pins").is_hidden()


def test_undo_and_back_take_a_step_back(show: Open, make_people_page: MakePage) -> None:
    shown = show(make_people_page())
    shown.until(lambda: "ray=" in shown.page.url)
    rays = [shown.ray()]
    assert shown.page.locator("#undo").is_disabled()
    for place in ("200", "800"):
        shown.page.locator("#slider").fill(place)
        shown.page.wait_for_timeout(1500)
        rays.append(shown.ray())
    shown.page.locator("#add-bound").select_option("gap")
    shown.page.locator(".chip input").fill("30")
    shown.page.wait_for_timeout(1500)
    shown.page.locator("#undo").click()
    shown.until(lambda: shown.page.locator(".chip").count() == 0)
    shown.until(lambda: shown.ray() == rays[2])
    shown.page.go_back()
    shown.until(lambda: shown.ray() == rays[1])
    shown.page.keyboard.press("Control+z")
    shown.until(lambda: shown.ray() == rays[0])
    shown.page.go_forward()
    shown.until(lambda: shown.ray() == rays[1])


def test_undo_right_after_a_change_takes_back_that_change(
    show: Open, make_people_page: MakePage
) -> None:
    shown = show(make_people_page())
    shown.until(lambda: "ray=" in shown.page.url)
    shown.page.locator("#slider").fill("200")
    shown.until(lambda: shown.page.locator("#undo").is_enabled())
    before = shown.ray()
    # both in one turn of the page's script, before the change has come to rest
    shown.page.evaluate(
        """() => {
          const slider = document.getElementById("slider");
          slider.value = 800;
          slider.dispatchEvent(new Event("input"));
          document.getElementById("undo").click();
        }"""
    )
    shown.settle()
    shown.until(lambda: shown.ray() == before)


@pytest.mark.parametrize("link", ["Record it", "Skip to the choice"])
def test_a_link_within_the_page_keeps_the_choice(
    show: Open, make_people_page: MakePage, link: str
) -> None:
    view = make_people_page()
    shown = show(view)
    shown.until(lambda: "ray=" in shown.page.url)
    begun = shown.ray()
    shown.page.locator("#add-bound").select_option("gap")
    shown.page.locator(".chip input").fill("30")
    shown.until(lambda: "max=0.3" in shown.page.url)
    chosen = view.runs[0].fronts[0].choose(max={"gap": 0.3}).ray
    shown.page.get_by_role("link", name=link).focus()
    shown.page.keyboard.press("Enter")
    section = {"Record it": "record", "Skip to the choice": "decision"}[link]
    assert shown.page.evaluate("document.activeElement.id") == section
    shown.settle()
    for _ in range(2):  # at once, and after a reload
        assert shown.ray() == pytest.approx(chosen, abs=1e-4)
        assert shown.page.locator(".chip input").input_value() == "30"
        assert "asked at most 30 points; validation" in shown.text("#sheet")
        shown.page.reload()
        shown.settle()
    # one step back is before the limit, not before the link
    shown.page.go_back()
    shown.until(lambda: shown.page.locator(".chip").count() == 0)
    shown.until(lambda: shown.ray() == begun)
    shown.page.go_forward()
    shown.until(lambda: shown.ray() == pytest.approx(chosen, abs=1e-4))


def test_an_anchor_written_into_the_address_keeps_the_choice(
    show: Open, make_people_page: MakePage
) -> None:
    shown = show(make_people_page())
    shown.page.locator("#slider").fill("200")
    shown.settle()  # the address holds a ray from the start, before the page shows the new one
    before = shown.ray()
    shown.page.evaluate("location.hash = 'record'")
    shown.until(lambda: "ray=" in shown.page.url)
    assert shown.ray() == before
    shown.page.reload()
    shown.settle()
    assert shown.ray() == before


def test_the_decision_on_one_page(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page(caveats=["Old people are missing."], files={"model.safetensors": "abc"})
    shown = show(view)
    shown.page.locator("#add-bound").select_option("gap")
    shown.page.locator(".chip input").fill("30")
    shown.page.locator("#record-by").fill("A. Person")
    shown.settle()
    with shown.page.expect_download() as saved:
        shown.page.locator("#record-json").click()
    made = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert made["by"] == "A. Person"
    limit = {"name": "gap", "label": "gap in who is selected", "at_most": 0.3}
    (bound,) = made["bounds"]
    reached = bound.pop("reached")
    assert bound == limit | {"split": "val", "kept": True}
    assert made["model"]["sha256"] == "abc"
    assert "Old people are missing." in made["not_known"]
    weights = list(made["chosen"]["ray"].values())
    assert weights == pytest.approx(view.runs[0].fronts[0].choose(max={"gap": 0.3}).ray)
    place = int(np.abs(view.runs[0].fronts[0].rays[:, 0] - weights[0]).argmin())
    for front in view.runs[0].fronts:
        assert reached[front.split] == pytest.approx(front.values[place, 1])
    answers = view.runs[0].answers
    men = made["costs"]["test"][0]["of"][0]
    ends = answers.shares["test"][0, place]
    assert [men["value"], *men["interval"]] == pytest.approx(ends.tolist(), abs=1e-6)
    # on paper nothing but the sheet
    shown.page.emulate_media(media="print")
    assert shown.page.locator("#sheet").is_visible()
    for other in ("#decision", "#outcomes", "#canvas", "#modeller", "#record-by"):
        assert shown.page.locator(other).is_hidden()
    text = shown.text("#sheet")
    assert "A. Person" in text
    assert "Of the choices that keep it on validation data, the one with" in text
    tall = shown.page.evaluate("document.getElementById('sheet').getBoundingClientRect().height")
    assert tall < 1000  # A4 at 96 dots an inch has 1,123
    # dragged beyond the limit, which the record must not hide
    shown.page.emulate_media(media="screen")
    shown.slide("0")
    assert "This choice does not keep it on validation data" in shown.text("#sheet")


def test_every_statement_of_the_decision_names_its_one_split(
    show: Open, make_people_page: MakePage
) -> None:
    view = make_people_page()
    val, test = view.runs[0].fronts
    test = dataclasses.replace(test, values=2 * test.values)  # differences are twice as large
    view = dataclasses.replace(view, runs=[dataclasses.replace(view.runs[0], fronts=(val, test))])
    shown = show(view)
    shown.limit("30")
    place = int(np.abs(val.rays[:, 0] - val.choose(max={"gap": 0.3}).ray[0]).argmin())
    best = int(val.values[:, 0].argmin())  # no limit, on the data by which choices are made
    more = {
        split: 100 * (front.values[place, 0] - front.values[best, 0])
        for split, front in (("validation", val), ("test", test))
    }
    assert more["test"] == pytest.approx(2 * more["validation"])
    compared = "compared with the choice with the fewest wrong answers"
    costs = {
        split: f"On {split} data, {compared}: {by:.1f} more wrong answers in 100"
        for split, by in more.items()
    }
    sheet = shown.text("#sheet")
    for said in (shown.text("#cost"), sheet):  # a limit has chosen: the test data lead
        assert costs["test"] in said
        assert costs["validation"] not in said
    men = view.runs[0].answers.shares["test"][0, place, 0]
    assert f"On test data: Of 100 men, {100 * men:.0f}" in sheet
    assert "Of the choices that keep it on validation data" in sheet
    for split, label in (("Test", "test"), ("Validation", "validation")):
        shown.page.get_by_role("radio", name=split).check()
        shown.settle()
        assert shown.text("#decision-title") == f"Current choice, on {label} data"
        assert costs[label] in shown.text("#cost")


def test_the_threshold_is_said_and_in_the_decision(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    shown = show(dataclasses.replace(view, words=dataclasses.replace(view.words, threshold=0.3)))
    assert "counts as a yes where its probability is above 0.3." in shown.text("#counted")
    assert "above 0.3." in shown.text("#sheet")
    with shown.page.expect_download() as saved:
        shown.page.locator("#record-json").click()
    assert json.loads(Path(saved.value.path()).read_text())["chosen"]["threshold"] == 0.3
    shown = show(view)
    assert "counts as a yes" not in shown.text("#counted")


def test_a_far_point_does_not_rule_the_axes_and_fronts_zoom(show: Open) -> None:
    rays = even_rays(25, 2).numpy()
    near = Front(rays, 0.6 - 0.5 * np.sqrt(rays), ("loss", "gap"), np.array([99.0, 99.0]))
    far = Front(np.eye(2), np.array([[0.12, 0.5], [30.0, 0.1]]), near.names, near.reference)
    record = {"label": "single_task", "fixed_rays": np.eye(2).tolist()}
    view = PageModel([RunView({"label": "cosmos"}, [near]), RunView(record, [far])])
    shown = show(view)
    assert "1 of single_task beyond the picture" in shown.text("#key")
    assert "2 networks and nothing between them" in shown.text("#legend")
    high = ".grip.below"
    assert float(shown.page.locator(high).get_attribute("aria-valuemax")) < 1
    wide = shown.picture()
    shown.click("#zoom-in")
    inner = float(shown.page.locator(high).get_attribute("aria-valuemax"))
    assert shown.picture() != wide
    for _ in range(2):
        shown.click("#zoom-out")
    assert float(shown.page.locator(high).get_attribute("aria-valuemax")) > 30
    assert inner < 1
    assert "beyond" not in shown.text("#key")


def test_one_answer_for_everybody_is_a_line(show: Open, make_page: MakePage) -> None:
    shown = show(make_page())
    shown.page.locator("#axis-x").select_option("accuracy")
    shown.settle()
    share = 100 / 180  # of the rows that are counted at the first ray, those of the larger class
    said = f"Dashed: one answer for everybody, {100 * share:.1f} of 100 right answers."
    assert said in shown.text("#key")
    lowest = ".grip.below"
    while float(shown.page.locator(lowest).get_attribute("aria-valuemin")) > share:
        before = shown.picture()
        shown.click("#zoom-out")
        assert shown.picture() != before
    for _ in range(3):  # the choice lies elsewhere
        shown.click("#zoom-in")
    assert f"would have {100 * share:.1f} of 100 right answers: zoom out" in shown.text("#key")


def test_points_within_the_intervals_of_the_choice_are_open(
    show: Open, make_people_page: MakePage
) -> None:
    view = make_people_page()
    answers = view.runs[0].answers
    assert answers is not None
    paper, shown_open = (251, 251, 250), []
    for width in (0.0, 0.2):
        front = view.runs[0].fronts[0]
        ends = {
            name: np.stack([column - width, column + width], axis=-1)
            for name, column in zip(front.names, front.values.T, strict=True)
        }
        gaps = {"val": ends, "test": ends}
        run = dataclasses.replace(view.runs[0], answers=dataclasses.replace(answers, gaps=gaps))
        shown = show(dataclasses.replace(view, runs=[run]))
        assert "cannot tell the points within the ellipse" in shown.text("#key")
        shown_open.append(shown.count_pixels("over", paper))
    # only the choice itself, then a few of its neighbours
    assert shown_open[1] > shown_open[0] + 20


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_choice_that_a_limit_moved_glides_to_its_place(
    show: Open, make_people_page: MakePage, motion: str
) -> None:
    shown = show(make_people_page(), reduced_motion=motion)
    moments = shown.page.evaluate(
        """async () => {
          const over = document.getElementById("over");
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          const field = document.getElementById("add-bound");
          field.value = "gap";
          field.dispatchEvent(new Event("change"));
          const number = document.querySelector(".chip input");
          number.value = 20;
          number.dispatchEvent(new Event("input"));
          for (let at = 0; at < 3; at += 1) await frame();
          const first = over.toDataURL();
          await new Promise((done) => setTimeout(done, 700));
          return [first, over.toDataURL()];
        }"""
    )
    assert (moments[0] == moments[1]) == (motion == "reduce")


def test_many_groups_are_all_counted_and_named_once(show: Open, make_people_page: MakePage) -> None:
    view = make_people_page()
    words = dataclasses.replace(view.words, groups=tuple(f"group {at}" for at in range(8)))
    shown = show(dataclasses.replace(view, words=words))
    assert "between 8 groups: more of one" in shown.text("#trade")
