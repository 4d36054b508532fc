"""The pages of a server in a browser: forms that work, and nothing fetched from elsewhere."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.serving.conftest import listening

from paretocosmos import Run, fit
from paretocosmos.serving import Settings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    draw, rows, place = np.random.default_rng(1), 400, tmp_path_factory.mktemp("pages")
    frame = pd.DataFrame({"age": draw.normal(size=rows).round(2)})
    frame["it's"] = draw.choice(["a", "b"], rows)
    frame["sex"] = draw.choice(["f", "m"], rows)
    frame["rich"] = frame["age"] + draw.normal(size=rows) > 0
    frame.to_csv(place / "people.csv", index=False)
    settings = {"target": "rich", "sensitive": "sex", "hidden": "4"}
    people, out = str(place / "people.csv"), place / "run"
    return fit(people, preset="paper", epochs=3, settings=settings, out=out, device="cpu")


@pytest.fixture(scope="module")
def address(run: Run) -> Iterator[str]:
    with listening(Settings(folder=Path(run.folder), port=0)) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, chromium: Any, address: str) -> Iterator[Any]:
    heard, asked = list[str](), list[str]()
    shown = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme=request.param)
    shown.set_default_timeout(30_000)
    shown.on("console", lambda said: heard.append(said.text))
    shown.on("pageerror", lambda error: heard.append(str(error)))
    shown.on("request", lambda sent: asked.append(sent.url))
    yield shown
    shown.close()
    assert [one for one in heard if "status of 422" not in one] == []  # which was meant
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_the_form_writes_a_body_and_sends_it(page: Any, address: str, run: Run) -> None:
    page.goto(f"{address}/")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("link", name="/docs").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    form = page.locator("form").first
    form.locator('[data-column="age"]').fill("1.5")
    form.locator('[data-column="it\'s"]').select_option("b")
    form.locator("[data-weight]").first.fill("100")
    form.locator("[data-weight]").last.fill("0")
    body = json.loads(form.locator("textarea").input_value())
    assert body == {"inputs": {"age": 1.5, "it's": "b"}, "preference": [1, 0]}
    assert json.loads(shlex.split(form.locator(".curl").text_content())[-1]) == body
    form.get_by_role("button").click()
    form.locator("output", has_text="probabilities").wait_for()
    said = json.loads(form.locator("output").text_content().partition("\n")[2])
    expected = run.predict(pd.DataFrame([body["inputs"]]), ray=[1.0, 0.0])
    assert said["probabilities"] == pytest.approx(expected.tolist(), abs=1e-6)
    form.locator("textarea").fill("{}")
    form.get_by_role("button").click()
    form.locator("output", has_text="422").wait_for()
