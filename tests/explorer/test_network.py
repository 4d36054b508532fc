"""The network that travels in a page, computed by a browser, against PyTorch."""

import dataclasses
import json
import re
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pandas as pd
import pytest
import torch

from paretocosmos import fit, load_problem
from paretocosmos.evaluation import compute_gap_interval, compute_share_interval
from paretocosmos.explorer import build_page_model, write_page
from paretocosmos.export import export
from paretocosmos.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.DataWarning")

SCRIPT = "".join(
    files("paretocosmos.explorer").joinpath("page", name).read_text(encoding="utf-8")
    for name in ("logic.js", "network.js")
)
RAYS = {2: [[1.0, 0.0], [0.63, 0.37], [0.0, 1.0]], 3: [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]}
COUNT = 1000
Numbers = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """People with missing numbers and categories."""
    draw = np.random.default_rng(0)
    age = draw.integers(18, 80, COUNT).astype(float)
    people = pd.DataFrame(
        {
            "age": np.where(draw.random(COUNT) < 0.1, np.nan, age),
            "wage": draw.normal(50_000, 9_000, COUNT).round(),
            "work": draw.choice(["State", "Private", "Other"], COUNT),
            "sex": draw.choice(["f", "m", "x"], COUNT),
        }
    )
    people.loc[draw.random(COUNT) < 0.1, "work"] = None
    score = people["age"].fillna(40) / 20 + people["wage"] / 9_000 + draw.normal(size=COUNT)
    pay = pd.cut(score, [-np.inf, 7, 8, np.inf], labels=["low", "middle", "high"]).astype(str)
    return people.assign(score=score, rich=score > 8, pay=pay)


@pytest.fixture(scope="module")
def train(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Train for an epoch, and move every number of the network, so that none is without effect."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "people.csv"
    frame.to_csv(path, index=False)

    def trained(target: str, *, sensitive: str = "", **options: Any) -> Run:
        others = {"score", "rich", "pay"} - {target}
        settings = {"target": target, "drop": ",".join(sorted(others))}
        if sensitive:
            settings["sensitive"] = sensitive
        extra = options.pop("settings", {})
        out = folder / f"run {len(list(folder.iterdir()))}"
        run: Run = fit(
            str(path), settings=settings | extra, epochs=1, out=out, report=False, **options
        )
        torch.manual_seed(0)
        with torch.no_grad():
            for numbers in run.model.state_dict().values():
                numbers += 0.1 * torch.randn_like(numbers)
        return run

    return trained


def compute_in_browser(chromium: Any, run: Run, rows: Numbers) -> list[Any]:
    """Return what the page's script predicts for all rows at every ray."""
    text = write_page([run], run.folder / "page.html").path.read_text(encoding="utf-8")
    content = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    cells = rows.T
    data = {key: content[key] for key in ("columns", "answer")}
    data["network"] = content["runs"][0]["network"]
    data["cells"] = [[None if np.isnan(cell) else cell for cell in column] for column in cells]
    page = chromium.new_page()
    found: list[Any] = page.evaluate(
        """([script, data, rays, count]) => {
          const build = new Function(`${script}; return buildNetwork;`)();
          const network = build(data.network, data.columns, data.answer);
          const cells = data.cells.map((column) => column.map((cell) => cell ?? NaN));
          const features = network.encode(cells, count);
          return rays.map((ray) => {
            const outputs = network.run(features, count, ray);
            return Array.from({ length: count }, (_, row) => network.read(outputs, row, ray));
          });
        }""",
        [SCRIPT, data, RAYS[run.front.objectives], len(rows)],
    )
    page.close()
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"target": "rich", "sensitive": "sex"},
        {"target": "rich", "sensitive": "sex", "preset": "paper"},
        {"target": "score", "settings": {"task": "number"}},
        {"target": "pay", "settings": {"task": "classes"}},
        {"target": "rich", "sensitive": "sex", "conditioning": "film", "backbone": "mlp"},
    ],
    ids=["adjusted", "concat", "number", "classes", "film"],
)
def test_a_page_predicts_what_onnx_runtime_predicts(
    chromium: Any, train: Callable[..., Run], frame: pd.DataFrame, options: dict[str, Any]
) -> None:
    run = train(**options)
    people = pd.concat([frame.sample(frac=1, random_state=seed) for seed in range(3)])
    people["wage"] += np.arange(len(people)) % 997
    people.loc[::50, "work"] = "Elsewhere"  # a category that nobody had
    with warnings.catch_warnings(action="ignore"):
        rows = run.table.encode(people).astype(np.float32)
    found = compute_in_browser(chromium, run, rows.astype(float))
    session = onnxruntime.InferenceSession(str(export(run).path))
    scale = run.record["about"].get("answer", {}).get("scale", 1.0)
    for ray, predicted in zip(RAYS[run.front.objectives], found, strict=True):
        asked = {"x": rows, "preference": np.array([ray], np.float32)}
        wanted = session.run(None, asked)[0]
        computed = np.array(predicted).reshape(wanted.shape)
        np.testing.assert_allclose(computed, wanted, rtol=0, atol=1e-4 * scale)
        assert np.ptp(wanted) > 0.1 * scale  # rows differ
        if options["target"] == "rich":
            clear = np.abs(wanted - 0.5) > 1e-4
            np.testing.assert_array_equal((computed > 0.5)[clear], (wanted > 0.5)[clear])
            assert clear.mean() > 0.99


