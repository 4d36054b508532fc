"""`python -m benchmarks.explorer`: how fast the explorer is in Chromium.

First the page of the network on Adult that comes with the package: its size, the first paint, the
frames a second while the slider is dragged and the network answers for a case in sight, the time of
an answer to a changed case at all trade-offs, and that of a dropped CSV of 10,000 rows.
Then 1,001 rays x 5 runs.

Pages of made-up runs with two, three and five objectives, each with a dozen samples and counted
answers, are written and opened in a headless Chromium (Debian's, by playwright). Measured are the
size of the file, the time to the first paint and until the whole page is drawn, and the frames a
second while something is dragged: the preference, a bound, the picture itself. In every frame of a
drag one event moves it on, as a hand does. Prints a table and, with `--out FILE`, writes the
numbers as JSON. `--tiny` does a little of it.
"""

import argparse
import csv
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos import Run, load
from paretocosmos.explorer import (
    Answers,
    Cell,
    Head,
    Outcome,
    PageModel,
    RunView,
    Samples,
    Words,
    write_page,
    write_report,
)
from paretocosmos.explorer.evaluate_page import restore_texts
from paretocosmos.pareto import Front, even_rays
from paretocosmos.runs.provenance import get_provenance

RAYS, RUNS = 1001, 5
OBJECTIVES = (2, 3, 5)
FRAMES = 120
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
LONGEST_PAINT, FEWEST_FRAMES, LARGEST = 1.0, 30, 6_000_000

PAINT = """
() => new Promise((done) => new PerformanceObserver((list) => {
  const [first] = list.getEntriesByName("first-contentful-paint");
  if (first) done(first.startTime);
}).observe({ type: "paint", buffered: true }))
"""
# Moves something on by one event in every frame, and gives the milliseconds between frames.
DRAG = """
async ([target, how, frames]) => {
  const node = document.querySelector(target);
  const box = node.getBoundingClientRect();
  const send = (kind, x, y) => node.dispatchEvent(new PointerEvent(kind, {
    bubbles: true, cancelable: true, pointerId: 1, button: 0, clientX: x, clientY: y }));
  node.setPointerCapture = () => {};
  const area = document.querySelector("#over").getBoundingClientRect();
  const pad = how === "pad" ? box : area;
  const at = (share) => how === "up" ? [box.x, area.top + 40 + share * (area.height - 120)]
    : [pad.left + (0.2 + 0.6 * share) * pad.width, pad.top + (0.3 + 0.4 * share) * pad.height];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  if (how !== "range") send("pointerdown", ...at(0));
  const times = [await frame()];
  for (let step = 1; step <= frames; step += 1) {
    const share = 0.5 - 0.5 * Math.cos((2 * Math.PI * step) / frames);
    if (how === "range") {
      node.value = String(Math.round(1000 * share));
      node.dispatchEvent(new Event("input", { bubbles: true }));
    } else send("pointermove", ...at(share));
    times.push(await frame());
  }
  if (how !== "range") send("pointerup", ...at(1));
  return times.slice(1).map((time, k) => time - times[k]);
}
"""


# Changes a number of the case, and gives the milliseconds until the answers are known.
CASE = """
(count) => {
  const field = document.querySelector("#case-form input");
  return Array.from({ length: count }, (_, at) => {
    const began = performance.now();
    field.value = 20 + at % 50;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    return performance.now() - began;
  });
}
"""
ROWS = 10_000


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--tiny", action="store_true", help="a little of it")
    arguments = parser.parse_args()
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("no chromium here: install it (Debian: apt-get install chromium)")
    rays, runs, frames = (101, 2, 20) if arguments.tiny else (RAYS, RUNS, FRAMES)
    results: dict[str, Any] = {"rays": rays, "runs": runs, "frames": frames, "objectives": {}}
    results["load"] = os.getloadavg()[0]  # what else the machine was doing
    with tempfile.TemporaryDirectory() as folder:
        results["adult"] = measure_adult(browser, Path(folder), frames)
        for objectives in OBJECTIVES:
            page = Path(folder) / f"explore-{objectives}.html"
            write_report(page, made_up(objectives, rays=rays, runs=runs))
            results["objectives"][str(objectives)] = {
                "bytes": page.stat().st_size,
                **measured(browser, page, objectives, frames),
            }
    results |= get_provenance(torch.device("cpu"))
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def write_rows(run: Run, path: Path, count: int) -> None:
    """Write rows of the test data as a CSV, with the true answer and the group."""
    problem: Any = run.problem()
    test = problem.split("test")
    rows = np.arange(count) % len(test)
    texts = restore_texts(problem.table, test.inputs[rows].numpy())
    names = ("<=50K", ">50K")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*problem.table.columns, problem.target, problem.sensitive])
        for text, label, group in zip(
            texts, test.targets["label"][rows], test.targets["sensitive"][rows], strict=True
        ):
            writer.writerow([*text, names[int(label)], problem.groups[int(group)]])


