"""The page in a real browser: keyboard, reload, dark, a phone, and what is saved.

`show` fails a test whose page complained in the console or asked for anything but itself.
"""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import PageModel

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]


def test_everything_can_be_done_with_the_keyboard(show: Open, make_page: MakePage) -> None:
    shown = show(make_page(runs=2))
    keyboard = shown.page.keyboard
    order = []
    for _ in range(60):
        keyboard.press("Tab")
        order.append(
            shown.page.evaluate(
                "(() => { const e = document.activeElement; return e.id || e.name"
                " || e.getAttribute('aria-label') || e.textContent.slice(0, 20); })()"
            )
        )
    wanted = ["theme", "slider", "run", "best", "add-bound", "Limit on loss, at most", "python"]
    places = [order.index(one) if one != "theme" else 0 for one in wanted]
    assert places == sorted(places)
    # named, all of them
    nameless = shown.page.evaluate(
        """[...document.querySelectorAll("button, select, input, [role=slider], summary")]
        .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
          || e.textContent.trim() || e.labels?.length)).length"""
    )
    assert nameless == 0
    # a bound by arrow keys, spoken, and taken away again
    grip = shown.page.get_by_role("slider", name="Limit on gap, at most")
    grip.focus()
    assert grip.get_attribute("aria-valuetext") == "no limit"
    for _ in range(3):
        keyboard.press("PageDown")
    shown.settle()
    value = float(shown.page.locator(".chip input").input_value())
    assert str(grip.get_attribute("aria-valuetext")).startswith("at most")
    assert float(str(grip.get_attribute("aria-valuenow"))) == value
    shown.until(lambda: "choices that keep the limit" in shown.text("#live"))
    keyboard.press("Delete")
    shown.settle()
    assert shown.page.locator(".chip").count() == 0
    # the preference
    shown.page.locator("#slider").focus()
    before = shown.ray()
    for _ in range(20):
        keyboard.press("ArrowRight")
    shown.settle()
    assert shown.ray() != before
    assert "interpolated" in shown.page.locator("#slider").get_attribute("aria-valuetext")


def test_an_arrow_key_opens_the_list_of_bounds_and_takes_none(
    show: Open, make_page: MakePage
) -> None:
    shown = show(make_page())
    shown.page.locator("#add-bound").focus()
    for key in ("ArrowDown", "Escape"):
        shown.page.keyboard.press(key)
        shown.settle()
    assert shown.page.locator(".chip").count() == 0
    assert shown.page.evaluate("document.activeElement.id") == "add-bound"


def test_a_reload_shows_the_same(show: Open, make_page: MakePage) -> None:
    shown = show(make_page(runs=2))
    shown.page.locator("#run").select_option("method 2")
    shown.page.locator("#add-bound").select_option("gap")
    shown.page.locator(".chip input").fill("0.3")
    shown.page.get_by_role("checkbox", name="method 1").uncheck()
    shown.page.get_by_role("radio", name="Test").check()
    shown.until(lambda: "hidden=0" in shown.page.url)
    ids = ("#python", "#command", "#verdict", "#numbers", "#criteria")
    before = [shown.text(one) for one in ids]
    shown.page.reload()
    shown.settle()
    assert [shown.text(one) for one in ids] == before
    assert not shown.page.get_by_role("checkbox", name="method 1").is_checked()
    assert shown.page.locator("#split input:checked").input_value() == "test"


@pytest.mark.parametrize(
    "address", ["#ray=9,x&max=1&view=space&run=77", "#ray=0,0&split=nowhere&x=q"]
)
def test_a_strange_address_is_no_trouble(show: Open, make_page: MakePage, address: str) -> None:
    shown = show(make_page())
    shown.page.evaluate("(hash) => { location.hash = hash; }", address)
    shown.page.reload()
    shown.settle()
    assert "measured" in shown.text("#point-state")


