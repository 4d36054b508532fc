"""`python scripts/explorer_pictures.py RUN COMPARED`: pictures and the animation of the page in docs/.

RUN is a run of adult, COMPARED the folder that `paretocosmos compare` wrote; the pages in
them are opened in Chromium, with a limit of 2 points on the gap of selection rates.
"""

import argparse
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parents[1] / "docs"
GAP, POINTS = "demographic_parity", "2"
MOVE_SLIDER = """share => {
    const slider = document.getElementById('slider');
    slider.value = share * slider.max;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
}"""
OPTIONS = ["--no-sandbox", "--disable-gpu"]


def main() -> None:
    """Open the pages and save what they show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of adult")
    parser.add_argument("compared", type=Path, help="the folder of a comparison")
    arguments = parser.parse_args()
    run, compared = (
        (folder / "report.html").absolute().as_uri()
        for folder in (arguments.run, arguments.compared)
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        with opened(browser, run, (1440, 900)) as page:
            page.screenshot(path=DOCS / "explorer.png")
            page.fill("#record-by", "A. Example")
            page.fill("#record-why", "a gap of 2 points is the most that we accept")
            page.locator("#sheet").screenshot(path=DOCS / "explorer_record.png")
        with opened(browser, compared, (1440, 900), dark=True) as page:
            page.evaluate("document.getElementById('front').scrollIntoView()")
            page.wait_for_timeout(500)
            page.screenshot(path=DOCS / "explorer_dark.png")
        with opened(browser, run, (390, 844)) as page:
            page.screenshot(path=DOCS / "explorer_phone.png")
        animate(browser, run)
        browser.close()


def animate(browser: Any, address: str) -> None:
    """Save a GIF of a few seconds: the slider moves, then a limit chooses."""
    page = browser.new_page(viewport={"width": 1100, "height": 760})
    page.goto(address)
    page.wait_for_timeout(800)
    frames, durations = [], []

    def keep(milliseconds: int) -> None:
        page.wait_for_timeout(120)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        # few colours and no dithering: a third of the bytes, and the text stays sharp
        frames.append(
            picture.resize((880, 608), Image.Resampling.LANCZOS).quantize(
                64, dither=Image.Dither.NONE
            )
        )
        durations.append(milliseconds)

    for step in (*range(15), *range(13, 6, -1)):
        page.evaluate(MOVE_SLIDER, step / 14)
        keep(900 if step in (0, 14) else 130)
    page.select_option("#add-bound", GAP)
    keep(700)
    page.fill("#bounds input", POINTS)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.wait_for_timeout(700)
    keep(1800)
    frames[0].save(
        DOCS / "explorer.gif",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )
    page.close()


@contextmanager
def opened(
    browser: Any, address: str, size: tuple[int, int], *, dark: bool = False
) -> Iterator[Any]:
    """A page with the limit set."""
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page.goto(address)
    page.select_option("#add-bound", GAP)
    page.fill("#bounds input", POINTS)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.wait_for_timeout(700)  # for what is shown a moment later
    yield page
    page.close()


if __name__ == "__main__":
    main()
