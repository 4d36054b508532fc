"""The marked regions of README.md: from `results/` and from the examples."""

import re
from collections.abc import Iterator

from pages.common import RESULTS, ROOT, fence, load_result, write_table
from pages.measured import describe_conditioning_cost
from pages.results import ONE_PIECE
from paretocosmos.paper.published import get_paper_row, problem_title

__all__ = ["REGIONS"]


def write_default() -> Iterator[str]:
    """Yield why the default differs from the paper, what it gains and what it costs."""
    fronts = load_result("shapes")["fronts"]
    by_name = {(front["problem"], front["method"]): front for front in fronts}
    ours, plain = (by_name["zdt2", method]["hypervolume"] for method in ("default", "linear"))
    order = min(by_name[problem, "default"]["order"] for problem in ONE_PIECE)
    yield (
        "The default therefore differs from the paper: it pulls the losses to 1/r, so that more weight means a smaller loss and concave fronts are reached; "
        "on tables that trade a gap between groups it is a closed form ([why, and where it loses](docs/decisions/default_method.md)). "
        f"On a concave front (ZDT2), it reaches {ours:.1%} of the exact hypervolume, a weighted sum {plain:.1%}. "
        f"On {len(ONE_PIECE)} analytic fronts, the weight of an objective and minus its loss have a rank correlation of at least {order:.3f}. "
        f"{describe_conditioning_cost(link=False)}"
    )


def write_quick_start() -> Iterator[str]:
    """Yield the code, what it takes and what it prints."""
    record = load_result("demo/run")
    yield from (fence(read_body("quick_start"), "python"), "")
    yield (
        f"This trains once ({record['seconds_training']:.0f} seconds on two CPU cores) and prints the lines below; any other limit works too. "
        "Open `report.html` in the run folder to try trade-offs with a slider ([what it shows](docs/howto/explorer.md))."
    )
    yield from ("", fence(read_output("quick_start")))


def write_table_1() -> Iterator[str]:
    """Yield what the first command prints, and Table 1's row of COSMOS beside ours."""
    cells = load_result("reproduction/table_1")["cells"]
    ours = {
        cell["problem"]: cell["volume"]
        for cell in cells
        if (cell["method"], cell["protocol"]) == ("cosmos", "paper")
    }
    paper = [row["hypervolume"] for row in (get_paper_row(name, "cosmos") for name in ours) if row]
    printed = dict(zip(ours, paper, strict=True))["compas"]
    yield from (
        f"The first prints `HV {ours['compas']['each'][0]:.4f} (the paper's {printed})`.",
        "",
    )
    yield from write_table(
        ["hypervolume of COSMOS, 5 seeds", *map(problem_title, ours)],
        [
            ["the paper", *(f"{volume:.2f}" for volume in paper)],
            ["`preset='paper'`", *(f"{volume['mean']:.3f}" for volume in ours.values())],
        ],
    )


# COSMOS in the reader's own loop, as lines of a diff.
OWN_LOOP = """\
+ from paretocosmos import condition, cosmos_loss, sample_rays
+ model = condition(network, objectives=2, how="input")  # as in the paper; the default reaches every layer
  for x, y in loader:
-     outputs = network(x)
+     ray = sample_rays(1, 2)[0]                          # r ~ Dirichlet(alpha)
+     outputs = model(x, ray)
      losses = torch.stack([loss_a(outputs, y), loss_b(outputs, y)])
-     loss = losses.sum()
+     loss = cosmos_loss(losses, ray, penalty=2.0)        # r·L - λ cos(r, L); in the paper λ is 0.01 to 8"""


def write_own_model() -> Iterator[str]:
    """Yield the code, and what the limits cost."""
    rows = [map(float, line.split()) for line in read_output("own_model").splitlines()[1:]]
    costs = ", ".join(f"{missing:.2f} missing at {spare:.2f} spare" for spare, missing in rows)
    yield from (fence(read_body("own_model"), "python"), "")
    yield (
        f"This trains once, draws the front and finds the choice with the least missing under each limit. On rows that were not used for choosing: {costs}. "
        "The exact front is known here, and these points lie on it ([the script](examples/own_model.py), a few seconds). "
        "If a network has an output for each loss, each loss is called with its own output and target. "
        "For your own loop, `condition(network, objectives=2)` returns the network."
    )


def read_body(example: str) -> str:
    """Return an example without its docstring."""
    source = (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")
    body = source.partition('"""\n\n')[2]
    return re.sub(r"\n\n(?=(?:from|import) )", "\n", body.strip())


def read_output(example: str) -> str:
    """Return what an example printed."""
    return (RESULTS / f"{example}.txt").read_text(encoding="utf-8").rstrip()


REGIONS = {
    "quick_start": write_quick_start,
    "table_1": write_table_1,
    "default": write_default,
    "own_loop": lambda: [fence(OWN_LOOP, "diff")],
    "own_model": write_own_model,
}
