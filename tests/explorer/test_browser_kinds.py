"""The page in a real browser: every kind of front and of name.

`show` fails a test whose page complained in the console or asked for anything but itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import PageModel, RunView
from paretocosmos.pareto import Front, even_rays

Open = Callable[..., Any]
MakePage = Callable[..., PageModel]
TWO = np.array([2.0, 2.0])


def test_three_objectives_on_two_axes_in_colours_and_in_space(
    show: Open, make_page: MakePage
) -> None:
    view = make_page(objectives=3, count=40)
    shown = show(view)
    assert shown.page.locator("#axis-x").is_visible()
    assert "the colour is third" in shown.page.locator("#over").get_attribute("aria-label")
    best, worst = (0, 96, 154), (168, 58, 0)
    assert shown.count_pixels("base", best) > 20
    assert shown.count_pixels("base", worst) > 20
    shown.page.get_by_role("radio", name="Space").check()
    shown.settle()
    assert shown.count_pixels("base", worst) == 0
    before = shown.picture()
    shown.drag("#over", 120, 30)
    turned = shown.picture()
    assert turned != before
    shown.page.locator("#over").focus()
    for _ in range(5):
        shown.page.keyboard.press("ArrowLeft")
    shown.settle()
    assert shown.picture() not in (before, turned)
    # the triangle: by hand and by keys
    pad = shown.page.locator(".pad")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 30)
    shown.settle()
    assert shown.ray()[2] > 0.8
    top = shown.ray()[2]
    shown.page.keyboard.press("ArrowDown")
    shown.settle()
    assert shown.ray()[2] == pytest.approx(top - 0.02, abs=1e-3)
    assert "Interpolated" in shown.text("#point-state")
    # a bound, by the handle on an axis
    shown.page.get_by_role("slider", name="Limit on third, at most").focus()
    for _ in range(5):
        shown.page.keyboard.press("PageDown")
    shown.settle()
    bound = float(shown.page.locator(".chip input").input_value())
    point = view.runs[0].fronts[0].choose(max={"third": bound})
    assert shown.ray() == pytest.approx(point.ray, abs=1e-4)
    assert "Evaluated" in shown.text("#point-state")


def test_four_objectives_side_by_side(show: Open, make_page: MakePage) -> None:
    view = make_page(objectives=4, count=30)
    shown = show(view)
    rows = shown.page.locator(".weight-row input")
    assert rows.count() == 4
    rows.nth(2).fill("700")
    shown.settle()
    ray = shown.ray()
    assert ray[2] == pytest.approx(0.7, abs=1e-3)
    assert sum(ray) == pytest.approx(1)
    shown.drag(".grip >> nth=3", 0, 140)
    bound = float(shown.page.locator(".chip input").input_value())
    point = view.runs[0].fronts[0].choose(max={"fourth": bound})
    assert shown.ray() == pytest.approx(point.ray, abs=1e-4)


def test_networks_of_their_own_have_nothing_between_them(
    show: Open, make_front: Callable[..., Front]
) -> None:
    fronts = [make_front("val", count=5), make_front("test", count=5)]
    record = {"label": "pareto_mtl", "fixed_rays": fronts[0].rays.tolist()}
    shown = show(PageModel([RunView(record, fronts)]))
    shown.slide("620")
    assert "The network trained for the ray" in shown.text("#point-state")
    assert "nothing between two networks" in shown.text("#preference")
    assert "5 networks" in shown.text("#facts")
    assert shown.numbers("loss")[0] == pytest.approx(
        fronts[0].values[np.abs(fronts[0].rays[:, 0] - shown.ray()[0]).argmin(), 0], abs=6e-5
    )


def test_networks_for_one_objective_each(show: Open) -> None:
    values = np.array([[0.2, 0.6], [0.5, 0.1]])
    front = Front(np.eye(2), values, ("loss", "gap"), TWO)
    networks = [{"epoch_selected": 5, "infeasible_share": 0.031}, {"epoch_selected": 10}]
    record = {"label": "single_task", "fixed_rays": np.eye(2).tolist(), "networks": networks}
    evaluations = [{"epoch": epoch, "hypervolume_val": 3.0} for epoch in (5, 10)]
    shown = show(PageModel([RunView({**record, "evaluations": evaluations}, [front])]))
    shown.slide("1000")
    assert shown.text("#point-state") == "The network trained on gap alone."
    assert shown.numbers("gap") == [0.1]
    shown.page.locator("#quality summary").click()
    shown.click("#training summary")
    ideal = (2 - 0.2) * (2 - 0.1)
    assert f"needs to reach{ideal:.3f}" in shown.text("#quality-body")
    assert "as weights3.1 %" in shown.text("#quality-body")
    assert "its own selected epoch: 5, 10" in shown.text("#training")


def test_one_network_with_one_point_takes_no_preference(show: Open) -> None:
    front = Front(np.array([[0.5, 0.5]]), np.array([[0.3, 0.2]]), ("loss", "gap"), TWO)
    shown = show(PageModel([RunView({"label": "mgda", "fixed_rays": [[0.5, 0.5]]}, [front])]))
    assert "takes no preference" in shown.text("#preference")
    assert shown.page.locator("#slider").is_disabled()
    assert shown.numbers("loss") == [0.3]


def test_pictures_and_their_classes(show: Open, image_page: PageModel) -> None:
    shown = show(image_page)
    assert shown.page.locator(".pictures img").count() == 4
    assert shown.page.evaluate("document.querySelector('.pictures img').naturalWidth") == 8
    before = shown.text(".pictures li >> nth=0")
    shown.slide("900")
    assert shown.text(".pictures li >> nth=0") != before


HOSTILE = "</script><img src=x onerror=alert(1)>\u2028{{data}} & \"'`__proto__"


def test_names_are_shown_and_not_run(show: Open) -> None:
    rays = even_rays(9, 2).numpy()
    values = 0.6 - 0.5 * np.sqrt(rays)
    names = (HOSTILE, "__proto__")
    metrics = {f"<b>{HOSTILE}": values[:, 0], "toString": values[:, 1]}
    fronts = [Front(rays, values, names, TWO, metrics, split) for split in ("val", "test")]
    record = {
        "name": HOSTILE,
        "label": HOSTILE,
        "caveats": [HOSTILE],
        HOSTILE: {HOSTILE: [HOSTILE]},
    }
    shown = show(
        PageModel(
            [RunView(record, fronts, HOSTILE), RunView(record, fronts, "b")], samples_note=HOSTILE
        )
    )
    shown.page.locator("#configuration summary").click()
    shown.page.locator("#rays summary").click()
    for selector in ("#axis-x", "#axis-y"):
        for name in ("__proto__", "toString", HOSTILE):
            shown.page.locator(selector).select_option(name)
            shown.settle()
    shown.drag(".grip.below", -200, 0)
    assert shown.page.locator(".chip").count() == 1
    assert shown.page.locator("img, b:not(:empty) > b").count() == 0
    assert shown.text("h1") == " ".join(HOSTILE.split())


@pytest.mark.parametrize(
    "values", [[[3.0, 3.0]], [[0.3, np.nan], [np.nan, 0.1], [0.2, 0.2]], [[0.5, 0.5]] * 4]
)
def test_odd_fronts_are_shown(show: Open, values: list[list[float]]) -> None:
    rays = even_rays(len(values), 2).numpy()
    metrics = {"all_nan": np.full(len(values), np.nan)}
    odd = Front(rays, np.array(values), ("loss", "gap"), TWO, metrics)
    shown = show(PageModel([RunView({}, [odd])]))
    shown.page.locator("#axis-x").select_option("all_nan")
    shown.page.locator("#best").select_option("all_nan")
    shown.settle()
    assert shown.page.locator("#numbers tbody tr").count() == 3
