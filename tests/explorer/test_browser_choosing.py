"""The page in a real browser: dragging the trade-off and its bounds.

`show` fails a test whose page complained in the console or asked for anything but itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import PageModel

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]


def test_it_loads_and_shows_both_splits(show: Open, make_page: MakePage) -> None:
    view = make_page(seed=3)
    shown = show(view)
    assert shown.text("h1") == "adult"
    assert "method 1 · seed 3 · 25 rays" in shown.text("#facts")
    val, test = view.runs[0].fronts
    middle = 12
    assert shown.numbers("loss") == pytest.approx(
        [val.values[middle, 0], test.values[middle, 0]], abs=6e-5
    )
    assert shown.numbers("accuracy") == pytest.approx(
        [val.metrics["accuracy"][middle], test.metrics["accuracy"][middle]], abs=6e-5
    )
    assert "measured" in shown.text("#point-state")
    assert len(shown.picture()) > 5000
    assert shown.text("#answers-body td >> nth=1") == "1213.0 %"  # 12 of 92 at ray 12
    rows = shown.page.locator("#samples-body tbody tr")
    assert rows.count() == 4
    assert rows.first.text_content().endswith("yes30<i>Private</i>")


def test_the_slider_moves_the_point_between_rays(show: Open, make_page: MakePage) -> None:
    view = make_page()
    shown = show(view)
    shown.slide("700")
    first = shown.ray()[0]
    val = view.runs[0].fronts[0]
    order = val.rays[:, 0].argsort()
    wanted = np.interp(first, val.rays[order, 0], val.values[order, 1])
    assert shown.numbers("gap")[0] == pytest.approx(wanted, abs=1e-3)
    assert "Interpolated" in shown.text("#point-state")
    chances = shown.page.locator(".chance b").all_text_contents()
    steps = np.linspace(0, 1, 25)
    said = 100 * np.interp(first, val.rays[order, 0], steps[order])
    assert float(chances[0].split()[0]) == pytest.approx(said, abs=1)
    assert chances[2:] == ["25\u00a0%", "100\u00a0%"]
    assert f"ray=[{first:.4f}, {1 - first:.4f}]" in shown.text("#python")


def test_the_picture_is_dragged_along_the_front(show: Open, make_page: MakePage) -> None:
    shown = show(make_page())
    box = shown.page.locator("#over").bounding_box()
    before = shown.ray()
    shown.page.mouse.move(box["x"] + 70, box["y"] + 60)
    shown.page.mouse.down()
    seen_on_the_way = set()
    for step in range(6):
        shown.page.mouse.move(box["x"] + 70 + 60 * step, box["y"] + 60 + 50 * step)
        shown.settle()
        seen_on_the_way.add(tuple(shown.ray()))
    shown.page.mouse.up()
    assert shown.ray() != before
    assert len(seen_on_the_way) >= 4


def test_a_bound_is_dragged_and_the_best_point_that_keeps_it_is_taken(
    show: Open, make_page: MakePage
) -> None:
    view = make_page()
    shown = show(view)
    shown.drag(".grip.left", 0, 160)
    bound = float(shown.page.locator(".chip input").input_value())
    val = view.runs[0].fronts[0]
    point = val.choose(max={"gap": bound})
    assert shown.ray() == pytest.approx(point.ray, abs=1e-4)
    assert shown.numbers("gap")[0] == pytest.approx(point["gap"], abs=6e-5)
    assert f"--max gap={bound:g}" in shown.text("#command")
    assert f'run.choose(max={{"gap": {bound:g}}})' in shown.text("#python")
    kept = int((val.values[:, 1] <= bound).sum() - 1)  # the constant one keeps it, and is not kept
    assert f"The best of {kept} choices" in shown.text("#verdict")
    # by hand, after which the way back is a button
    shown.slide("0")
    assert "Chosen by hand, not by the limit" in shown.text("#verdict")
    assert shown.page.locator("#numbers .broken").count() == 2
    shown.click("#verdict button")
    assert shown.ray() == pytest.approx(point.ray, abs=1e-4)
    # pushed back to where it rested, it is no bound any more
    shown.drag(".grip.left", 0, -400)
    assert shown.page.locator(".chip").count() == 0


def test_a_constant_classifier_is_never_taken_silently(show: Open, make_page: MakePage) -> None:
    view = make_page()
    shown = show(view)
    val = view.runs[0].fronts[0]
    strict = float(val.values[-1, 1])  # only the last ray, which is constant, is as small
    shown.limit(f"{strict + 1e-6:.6f}")
    said = shown.text("#verdict")
    assert "No choice keeps this on validation data: gap at most" in said
    assert "everybody the same answer would keep the limit" in said
    before = shown.ray()
    assert before != pytest.approx(val.rays[-1], abs=1e-4)
    assert "everybody" not in shown.text("#point-state")
    shown.click(shown.page.get_by_role("button", name="Allow that"))
    assert shown.ray() == pytest.approx(val.rays[-1], abs=1e-4)
    assert "It gives everybody the same answer." in shown.text("#point-state")
    assert "--allow-constant" in shown.text("#command")
    shown.click(shown.page.get_by_role("button", name="Leave them out"))
    assert "No choice keeps this" in shown.text("#verdict")


def test_runs_are_overlaid_and_toggled(show: Open, make_page: MakePage) -> None:
    shown = show(make_page(runs=3))
    assert shown.page.locator("#legend label").all_text_contents() == [
        "method 1",
        "method 2",
        "method 3",
    ]
    assert shown.page.locator("#others-table tbody tr").count() == 3
    before = shown.picture()
    shown.page.get_by_role("checkbox", name="method 2").uncheck()
    shown.settle()
    assert shown.picture() != before
    assert shown.page.locator("#others-table tbody tr").count() == 2
    shown.page.locator("#run").select_option("method 3")
    shown.settle()
    assert '"runs/3"' in shown.text("#python")
    # what is chosen from cannot be hidden while something else is not: another takes its place
    shown.page.get_by_role("checkbox", name="method 3").uncheck()
    shown.settle()
    assert shown.page.locator("#run").input_value() == "0"
