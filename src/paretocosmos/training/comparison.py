"""Result of a comparison: its runs, a row of numbers per method, and one file with all of them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import FrontWarning
from paretocosmos.io.files import write_json
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import MEANINGS, coverage, front_report
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.runs.run import PAGE, Run

if TYPE_CHECKING:
    from paretocosmos.explorer import Page


# Judged before the hypervolume, which a front without order or range can win.
MEASURES = (
    "monotonicity",
    "range_covered",
    "igd_plus",
    "expected_utility",
    "hypervolume_in_separate_box",
)


@dataclass(frozen=True)
class Comparison:
    """What several methods reached on one problem.

    Attributes:
        folder: where the runs are, a folder for each method.
        problem: its name.
        runs: the runs of every method that was trained, one per seed.
        failures: why another was not.
    """

    folder: Path
    problem: str
    runs: Mapping[str, Sequence[Run]]
    failures: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        """A row per method: how good it is before what it costs."""
        rows = self.rows
        beside_separate = "separate" in self.runs
        cells = [_format_row(row, beside_separate=beside_separate) for row in rows]
        explained = {"order": "monotonicity"}
        if beside_separate:
            explained |= {"range": "range_covered", "behind": "igd_plus"}
        notes = [
            *(f"{head}: {MEANINGS[key]}" for head, key in explained.items()),
            *(
                f"{row['method']}: the ideal point, the best value of every objective, has a "
                f"hypervolume of {format_number(row['hypervolume_ideal'])}"
                for row in rows
                if row["method"] in self.alone
            ),
            "dominated by: the share of a method's points that another method dominates",
            *(f"failed: {method}, {why}" for method, why in self.failures.items()),
            f"{self.folder}",
        ]
        if self.runs:
            # all fronts of a comparison share the reference point of the problem
            reference = ", ".join(
                f"{n:g}" for n in next(iter(self.runs.values()))[0].front.reference
            )
            text = f"hypervolume: on test, with reference point ({reference}); larger is better"
            notes.insert(len(explained), text)
        heads = list(cells[0]) if cells else ["method"]
        return Grid(f"Methods on {self.problem}", heads, [[*c.values()] for c in cells], notes)

    def explore(self, *, samples: bool = False, height: int | None = None) -> "Page":
        """Write the page of all runs, ``report.html``; a notebook shows it below the cell.

        Args:
            samples: whether to show a dozen of the data.
            height: of the frame in a notebook, in pixels.
        """
        # here, so that only callers who want a page pay for its import
        from paretocosmos.explorer import HEIGHT, write_page

        runs = [run for some in self.runs.values() for run in some]
        return write_page(runs, self.folder / PAGE, samples=samples, height=height or HEIGHT)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per method, numbers being means over seeds; see `to_dict`."""
        return [self._row(method, runs) for method, runs in self.runs.items()]

    @property
    def alone(self) -> list[str]:
        """The methods that train a network for every objective by itself."""
        return [
            method
            for method, runs in self.runs.items()
            if has_only_corners(runs[0].record["fixed_rays"])
        ]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, without the fronts: what `compare --json` prints.

        In a row, `monotonicity` is the smallest over objectives, and `range_covered`, `igd_plus`
        and `hypervolume_in_separate_box` are there beside the method `separate`
        (`pareto.metrics.MEANINGS` says what each measure means). `hypervolume_std` is `None` for
        one seed, `hypervolume_ideal` is that of the best values of all points, `dominated_share`
        counts points that the method's own dominate, `seconds` are of training, all of it,
        `infeasible_share` is there for EPO, and `dominated_by` has the share of the method's
        points that some point of another's dominates, where not 0, the largest first.
        """
        seeds = next(iter(self.runs.values()), [])
        return {
            "folder": str(self.folder),
            "problem": self.problem,
            "protocol": seeds[0].record["protocol"] if seeds else None,
            "seeds": [run.record["seed"] for run in seeds],
            "rows": self.rows,
            "failures": dict(self.failures),
        }

    def save(self) -> None:
        """Write ``compare.json``: the numbers and every front, in a folder that may be moved."""
        # without the folder, which would be wrong once it was moved
        numbers = {key: value for key, value in self.to_dict().items() if key != "folder"}
        fronts = {m: [run.front.to_dict() for run in runs] for m, runs in self.runs.items()}
        write_json(self.folder / "compare.json", numbers | {"fronts": fronts})

    def _row(self, method: str, runs: Sequence[Run]) -> dict[str, Any]:
        def mean(key: str) -> float | None:
            values = [run.record["metrics"]["test"][key] for run in runs]
            # a mean over the seeds that have a value would flatter the method
            return None if None in values else fmean(values)

        reached = [run.record["metrics"]["test"]["hypervolume"] for run in runs]
        # seed by seed: the runs of one seed have the same split of the data
        shares = {
            rival: fmean(coverage(a.front, b.front) for a, b in zip(runs, theirs, strict=True))
            for rival, theirs in self.runs.items()
            if rival != method
        }
        # the largest first, so that a reader sees the strongest rival
        worst = sorted(shares.items(), key=lambda item: -item[1])
        # of seeds that trained as one stack, each took its share of the time
        seconds = [r.record["seconds_training"] / r.record["seeds_together"] for r in runs]
        noted = [network for run in runs for network in run.record["networks"]]
        unsolved = [n["infeasible_share"] for n in noted if "infeasible_share" in n]
        return {
            "method": method,
            **self._measures(runs),
            "hypervolume": mean("hypervolume"),
            "hypervolume_std": stdev(reached) if len(reached) > 1 and None not in reached else None,
            "hypervolume_ideal": mean("hypervolume_ideal"),
            "span": mean("span"),
            "dominated_share": mean("dominated_share"),
            "points": len(runs[0].front),  # the same for every seed
            "networks": len(runs[0].record["networks"]),
            "parameters": runs[0].record["parameters"],
            "seconds": fmean(seconds),
            **({"infeasible_share": fmean(unsolved)} if unsolved else {}),
            "dominated_by": {rival: share for rival, share in worst if share > 0},
        }

    def _measures(self, runs: Sequence[Run]) -> dict[str, float | None]:
        """Compute order, range and distance to the networks of `separate`, means over seeds."""
        separate: list[Front | None] = [run.front for run in self.runs.get("separate", ())]
        with warnings.catch_warnings():
            # whoever trained was told that no point counts
            warnings.simplefilter("ignore", FrontWarning)
            reports = [
                front_report(run.front, reference).to_dict()["numbers"]
                for run, reference in zip(runs, separate or [None] * len(runs), strict=True)
            ]
        numbers = {name: [report[name] for report in reports] for name in reports[0]}
        return {
            name: None if None in numbers[name] else fmean(numbers[name])
            for name in MEASURES
            if name in numbers
        }


def _format_row(row: Mapping[str, Any], *, beside_separate: bool) -> dict[str, str]:
    """Return the cells of a method by their heads."""

    def format_measure(name: str, spec: str) -> str:
        # one point has no order and no range
        return "-" if row["points"] == 1 or row.get(name) is None else format(row[name], spec)

    cells = {"method": row["method"], "order": format_measure("monotonicity", ".2f")}
    if beside_separate:
        cells["range"] = format_measure("range_covered", ".0%")
        cells["behind"] = format_measure("igd_plus", ".3f")
    std = row["hypervolume_std"]
    spread = "" if std is None else f" ± {format_number(std)}"
    cells["hypervolume"] = f"{format_number(row['hypervolume'])}{spread}"
    # all networks of a method have the same size
    size, count = row["parameters"] // row["networks"], row["networks"]
    cells["parameters"] = f"{count} x {size:,}" if count > 1 else f"{size:,}"
    cells["time"] = f"{row['seconds']:.1f} s"
    shares = []
    for rival, share in row["dominated_by"].items():
        # small shares do not round to 0, nor large ones to 100
        text = "<1%" if share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"
        shares.append(f"{rival} {text}")
    return cells | {"dominated by": ", ".join(shares) or "-"}