def measure_adult(browser: str, folder: Path, frames: int) -> dict[str, Any]:
    """Sizes and times of the page of the network that comes with the package."""
    from playwright.sync_api import sync_playwright

    run = load("adult")
    page, rows = folder / "adult.html", folder / "rows.csv"
    write_page([run], page)
    write_rows(run, rows, ROWS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=list(OPTIONS))
        shown = chromium.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(page.as_uri())
        found = {"bytes": page.stat().st_size, "first_paint_seconds": shown.evaluate(PAINT) / 1000}
        shown.locator("#case").scroll_into_view_if_needed()
        between = shown.evaluate(DRAG, ["#slider", "range", frames])
        found["preference_frames_per_second"] = 1000 / float(np.mean(between))
        found["case_ms"] = float(np.median(shown.evaluate(CASE, frames)))
        shown.wait_for_timeout(500)
        started = time.perf_counter()
        shown.set_input_files("#own-open", rows)
        shown.locator("#own-note", has_text="were counted").wait_for()
        found["csv_rows"], found["csv_seconds"] = ROWS, time.perf_counter() - started
        found["counted"] = shown.locator("#own-note").text_content()
        chromium.close()
    return found


def made_up(objectives: int, *, rays: int, runs: int) -> PageModel:
    """Runs that nobody trained: convex fronts, ten classes, a dozen images."""
    draw = np.random.default_rng(1)
    directions = even_rays(rays, objectives).numpy().astype(np.float64)
    names = tuple(f"task_{place + 1}" for place in range(objectives))
    heads = tuple(Head(name, tuple("0123456789"), binary=False) for name in names[:2])
    cells = tuple(
        Cell(name, f"# of 100 answers on {name} are wrong", place, 0, (), "wrong")
        for place, name in enumerate(names[:2])
    )
    outcomes = (Outcome("Are wrong", "Of 100 answers, how many are wrong.", "", cells, lead=True),)
    counted = np.unique(np.linspace(0, rays - 1, 101).round().astype(np.int64))
    views = []
    for run in range(runs):
        fronts = []
        for split in ("val", "test"):
            values = 0.9 - 0.8 * directions**0.6 + 0.03 * run + 0.003 * draw.normal(size=(rays, 1))
            metrics = {f"accuracy_{name}": 1 - values[:, at] / 3 for at, name in enumerate(names)}
            reference = np.full(objectives, 2.0)
            fronts.append(Front(directions, values, names, reference, metrics, split))
        shape = (len(counted), 1, 10, 10)
        answers = Answers(
            ray_indices=counted,
            confusion={
                split: tuple(draw.integers(0, 900, shape) for _ in heads)
                for split in ("val", "test")
            },
            probabilities=tuple(draw.random((12, rays)) for _ in heads),
            classes=tuple(draw.integers(0, 10, (12, rays)) for _ in heads),
            shares={
                split: np.sort(draw.random((len(cells), len(counted), 3)))[..., [1, 0, 2]]
                for split in ("val", "test")
            },
        )
        views.append(
            RunView({"name": "made up", "label": f"run {run + 1}"}, fronts, "runs", answers)
        )
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
        "0000000a49444154789c63600000000200010048afa4710000000049454e44ae426082"
    )
    truth = draw.integers(0, 10, (len(heads), 12))
    samples = Samples(tuple(range(12)), (), (), (pixel,) * 12, truth, 6)
    return PageModel(views, heads, samples=samples, words=Words(outcomes=outcomes))


def measured(browser: str, page: Path, objectives: int, frames: int) -> dict[str, Any]:
    """Times and frames of one page."""
    from playwright.sync_api import sync_playwright

    preference = {2: ("#slider", "range"), 3: (".pad", "pad")}.get(
        objectives, (".weight-row input", "range")
    )
    drags = {"preference": preference, "bound": (".grip", "up"), "picture": ("#over", "across")}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=list(OPTIONS))
        shown = chromium.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(page.as_uri())
        paint = shown.evaluate(PAINT)
        drawn = shown.evaluate("performance.timing.loadEventEnd - performance.timing.fetchStart")
        found = {"first_paint_seconds": paint / 1000, "loaded_seconds": drawn / 1000}
        for name, (target, how) in drags.items():
            between = shown.evaluate(DRAG, [target, how, frames])
            found[f"{name}_frames_per_second"] = 1000 / float(np.mean(between))
            found[f"{name}_slowest_frame_ms"] = float(np.max(between))
        found["chromium"] = chromium.version
        chromium.close()
    return found


def show(results: dict[str, Any]) -> None:
    """A table, and whether the figures are reached."""
    adult = results["adult"]
    print(
        f"Adult: {adult['bytes'] / 1e6:.2f} MB, first paint after "
        f"{adult['first_paint_seconds']:.2f} s, {adult['preference_frames_per_second']:.0f} frames "
        f"a second; a case {adult['case_ms']:.1f} ms, {adult['csv_rows']:,} rows of a CSV "
        f"{adult['csv_seconds']:.2f} s: {adult['counted']}"
    )
    print(f"{results['rays']} rays x {results['runs']} runs")
    for objectives, found in results["objectives"].items():
        rates = {key: value for key, value in found.items() if key.endswith("per_second")}
        print(
            f"  {objectives} objectives: {found['bytes'] / 1e6:.2f} MB, first paint after "
            f"{found['first_paint_seconds']:.2f} s, drawn after {found['loaded_seconds']:.2f} s; "
            "frames a second: "
            + ", ".join(f"{key.partition('_')[0]} {value:.0f}" for key, value in rates.items())
        )
        reached = (
            found["bytes"] <= LARGEST
            and found["first_paint_seconds"] < LONGEST_PAINT
            and min(rates.values()) >= FEWEST_FRAMES
        )
        if not reached:
            print(
                f"    wanted: {LARGEST / 1e6:g} MB, {LONGEST_PAINT:g} s, {FEWEST_FRAMES} frames "
                "a second"
            )


if __name__ == "__main__":
    main()
