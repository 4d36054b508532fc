"""Models of pages that nobody trained, and a browser to show them in."""

import base64
import dataclasses
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paretocosmos.explorer import (
    Answers,
    Cell,
    Head,
    Outcome,
    PageModel,
    RunView,
    Samples,
    Words,
    write_report,
)
from paretocosmos.objectives import Measure
from paretocosmos.pareto import Front, even_rays


@pytest.fixture
def make_front() -> Callable[..., Front]:
    """Make a front in which more weight on an objective lowers it."""

    def front(
        split: str = "test", *, objectives: int = 2, count: int = 25, add: float = 0
    ) -> Front:
        rays = even_rays(count, objectives).numpy().astype(np.float64)
        values = 0.6 - 0.5 * np.sqrt(rays) + add + (0.01 if split == "val" else 0.0)
        names = ("loss", "gap", "third", "fourth")[:objectives]
        rate = np.linspace(0.3, 0.0, count)  # the last ray gives everybody the same answer
        metrics = {"accuracy": 1 - values[:, 0], "positive_rate": rate}
        return Front(rays, values, names, np.full(objectives, 2.0), metrics, split)

    return front


@pytest.fixture
def make_page(make_front: Callable[..., Front]) -> Callable[..., PageModel]:
    """Make a page of one or more runs, with a binary head and four samples."""

    def view(*, objectives: int = 2, count: int = 25, runs: int = 1, **record: Any) -> PageModel:
        steps = np.linspace(0, 1, count)
        confusion = np.zeros((count, 1, 2, 2), np.int64)
        confusion[:, 0] = [[80, 20], [30, 70]]
        confusion[:, 0, 0, 1] = np.arange(count)
        answers = Answers(
            ray_indices=np.arange(count),
            confusion={"val": (confusion,), "test": (2 * confusion,)},
            probabilities=(np.stack([steps, 1 - steps, 0 * steps + 0.25, 0 * steps + 1]),),
            classes=(np.zeros((4, count), np.int64),),
        )
        views = []
        for run in range(runs):
            kinds = {"objectives": objectives, "count": count, "add": 0.02 * run}
            fronts = (make_front("val", **kinds), make_front("test", **kinds))
            own = {"name": "adult", "label": f"method {run + 1}", "about": {"target": "income"}}
            views.append(RunView(own | record, fronts, f"runs/{run + 1}", answers))
        cells = tuple((f"{30 + row}", "<i>Private</i>") for row in range(4))
        samples = Samples((1, 2, 3, 4), ("age", "work"), cells, (), np.array([[1, 0, 0, 1]]), 2, 2)
        return PageModel(views, (Head("income", ("no", "yes"), binary=True),), (), samples)

    return view


@pytest.fixture
def make_people_page(make_page: Callable[..., PageModel]) -> Callable[..., PageModel]:
    """Make a page with two groups: who is selected, with intervals, and the gap between them."""

    def view(*, count: int = 25, runs: int = 1, **record: Any) -> PageModel:
        bare = make_page(count=count, runs=runs, **record)
        cells = tuple(
            Cell(who, f"of 100 {who}, # are selected", 0, at, (0, 1), "positive")
            for at, who in enumerate(("men", "women"), start=1)
        )
        wrong = Cell("all", "# of 100 answers are wrong", 0, 0, (0, 1), "wrong")
        outcomes = (
            Outcome("Selected", "Who is selected.", "gap", cells),
            Outcome("Wrong answers", "How many are wrong.", "", (wrong,), lead=True),
        )
        step = np.linspace(0, 1, count)
        middle = np.stack([0.2 + 0.1 * step, 0.1 + 0.2 * step, 0.15 + 0 * step])
        shares = np.stack([middle, middle - 0.02, middle + 0.03], axis=-1)
        gaps = {"gap": np.stack([0.1 * step, 0.2 + 0.1 * step], axis=-1)}
        words = Words(
            title="Who pays back?",
            rows="people",
            groups=("men", "women"),
            measures={
                "loss": Measure("wrong answers", "fewer wrong answers", unit="of 100"),
                "gap": Measure("gap in who is selected", "a smaller gap", unit="points"),
            },
            outcomes=outcomes,
            sizes={"val": 200, "test": 400},
        )
        views = [
            dataclasses.replace(
                run_view,
                answers=run_view.answers
                and dataclasses.replace(
                    run_view.answers,
                    shares={"val": shares, "test": shares + 0.01},
                    gaps={"val": gaps, "test": gaps},
                ),
            )
            for run_view in bare.runs
        ]
        return dataclasses.replace(bare, runs=views, groups=(), words=words)

    return view