def read_weight(text: str) -> float:
    return float(text.split("more than ")[1].split("\u00a0%")[0]) / 100


def test_a_case_of_ones_own(
    show: Callable[..., Any], train: Callable[..., Run], frame: pd.DataFrame
) -> None:
    run = train("rich", sensitive="sex")
    shown = show(build_page_model([run]))
    fields = shown.page.locator("#case-form input, #case-form select")
    assert shown.page.locator("#case-form label").all_text_contents()[:2] == ["age", "wage"]
    assert run.table
    assert float(fields.nth(0).input_value()) == run.table.numeric["age"]  # the median
    assert fields.nth(2).evaluate("it => it.selectedOptions[0].text") in set(frame["work"])
    assert "does not read sex" in shown.text("#case-text")
    fields.nth(0).fill("")  # missing
    fields.nth(2).select_option(label="any other")
    case = pd.DataFrame({"age": [np.nan], "work": ["Elsewhere"]})

    def predict(weight: float) -> float:
        with warnings.catch_warnings(action="ignore"):
            return float(run.predict(case, ray=[weight, 1 - weight])[0])

    flips = 0
    for wage in range(20_000, 90_000, 5_000):
        fields.nth(1).fill(str(wage))
        shown.settle()
        case["wage"] = float(wage)
        wanted = 100 * predict(shown.ray()[0])
        answer = shown.text("#case-answer")
        said, share = answer.split(", since a yes has a probability of ")
        assert said == f"Predicted “True”: {'yes' if wanted > 50 else 'no'}"
        assert float(share.split("%")[0]) == pytest.approx(wanted, abs=0.06)
        said = shown.text("#case-flips")
        assert shown.page.locator(".flips i").count() == said.count("more than")
        if said.count("more than") == 1:
            flips += 1
            weight = read_weight(shown.page.locator("#case-flips").text_content())
            assert (predict(weight - 0.01) > 0.5) != (predict(weight + 0.01) > 0.5)
    assert flips > 0


def count_by_hand(run: Run, rows: pd.DataFrame, ray: Any) -> dict[str, Any]:
    """Return shares and gaps with their intervals, counted in pandas on what PyTorch predicts."""
    with warnings.catch_warnings(action="ignore"):
        chosen = run.predict(rows, ray=ray) > 0.5
    people = pd.DataFrame(
        {"chosen": chosen, "true": rows["rich"].to_numpy(), "sex": rows["sex"].to_numpy()}
    )
    people["wrong"] = people["chosen"] != people["true"]
    kinds = {
        "demographic_parity": (people, "chosen"),
        "tpr_gap": (people[people["true"]], "chosen"),
        "fpr_gap": (people[~people["true"]], "chosen"),
        "accuracy_gap": (people, "wrong"),
    }
    counts: dict[str, Any] = {
        "accuracy": 1 - people["wrong"].mean(),
        "chosen": people["chosen"].mean(),
    }
    for name, (some, what) in kinds.items():
        each = some.groupby("sex")[what].agg(["sum", "sum", "count"]).to_numpy().astype(float)
        rates = each[:, 0] / each[:, 2]
        shares = np.stack([rates, *compute_share_interval(rates, each[:, 2])], axis=-1)
        ends = compute_gap_interval(each[None])
        counts[name] = (shares, np.ptp(rates), np.array(ends))
    return counts


def test_rows_of_ones_own(
    show: Callable[..., Any], train: Callable[..., Run], frame: pd.DataFrame, tmp_path: Path
) -> None:
    run = train("rich", sensitive="sex")
    rows = frame.sample(700, random_state=3)
    rows.loc[rows.index[::50], "work"] = 'Elsewhere, "quoted"\nin two lines'
    path = tmp_path / "my rows.csv"
    rows.drop(columns=["score", "pay"]).to_csv(path, index=False)
    shown = show(build_page_model([run]))
    shown.page.set_input_files("#own-open", path)
    shown.until(lambda: "were counted" in shown.text("#own-note"))
    assert "14 rows have a “work” that the training data do not have" in shown.text("#own-note")
    assert "on your rows" in shown.text("#decision-title")
    for place in (0, 7, 24):
        ray = run.front_val.rays[place]
        shown.page.evaluate(f"location.hash = 'ray={ray[0]},{ray[1]}&set=1&split=own'")
        shown.settle()
        shown.settle()
        assert shown.ray() == pytest.approx(ray, abs=1e-4)
        counts = count_by_hand(run, rows, list(ray))
        cells = shown.page.locator("#own-table tbody td:nth-child(3)").all_text_contents()
        gaps = shown.page.locator("#outcomes .gap").all_text_contents()
        # what is traded leads; wrong answers end with the groups, after those of all
        order = ("tpr_gap", "demographic_parity", "fpr_gap", "accuracy_gap")
        assert read_numbers(cells[0]) == pytest.approx([100 * counts["chosen"]], abs=0.051)
        first = 1
        for name, told in zip(order, gaps, strict=True):
            shares, gap, ends = counts[name]
            first += name == "accuracy_gap"
            for cell, wanted in zip(cells[first:], shares, strict=False):
                assert read_numbers(cell) == pytest.approx(100 * wanted, abs=0.051)
            first += len(shares)
            assert read_numbers(told) == pytest.approx(100 * np.array([gap, *ends]), abs=0.051)
        assert shown.numbers("accuracy")[-1] == pytest.approx(counts["accuracy"], abs=6e-5)
        assert shown.numbers("tpr gap")[-1] == pytest.approx(counts["tpr_gap"][1], abs=6e-5)