def test_dark_by_the_system_and_by_the_switch(show: Open, make_page: MakePage) -> None:
    assert show(make_page()).luminance() > 0.9
    shown = show(make_page(), color_scheme="dark")
    assert shown.luminance() < 0.15
    canvas = shown.picture()
    shown.page.get_by_role("radio", name="Light").check()
    shown.settle()
    assert shown.luminance() > 0.9
    assert shown.picture() != canvas
    shown.page.reload()
    shown.settle()
    assert shown.luminance() > 0.9  # remembered


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_it_fits_a_phone(show: Open, make_page: MakePage, objectives: int) -> None:
    shown = show(make_page(objectives=objectives, runs=2), width=360, height=780)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    for selector in ("#canvas", "#decision", "#preference", ".snippet >> nth=0"):
        box = shown.page.locator(selector).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    # towards the best corner
    shown.drag(".grip >> nth=1", 0, 90)
    assert shown.page.locator(".chip").count() == 1


def test_saving_the_view(show: Open, make_page: MakePage, tmp_path: Path) -> None:
    from PIL import Image

    view = make_page(runs=2)
    shown = show(view)
    shown.page.get_by_role("checkbox", name="method 2").uncheck()
    with shown.page.expect_download() as png:
        shown.page.locator("#save-png").click()
    assert png.value.suggested_filename == "adult-val.png"
    with Image.open(png.value.path()) as image:
        assert image.width > 800
        assert len(image.convert("RGB").getcolors(10**6) or []) > 50
    with shown.page.expect_download() as table:
        shown.page.locator("#save-csv").click()
    text = Path(table.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 50
    val = view.runs[0].fronts[0]
    assert [float(row["gap"]) for row in rows[:25]] == val.values[:, 1].tolist()
    assert [float(row["ray loss"]) for row in rows[:25]] == val.rays[:, 0].tolist()
    assert [row["chosen"] for row in rows].count("1") == 2


def test_every_ray_is_listed_and_sorted(show: Open, make_page: MakePage) -> None:
    view = make_page()
    shown = show(view)
    shown.click("#rays summary")
    assert shown.page.locator("#rays-table tbody tr").count() == 25
    shown.page.locator("#rays-table thead button").nth(4).click()
    val = view.runs[0].fronts[0]
    cells = shown.page.locator("#rays-table tbody tr td:nth-child(5)").all_text_contents()
    assert [float(cell) for cell in cells] == pytest.approx(sorted(val.values[:, 1]), abs=6e-5)
    shown.page.locator("#rays-table tbody tr button").first.click()
    shown.settle()
    assert shown.ray() == pytest.approx(val.rays[val.values[:, 1].argmin()], abs=1e-4)
    assert shown.page.locator("#rays-table tr.selected").count() == 1


def test_the_band_around_the_curve_is_as_high_as_the_intervals(
    show: Open, make_people_page: MakePage
) -> None:
    view = make_people_page()
    shown = show(view)
    assert "Shaded: where points may really lie" in shown.text("#key")
    # a handle without a limit rests at the end of its axis, and knows both ends
    axes = {}
    for side in ("left", "below"):
        grip = shown.page.locator(f".grip.{side}")
        numbers = [float(grip.get_attribute(f"aria-value{end}")) for end in ("min", "max")]
        place = grip.evaluate("it => new DOMMatrix(getComputedStyle(it).transform)")
        axes[side] = (numbers, place["e"], place["f"])
    (low, high), left, top = axes["left"]
    (near, far), right, bottom = axes["below"]
    run = view.runs[0]
    front, answers = run.fronts[0], run.answers
    place = 20
    loss = float(np.mean(front.values[place : place + 2, 0]))
    ends = answers.gaps["val"]["gap"][place : place + 2].mean(axis=0)
    x = left + (loss - near) / (far - near) * (right - left)
    column = shown.page.evaluate(
        """(x) => {
          const canvas = document.getElementById("base");
          const ratio = canvas.width / canvas.clientWidth;
          const data = canvas.getContext("2d").getImageData(x * ratio, 0, 1, canvas.height).data;
          return Array.from({ length: canvas.clientHeight }, (_, y) => {
            const at = 4 * Math.round(y * ratio);
            return data[at + 3] > 0 && data[at + 2] > data[at] + 8;
          });
        }""",
        x,
    )
    blue = [y for y, tinted in enumerate(column) if tinted and top < y < bottom]
    heights = [bottom - (end - low) / (high - low) * (bottom - top) for end in ends]
    # the picture ends at its axis
    assert [max(blue), min(blue)] == pytest.approx(np.clip(heights, top, bottom), abs=4)