@pytest.fixture
def image_page(make_page: Callable[..., PageModel]) -> PageModel:
    """The same with pictures instead of rows."""
    view = make_page()
    stream = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(stream, "PNG")
    image = stream.getvalue()
    samples = Samples((1, 2, 3, 4), (), (), (image,) * 4, np.array([[1, 0, 0, 1]]), 2)
    return PageModel(view.runs, view.heads, (), samples)


@dataclass
class Shown:
    """A page in the browser, and what should not have happened there."""

    page: Any
    troubles: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return " ".join((self.page.locator(selector).text_content() or "").split())

    def settle(self) -> None:
        """Wait until two frames have been drawn, and parts out of sight, too."""
        self.page.evaluate(
            "new Promise((done) => setTimeout(() => requestAnimationFrame(done), 250))"
        )

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that comes when things are at rest."""
        for _ in range(20):
            if true():
                return
            self.settle()
        raise AssertionError("it never came true")

    def slide(self, place: str) -> None:
        """Move the slider of the preference."""
        self.page.locator("#slider").fill(place)
        self.settle()

    def click(self, on: Any) -> None:
        """Click on something, by its selector or as it was found."""
        (self.page.locator(on) if isinstance(on, str) else on).click()
        self.settle()

    def limit(self, points: str) -> None:
        """Set a new limit to the gap."""
        self.page.locator("#add-bound").select_option("gap")
        self.page.locator(".chip input").fill(points)
        self.settle()

    def drag(self, selector: str, across: float, down: float) -> None:
        """Take hold of something and move it, in a few steps as a hand does."""
        self.page.locator(selector).scroll_into_view_if_needed()
        box = self.page.locator(selector).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for step in range(1, 5):
            self.page.mouse.move(x + across * step / 4, y + down * step / 4)
        self.page.mouse.up()
        self.settle()

    def numbers(self, name: str) -> list[float]:
        """The values of a loss or metric at the chosen point, one per split."""
        row = self.page.locator("#numbers tr", has=self.page.locator(f"th:text-is('{name}')"))
        return [float(cell.replace("−", "-")) for cell in row.locator("td").all_text_contents()]

    def picture(self) -> str:
        """What the canvas under everything shows, as a PNG."""
        return str(self.page.evaluate("document.getElementById('base').toDataURL()"))

    def count_pixels(self, canvas: str, colour: tuple[int, int, int]) -> int:
        """How many opaque pixels of a canvas have a colour."""
        url = self.page.evaluate(f"document.getElementById('{canvas}').toDataURL()")
        with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
            pixels = np.asarray(image.convert("RGBA")).reshape(-1, 4).astype(int)
        near = np.abs(pixels[:, :3] - np.array(colour)).max(axis=1) <= 2
        return int((near & (pixels[:, 3] == 255)).sum())

    def luminance(self) -> float:
        """How light the paper is, from 0 to 1."""
        found = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        red, green, blue = (float(part) for part in found[4:-1].split(",")[:3])
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255

    def ray(self) -> list[float]:
        """The preference, as the code on the page has it."""
        inside = self.text("#command").rpartition("--ray ")[2]
        return [float(part) for part in inside.split(",")]


@pytest.fixture
def show(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """Write a view and open it; in the end nothing was complained about and nothing asked for."""
    every: list[Shown] = []

    def opened(view: PageModel, *, width: int = 1280, height: int = 900, **context: Any) -> Shown:
        path = tmp_path / f"page-{len(every)}.html"
        write_report(path, view)
        page = chromium.new_page(viewport={"width": width, "height": height}, **context)
        page.set_default_timeout(30_000)  # others may be at work on the machine
        shown = Shown(page)
        every.append(shown)
        page.on("console", lambda said: shown.troubles.append(said.text))
        page.on("pageerror", lambda error: shown.troubles.append(str(error)))
        page.on("request", lambda request: shown.asked.append(request.url))
        page.goto(path.as_uri())
        shown.settle()
        return shown

    yield opened
    for shown in every:
        shown.page.close()
        assert shown.troubles == []
        others = [url for url in shown.asked if not url.startswith(("file:", "data:", "blob:"))]
        assert others == []
        assert len({url.partition("#")[0] for url in shown.asked if url.startswith("file:")}) == 1