def read_numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.\d+", text)]


def test_a_file_that_does_not_fit_is_refused(
    show: Callable[..., Any], train: Callable[..., Run], tmp_path: Path
) -> None:
    run = train("rich", sensitive="sex", preset="paper")
    shown = show(build_page_model([run]))
    before = shown.text("#lead")
    for content, said in {
        "age;wage\n1;2\n": "lacks “work”",
        "1,2,State\n1,2,State\n": "The first line of the file must name the columns",
        "age,wage,work\n": "no rows below its header",
        "age,wage,work\n1,2,3,4\n": "Row 1 of the file has more fields",
        'age,wage,work\n1,2,"State\n': "Line 2 of the file cannot be read",
        "age,wage,work,age\n1,2,State,1\n": "two columns with the name “age”",
    }.items():
        (tmp_path / "rows.csv").write_text(content)
        shown.page.set_input_files("#own-open", tmp_path / "rows.csv")
        shown.until(lambda said=said: said in shown.text("#own-note"))
        assert shown.text("#lead") == before
    # without answers and groups, what remains is who is chosen
    (tmp_path / "rows.csv").write_text("work,wage,age\nState,50000,\nOther,n/a,forty\n")
    shown.page.set_input_files("#own-open", tmp_path / "rows.csv")
    shown.until(lambda: "2 rows of rows.csv were counted" in shown.text("#own-note"))
    for said in ("1 cell of “age” cannot be read", "column “rich”", "column “sex”"):
        assert said in shown.text("#own-note")
    rows = {"age": [np.nan] * 2, "wage": [50_000, np.nan], "work": ["State", "Other"]}
    with warnings.catch_warnings(action="ignore"):
        positive = (run.predict(pd.DataFrame(rows), ray=shown.ray()) > 0.5).mean()
    assert shown.text("#lead") == f"Of 100 rows, {100 * positive:.0f} are predicted “True”."


def test_a_template_names_the_columns_and_can_be_opened(
    show: Callable[..., Any], train: Callable[..., Run], tmp_path: Path
) -> None:
    shown = show(build_page_model([train("rich", sensitive="sex")]))
    shown.page.locator("#case-form input").first.fill("33")
    with shown.page.expect_download() as saved:
        shown.page.get_by_role("button", name="Save a template").click()
    path = tmp_path / "rows.csv"
    saved.value.save_as(path)
    template = pd.read_csv(path)
    assert template.columns.tolist() == ["age", "wage", "work", "rich", "sex"]
    assert template["age"].tolist() == [33]
    shown.page.set_input_files("#own-open", path)
    shown.until(lambda: "1 row of rows.csv was counted" in shown.text("#own-note"))


def test_names_of_columns_are_text(show: Callable[..., Any], train: Callable[..., Run]) -> None:
    model = build_page_model([train("rich", sensitive="sex", preset="paper")])
    name = "<img src=x onerror=alert(1)>"
    columns = [dict(column) for column in model.columns]
    columns[0]["name"] = columns[2]["labels"][0] = name
    shown = show(dataclasses.replace(model, columns=columns))
    labels = shown.page.locator("#case-form label > span").all_text_contents()
    assert labels[0] == name
    assert shown.page.locator("#case-form img").count() == 0


def test_a_page_without_a_network_says_why(
    show: Callable[..., Any], train: Callable[..., Run]
) -> None:
    run = train("rich", sensitive="sex", preset="paper")
    left_out = build_page_model([run], network=False)
    shown = show(left_out)
    assert "does not compute a network that was left out" in shown.text("#case-text")
    assert not shown.page.locator("#case-form").is_visible()
    assert left_out.columns == ()
    assert left_out.runs[0].network is None
    assert "left out" in left_out.runs[0].network_note
    other = train("rich", sensitive="sex", preset="paper", method="pareto_mtl")
    first, second = build_page_model([run, other]).runs
    assert first.network is not None
    assert second.network is None
    assert "`PerRayEnsemble`" in second.network_note


def test_images_have_no_form(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        run = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "run", report=False)
    assert load_problem("toy_convex").name == run.record["name"]
    (view,) = build_page_model([run]).runs
    assert (view.network, view.network_note) == (None, "")
