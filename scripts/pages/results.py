"""Written parts of docs/results.md, and of its pages on quality and intervals."""

from collections.abc import Iterator
from functools import cache
from statistics import fmean
from typing import Any

from pages.common import describe_source, load_result, write_table
from pages.fairness import describe_difference

__all__ = ["REGIONS", "average", "group_fronts"]

PROBLEMS = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "multi_mnist": "Multi-MNIST",
    "multi_fashion": "Multi-Fashion",
    "fashion_and_mnist": "Fashion+MNIST",
}
PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
ARMS = {
    "separate": "nine separate networks",
    "default": "one network, the default of 0.2",
    "paper": "one network, COSMOS as published",
}
GOALS = {"published": "", "text": ", a harder draw"}
SHAPES = {
    "default": "default",
    "linear": "`linear`",
    "smooth_tchebycheff": "`smooth_tchebycheff`",
    "cosmos, printed": "COSMOS as published",
}
KNOWN = {
    "toy_convex": "convex (`toy_convex`)",
    "zdt1": "convex (ZDT1)",
    "toy_concave": "concave (`toy_concave`)",
    "vlmop2": "concave (VLMOP2)",
    "zdt2": "concave (ZDT2)",
    "dtlz2": "concave, 3 objectives (DTLZ2)",
    "zdt3": "in pieces (ZDT3)",
    "dtlz7": "in pieces, 3 objectives (DTLZ7)",
}
# Analytic problems whose front is in one piece.
ONE_PIECE = ("toy_convex", "toy_concave", "zdt1", "zdt2", "dtlz2", "vlmop2")
# The least coverage of 95 % intervals that we accept.
LEAST_COVERAGE = 0.935
KINDS = {
    "fixed": "a point given before",
    "chosen, val": "a chosen point, on the rows it was chosen on",
    "chosen, test": "a chosen point, on new rows",
}


@cache
def _get_shapes() -> dict[tuple[str, str], Any]:
    return {(one["problem"], one["method"]): one for one in load_result("shapes")["fronts"]}


def write_shapes() -> Iterator[str]:
    """Yield the share of the exact hypervolume, and the order, by shape of the front."""
    fronts = _get_shapes()
    yield from write_table(
        ["the exact front", *SHAPES.values()],
        (
            [
                title,
                *(
                    f"{one['hypervolume']:.1%} ({one['order']:.2f})".replace("-", "−")
                    for one in (fronts[problem, method] for method in SHAPES)
                ),
            ]
            for problem, title in KNOWN.items()
        ),
    )
    yield from ("", describe_source("shapes", "One seed"))


def write_published_sets() -> Iterator[str]:
    """Yield our hypervolumes at (1, ..., 1) beside those that LibMOON's authors published."""
    names = ["COSMOS", "Tchebycheff", "smooth Tchebycheff", "EPO", "weighted sum"]
    yield from write_table(
        ["problem", "exact front", "default", *(f"LibMOON, {name}" for name in names)],
        (
            [
                row["problem"].upper(),
                *(
                    "–" if value is None else f"{value:.3f}"
                    for value in (
                        row["ours"].get("exact"),
                        row["ours"]["default"],
                        *map(row["published"].get, names),
                    )
                ),
            ]
            for row in load_result("shapes")["published"]
        ),
    )
    yield from ("", describe_source("shapes", "One seed"))


def write_shapes_in_words() -> Iterator[str]:
    """Yield what the table of shapes says for a choice of the method."""
    fronts = _get_shapes()
    volumes = {key: one["hypervolume"] for key, one in fronts.items()}
    near = [
        problem
        for problem in KNOWN
        if volumes[problem, "default"] > max(volumes[problem, m] for m in SHAPES) - 0.01
    ]
    order = min(fronts[problem, "default"]["order"] for problem in KNOWN if problem != "zdt3")
    yield (
        f"On {len(KNOWN)} [fronts known in closed form](results/quality.md#fronts-of-known-shape), the default has the largest hypervolume "
        f"of the methods above, or is within one point of it, on {'all' if len(near) == len(KNOWN) else len(near)}; `linear` reaches {volumes['zdt2', 'linear']:.1%} of a "
        f"concave one (ZDT2). On all but ZDT3, a front in five pieces, the default's weights and losses have a rank correlation of at least {order:.2f}; "
        f"there it is {fronts['zdt3', 'default']['order']:.2f}, with {fronts['zdt3', 'default']['hypervolume']:.1%} of the hypervolume, and a finding names the end that is missing."
    )


def group_fronts() -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Return the fronts of `benchmarks.fronts` by problem and set-up, then by arm."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for part in load_result("fronts")["parts"]:
        for row in part["fronts"]:
            arms = found.setdefault((row["problem"], row["set_up"]), {})
            arms.setdefault(row["arm"], []).append(row)
    return found


def average(runs: list[dict[str, Any]], name: str) -> float:
    """Return the mean over runs of one number."""
    return fmean(run[name] for run in runs)


