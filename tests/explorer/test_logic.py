"""The page's pure functions, run by node or else in Chromium, against Python."""

import csv
import io
import json
import math
import shlex
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from paretocosmos.errors import InfeasibleError
from paretocosmos.pareto import (
    Criteria,
    Front,
    even_rays,
    find_closest,
    find_constant,
    find_feasible,
)
from paretocosmos.plotting import select_limits

pytestmark = pytest.mark.system  # runs node or a browser

LOGIC = files("paretocosmos.explorer").joinpath("page", "logic.js").read_text(encoding="utf-8")
NODE = shutil.which("node")
# A front as the page unpacks it; JSON has no NaN, so `null` stands for it here.
FRONT = """
const frontOf = (raw) => {
  const columns = Object.fromEntries(Object.entries(raw.columns).map(([name, values]) =>
    [name, Float64Array.from(values, (value) => value ?? NaN)]));
  const J = raw.names.length;
  const rays = Float64Array.from(raw.rays.flat());
  const order = raw.rays.map((_, at) => at).sort((a, b) => rays[a * J] - rays[b * J] || a - b);
  return { names: raw.names, count: raw.rays.length, rays, order, columns, constant: raw.constant };
};
"""


class Script:
    """Runs the logic on JSON."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.browser = None if NODE else request.getfixturevalue("chromium")

    def __call__(self, expression: str, data: object = None) -> Any:
        body = f"{LOGIC}{FRONT}const data = {json.dumps(data)};"
        if self.browser is not None:
            return self.browser.new_page().evaluate(f"() => {{ {body} return {expression}; }}")
        body += f"process.stdout.write(JSON.stringify({expression}));"
        command = [str(NODE), "-"]
        done = subprocess.run(command, input=body, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


@pytest.fixture
def js(request: pytest.FixtureRequest) -> Script:
    return Script(request)


def raw(front: Front) -> dict[str, Any]:
    """A front for the script."""
    content = front.to_dict()
    columns = content["metrics"] | {
        name: [row[at] for row in content["values"]] for at, name in enumerate(front.names)
    }
    rate = front.metrics.get("positive_rate", np.full(len(front), 0.5))
    constant = [int(one in (0, 1)) for one in rate]
    return {"names": front.names, "rays": content["rays"], "columns": columns, "constant": constant}


def random_case(seed: int) -> tuple[Front, dict[str, Any]]:
    """A front with ties, missing numbers and constant classifiers, and criteria."""
    draw = np.random.default_rng(seed)
    objectives, count = int(draw.integers(2, 5)), int(draw.integers(1, 30))
    names = ("loss", "gap", "third", "fourth")[:objectives]
    values = draw.integers(0, 8, (count, objectives)) / 8
    accuracy = draw.integers(0, 6, count) / 5
    if seed % 3 == 0:
        values[draw.random(values.shape) < 0.1] = np.nan
        accuracy[draw.random(count) < 0.1] = np.nan
    rate = draw.choice([0.0, 0.2, 0.7, 1.0], count)
    rays = even_rays(count, objectives).numpy()
    metrics = {"accuracy": accuracy, "positive_rate": rate}
    front = Front(rays, values, names, np.full(objectives, 2.0), metrics, "val")
    bounds = {name: float(draw.integers(-1, 9)) / 8 for name in names if draw.random() < 0.4}
    least = {"accuracy": float(draw.integers(0, 6)) / 5} if draw.random() < 0.4 else {}
    best = draw.choice(["", "minimize", "maximize"]) if bounds or least else "minimize"
    name = "accuracy" if best == "maximize" else names[-1]
    return front, {
        "max": bounds,
        "min": least,
        "minimize": name if best == "minimize" else None,
        "maximize": name if best == "maximize" else None,
        "allow_constant": bool(draw.random() < 0.3),
    }


def test_a_point_is_picked_as_python_picks_it(js: Script) -> None:
    cases = [random_case(seed) for seed in range(600)]
    sent = [
        {"front": raw(front), "criteria": criteria | {"constants": criteria["allow_constant"]}}
        for front, criteria in cases
    ]
    found = js("data.map((one) => pick(frontOf(one.front), one.criteria))", sent)
    refused = 0
    for (front, criteria), picked in zip(cases, found, strict=True):
        try:
            point = front.choose(**criteria)
        except InfeasibleError as error:
            refused += 1
            assert picked["at"] == -1
            assert picked["closest"] == find_closest(front, Criteria(**criteria))
            if "no ray has a number" not in str(error):
                bounds = {"max": criteria["max"], "min": criteria["min"]}
                keeping = find_feasible(front, Criteria(**bounds, knee=True, allow_constant=True))
                assert picked["constant"] is bool((find_constant(front) & keeping).any())
            continue
        assert tuple(front.rays[picked["at"]].tolist()) == point.ray
    assert 100 < refused < 500  # both ways are met often


@pytest.mark.parametrize("count", [1, 2, 25])
def test_between_two_rays_lies_a_straight_line(js: Script, count: int) -> None:
    draw = np.random.default_rng(count)
    rays = even_rays(count, 2).numpy().astype(np.float64)[draw.permutation(count)]
    values = draw.random((count, 2))
    front = Front(rays, values, ("loss", "gap"), np.full(2, 2.0))
    asked = np.linspace(0, 1, 301)
    sent = {"front": raw(front), "rays": [[x, 1 - x] for x in asked]}
    call = "blend(front.columns.gap, mixture(front, ray, false))"
    found = js(f"((front) => data.rays.map((ray) => {call}))(frontOf(data.front))", sent)
    order = rays[:, 0].argsort()
    wanted = np.interp(asked, rays[order, 0], values[order, 1])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("objectives", [3, 5])
def test_between_more_rays_the_nearest_count_by_franke_and_little(
    js: Script, objectives: int
) -> None:
    draw = np.random.default_rng(objectives)
    rays = even_rays(40, objectives).numpy().astype(np.float64)
    asked = draw.dirichlet(np.ones(objectives), 200)
    names = ("a", "b", "c", "d", "e")[:objectives]
    front = Front(rays, rays, names, np.full(objectives, 2.0))
    sent = {"front": raw(front), "rays": [*asked.tolist(), *rays[:5].tolist()]}
    call = "data.rays.map((ray) => mixture(front, ray, false))"
    found = js(f"((front) => {call})(frontOf(data.front))", sent)
    for ray, mix in zip(asked, found, strict=False):
        apart = np.linalg.norm(rays - ray, axis=1)
        radius = np.sort(apart)[2 * objectives - 1]
        weight = (np.maximum(radius - apart, 0) / (radius * apart)) ** 2
        got = np.zeros(len(rays))
        for at, share in mix:
            got[at] = share
        np.testing.assert_allclose(got, weight / weight.sum(), atol=1e-12)
    assert found[-5:] == [[[at, 1]] for at in range(5)]


def test_text_for_other_programs(js: Script) -> None:
    hard = ["plain", "two words", "it's", 'a "quote"', "$HOME `x` \\ ;", "a,b", "line\nbreak", "é"]
    assert [shlex.split(word) for word in js("data.map(shellWord)", hard)] == [[w] for w in hard]
    (row,) = csv.reader(io.StringIO(js('data.map(csvCell).join(",")', hard), newline=""))
    assert row == hard


@pytest.mark.parametrize("low", [-3.0, 0.0, 1e-5, 1234.5])
def test_ticks_lie_inside_and_say_what_they_are(js: Script, low: float) -> None:
    high = low + 0.37 * (abs(low) or 1)
    ticks = js("ticksOf(data, 5)", [low, high])
    assert 2 <= len(ticks) <= 8
    for value, text in ticks:
        assert low - 1e-9 <= value <= high + 1e-9
        assert math.isclose(float(text.replace("−", "-")), value, rel_tol=1e-6, abs_tol=1e-12)


def test_a_picture_reaches_as_far_as_that_of_a_comparison(js: Script) -> None:
    draw = np.random.default_rng(3)
    cases = []
    for _ in range(200):
        sizes = draw.integers(1, 9, 5)
        parts = [draw.random((int(size), 2)) * draw.choice([1.0, 40.0]) for size in sizes]
        few = int(draw.integers(1, 4))
        cases.append((parts[:few], parts[few:4], parts[4:]))
    sent = [[[part.tolist() for part in kind] for kind in case] for case in cases]
    found = js("data.map((one) => limitsOf(...one))", sent)
    for case, got in zip(cases, found, strict=True):
        np.testing.assert_allclose(got, select_limits(*case))