def write_fronts() -> Iterator[str]:
    """Yield hypervolume and order of three ways to get a front, on the six sets."""

    def describe(runs: list[dict[str, Any]]) -> str:
        if not runs:
            return "–"
        order = f"{average(runs, 'monotonicity'):.2f}".replace("-", "−")
        return f"{average(runs, 'hypervolume'):.3f} ({order})"

    yield from write_table(
        ["test data", *ARMS.values()],
        (
            [
                f"{PROBLEMS[problem]}{GOALS.get(set_up, '')}",
                *(describe(by.get(a, [])) for a in ARMS),
            ]
            for (problem, set_up), by in group_fronts().items()
        ),
    )
    yield ""
    for images, note in ((True, "Pairs of images, five seeds"), (False, "Tables, five seeds")):
        parts = [part for part in load_result("fronts")["parts"] if (part["fronts"][0]["problem"] in PAIRS) is images]  # fmt: skip
        versions = " and ".join(dict.fromkeys(part["version"] for part in parts))
        newest = max(parts, key=lambda part: part["written"]) | {"version": versions}
        yield from (describe_source("fronts", note, content=newest), "")


def write_ingredients() -> Iterator[str]:
    """Yield what removing each ingredient of version 0.2's default costs."""
    found = load_result("study_fronts")
    (whole,) = (
        c["hypervolume"] for c in found["cells"] if c["method"] == "linear" and not c["settings"]
    )
    losses = [
        (cell["hypervolume"] - whole, ", ".join(f"`{k}={v}`" for k, v in cell["settings"].items()))
        for cell in found["cells"]
        if cell["settings"]
    ]
    listed = [f"{name} {loss:+.3f}" for loss, name in sorted(losses) if abs(loss) >= 0.01]
    rest = max(abs(loss) for loss, _ in losses if abs(loss) < 0.01)
    yield (
        f"What single settings change of the hypervolume {whole:.3f} on Multi-Fashion: {', '.join(listed)}; the other "
        f"{len(losses) - len(listed)} at most {rest:.3f}.".replace(" -", " −")
    )
    yield from ("", describe_source("study_fronts", "Five seeds, the default of 0.2"))


def write_intervals() -> Iterator[str]:
    """Yield coverage and width of intervals, and what a confidence buys."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for cell in load_result("intervals")["cells"]:
        cells.setdefault(cell["kind"], []).append(cell)
    yield from write_table(
        [
            "95 % interval of",
            "kinds of tables",
            f"cover under {LEAST_COVERAGE:.1%}",
            "least coverage",
            "mean width",
        ],
        (
            [
                title,
                len(cells[kind]),
                sum(cell["coverage"] < LEAST_COVERAGE for cell in cells[kind]),
                f"{min(cell['coverage'] for cell in cells[kind]):.1%}",
                f"{fmean(cell['ratio'] for cell in cells[kind]):.2f} times an oracle's",
            ]
            for kind, title in KINDS.items()
        ),
    )
    sure = cells["confidence"]
    found = [[c["found"] for c in sure if c["gap"] == gap] for gap in (0.02, 0.1)]
    yield ""
    yield (
        f"With `confidence=0.9`, the chosen point breaks its bound in at most {max(c['broken'] for c in sure):.1%} of the tables; without, in up to "
        f"{max(c['broken_without'] for c in sure):.1%}. The price: with 300 rows and few positives in a group, as few as {min(found[0]):.1%} of the tables "
        f"support a bound of 0.02, and {min(found[1]):.1%} one of 0.1."
    )
    yield from ("", describe_source("intervals", "2,000 simulated tables of each kind"))


def write_overview() -> Iterator[str]:
    """Yield one number for each question."""
    fronts = _get_shapes()
    speed, quantiles = load_result("bench_tabular"), load_result("quantiles")["mean"]
    (fashion,) = (
        by for key, by in group_fronts().items() if key == ("fashion_and_mnist", "published")
    )
    ours, nine = (average(fashion[arm], "hypervolume") for arm in ("default", "separate"))
    answers = {
        "Is one network as good as many?": (
            f"hypervolume {ours:.2f} (default of 0.2) instead of {nine:.2f} for nine networks on Fashion+MNIST; {fronts['zdt2', 'default']['hypervolume']:.1%} of the exact front of ZDT2",
            "[quality](results/quality.md)",
        ),
        "What does a fairness limit cost?": (
            describe_difference(),
            "[fairness](results/fairness.md)",
        ),
        "How fast is it?": (
            f"a training on Adult is {speed['ratio']['training']:.1f} times as fast as a textbook loop",
            "[speed](results/speed.md)",
        ),
        "What else can be traded?": (
            f"all quantiles in one network: coverage is {100 * quantiles['one']['coverage']:.1f} points off, that of nine networks {100 * quantiles['separate']['coverage']:.1f}",
            "[applications](results/applications.md)",
        ),
    }  # fmt: skip
    yield from write_table(
        ["question", "answer", "page"],
        ([question, *answer] for question, answer in answers.items()),
    )


REGIONS = {
    "overview": write_overview,
    "shapes": write_shapes,
    "published_sets": write_published_sets,
    "shapes_in_words": write_shapes_in_words,
    "fronts": write_fronts,
    "ingredients": write_ingredients,
    "intervals": write_intervals,
}
