"""A run: one training and its folder."""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack, runtime_checkable

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, DataWarning, RunError
from paretocosmos.evaluation.check import Check, check_point
from paretocosmos.evaluation.choose import Choice, choose_point, evaluate_choice
from paretocosmos.evaluation.samples import NO_CACHE, OutputCache
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.io.files import user_path
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.io.progress import status
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.pareto.selection import Criteria, CriteriaOptions
from paretocosmos.problems import Problem, hash_answers
from paretocosmos.problems.tables import Answer, Grouping, Table, TabularProblem, add_group
from paretocosmos.runs.record import check_objectives, rebuild_problem

if TYPE_CHECKING:
    import pandas as pd

    from paretocosmos.explorer import Page

# Here and not in the explorer, since the folder's reader must not import the page's writer.
PAGE = "report.html"
"""Name of the page in a run folder."""

# Rows that go through a network at once: few enough for a processor's cache, which more than halves
# the time, and many on a GPU, which has no such cache.
BLOCK, BLOCK_CUDA = 1024, 131_072


@dataclass(frozen=True)
class Run:
    """The result of a training: the model, its fronts, and the folder that holds them.

    Attributes:
        folder: where everything is saved; for an estimator that was not saved, its name.
        record: `run.json`: the resolved configuration, versions, timings and numbers.
        front: the test front at the selected epoch.
        front_val: the validation front at the selected epoch.
        model: ``forward(inputs, ray) -> outputs``, at the selected epoch, in evaluation mode.
        table: the fitted preprocessing of a tabular problem.
        trained_on: the problem, as long as the run that `fit` gave is at hand.
        saved: whether the folder is the caller's own: an estimator has none unless it was saved,
            and that of a model from the zoo is part of the package.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", epochs=2, out=tempfile.mkdtemp() + "/run", report=False)
    >>> len(run.front), run.front.names, run.model.training
    (25, ('first', 'second'), False)
    """

    folder: Path
    record: Mapping[str, Any]
    front: Front
    front_val: Front
    model: nn.Module
    table: Table | None = None
    # not compared: two runs are equal by what their folders hold
    trained_on: Problem | None = field(default=None, repr=False, compare=False)
    saved: bool = True

    def __repr__(self) -> str:
        reached = f"hypervolume {format_number(self.hypervolume)} on {len(self.front)} rays"
        return f"Run({str(self.folder)!r}: {self.record['name']}, {reached})"

    def _repr_html_(self) -> str:
        facts = {
            "problem": self.record["name"],
            "method": self.record["label"],
            "hypervolume": format_number(self.hypervolume),
            "folder": str(self.folder),
            "page": "-" if self.report is None else str(self.report),
        }
        return Grid("Run", list(facts), [list(facts.values())]).html() + self.front._repr_html_()

    def explore(
        self,
        *,
        out: str | Path | None = None,
        data: str | None = None,
        samples: bool = False,
        threshold: float | None = None,
        height: int | None = None,
    ) -> "Page":
        """Write the page on which the trade-off is dragged; a notebook shows it below the cell.

        Args:
            out: where it goes. If `None`: ``report.html`` of the run folder, or of a new temporary
                folder where the run has none of its own.
            data: where the problem's data lies now, if it has moved.
            samples: whether to show a dozen of the data; whoever gets the page then gets these.
            threshold: the probability above which an answer of yes or no is counted as a yes, as a
                choice has it; 0.5 if `None`.
            height: of the frame in a notebook, in pixels.

        Returns:
            The page: its `path`, and `open()` for a browser of its own.
        """
        # imported here: the explorer is above this package, and imports it
        from paretocosmos.explorer import HEIGHT, write_page

        if out is None:
            # a run without a folder of its own must not write into the package or the working
            # folder
            path = (self.folder if self.saved else Path(mkdtemp(prefix="paretocosmos-"))) / PAGE
        else:
            path = user_path(out)
        return write_page(
            [self],
            path,
            data=data,
            samples=samples,
            threshold=threshold,
            height=height or HEIGHT,
        )

    @property
    def report(self) -> Path | None:
        """The page that shows the run, to be opened in a browser, if it was written."""
        page = self.folder / PAGE
        return page if page.exists() else None

    @property
    def _grouping(self) -> Grouping | None:
        stored = self.record["about"].get("grouping")
        return None if stored is None else Grouping.from_dict(stored)

    @property
    def hypervolume(self) -> float:
        """Hypervolume of the test front; NaN for more objectives than it is computed for."""
        # from the record: computing it again takes seconds for many objectives
        reached = self.record["metrics"]["test"]["hypervolume"]
        return math.nan if reached is None else float(reached)

    def _read_ray(self, ray: Rays | None, off_simplex: str = "refuse") -> Tensor:
        """Return the ray ``[J]`` that was asked for, or that of the estimator or frozen run."""
        default = predicts_at(self)
        asked = default.ray if ray is None else ray
        if asked is None:
            raise ConfigurationError("a `ray` is needed, such as `choose(...).ray`, found none")
        names = self.front.names
        rays = as_rays(asked, self.front.objectives, names=names, off_simplex=off_simplex)
        if len(rays) > 1:
            raise ConfigurationError(f"`ray` must be one, found {len(rays)}: call it once for each")
        if default.frozen and not torch.allclose(rays[0], torch.tensor(default.ray), atol=1e-6):
            raise ConfigurationError(
                f"this run is frozen at {list(default.ray or ())}: leave `ray` out"
            )
        return rays[0]

    def predict(
        self, rows: "pd.DataFrame", *, ray: Rays | None = None, off_simplex: str = "refuse"
    ) -> Array:
        """Return predictions for rows of a table, at one preference.

        Args:
            rows: a DataFrame with the columns the run was trained on; others are ignored.
            ray: the preference, one entry per objective, summing to 1; or weights by name, as
                ``{"accuracy": 0.7, "tpr_gap": 0.3}``; by default that of the estimator that the
                run comes from, or at which it is frozen.
            off_simplex: ``"refuse"`` a ray that does not, or ``"normalise"`` it and warn.

        Returns:
            The probability of the positive class, one per row; of several classes that of each,
            ``[rows, classes]``; or the number.
        """
        if self.table is None:
            raise ConfigurationError(
                "`predict` is for tabular problems; call `run.model(inputs, ray)` for this one"
            )
        asked = self._read_ray(ray, off_simplex)
        # its device and precision are those that inputs need
        parameter = next(self.model.parameters())
        inputs = torch.from_numpy(self.table.transform(add_group(rows, self.table, self._grouping)))
        answer, chosen = Answer.from_about(self.record["about"]), asked.to(parameter)
        with torch.inference_mode():
            blocks = inputs.split(BLOCK if parameter.device.type == "cpu" else BLOCK_CUDA)
            # double, since NumPy has no bfloat16
            read = [
                answer.read(self.model(block.to(parameter), chosen)).double() for block in blocks
            ]
        predictions: Array = torch.cat(read).cpu().numpy()
        return predictions

    def choose(
        self,
        *,
        threshold: float | None = None,
        evaluations: int = 20,
        problem: Problem | None = None,
        **criteria: Unpack[CriteriaOptions],
    ) -> Choice:
        """Return the point that meets the criteria best on the validation data.

        Where a bound excludes something better, new rays are evaluated (a bisection
        along the front) until it is met: "the smallest loss whose gap is at most 2 %".

        Args:
            threshold: the probability above which a decision between two classes is positive, for
                everybody. `None` is 0.5, or another where no ray keeps the bounds at 0.5 but by
                giving all the same answer, or where it gains more of what is maximised than chance
                explains.
            evaluations: rays to evaluate at most.
            problem: what the run was trained on, where its folder cannot say.
            criteria: bounds and what is best among the points that keep them, by the keywords of
                `pareto.selection.Criteria`: `max`, `min`, `minimize`, `maximize`, `knee`,
                `weights`, `near`, `allow_constant` and `confidence`, such as 0.9. Without a
                confidence, bounds hold on the validation data, and with `fairness_adjustment` on
                it and the training data together, too, cross-fitted.

        Returns:
            The ray, and the point on val and on test, with 95 % intervals. Refused where no ray
            keeps the bounds, saying how close one comes, or which bound the rows can support.

        >>> import tempfile
        >>> from paretocosmos import fit
        >>> run = fit("toy_convex", out=tempfile.mkdtemp() + "/run")
        >>> run.choose(max={"second": 0.42}).val["second"] <= 0.42
        True
        """
        return choose_from(
            self,
            Criteria.from_options(criteria),
            threshold=threshold,
            evaluations=evaluations,
            problem=problem,
        )

    def check(
        self,
        rows: "pd.DataFrame",
        *,
        ray: Rays | None = None,
        threshold: float | None = None,
        max: Mapping[str, float] | None = None,  # noqa: A002
        min: Mapping[str, float] | None = None,  # noqa: A002
        confidence: float | None = None,
        rows_name: str = "the new rows",
    ) -> Check:
        """Check whether bounds are kept on new rows with known labels and groups.

        Args:
            rows: a DataFrame with the columns the run was trained on, the target and the sensitive
                columns.
            ray: the preference, such as `choice.ray`; by default that of the estimator that the
                run comes from.
            threshold: the probability above which a decision is positive, such as
                `choice.threshold`; by default the estimator's, or 0.5.
            max: upper bounds, by the name of an objective or a metric.
            min: lower bounds.
            confidence: with which the bounds must be kept, such as 0.9; `None`: they must be kept
                on these rows.
            rows_name: what messages call the rows.

        >>> from paretocosmos import load
        >>> from paretocosmos.problems.tables import read_embedded
        >>> run, rows = load("compas"), read_embedded("compas").tail(1000)
        >>> check = run.check(rows, ray=[0.0, 1.0], max={"demographic_parity": 0.1})
        >>> check.kept, check.bounds[0].value < 0.1
        (True, True)
        """
        # imported here: what reads runs imports this module
        from paretocosmos.runs.load import problem_from_rows

        options: CriteriaOptions = {"max": max, "min": min, "confidence": confidence}
        if not (max or min):
            raise ConfigurationError(
                "`check` needs a bound: add one, such as max={'tpr_gap': 0.02}"
            )
        criteria, default = Criteria.from_options(options), predicts_at(self)
        criteria.check(self.front_val)
        return check_point(
            self.model,
            problem_from_rows(self, rows),
            tuple(self._read_ray(ray).tolist()),
            criteria,
            threshold=default.threshold if threshold is None else threshold,
            rows_name=rows_name,
        )

    def problem(self, *, data: str | None = None) -> Problem:
        """The problem this run was trained on, loaded where it is not at hand.

        Args:
            data: where its data lies now, if it has moved.
        """
        # the data at hand cannot have changed, so nothing has to be read or compared
        if data is None and self.trained_on is not None:
            return self.trained_on
        saved = self.record["problem"]
        # only estimators record it of such a problem; their rows were arrays in memory
        if saved is None and "predicts_at" in self.record:
            raise RunError(
                f"`{self.folder}` comes from an estimator, and neither a folder nor a pickle "
                "contains its rows: use the fitted estimator instead"
            )
        if saved is None:
            raise RunError(
                f"`{self.folder}` was trained on a problem built in Python, which its folder "
                "cannot rebuild: pass the problem, as in `run.choose(..., problem=problem)` and "
                "`evaluate(run.model, problem)`"
            )
        settings = dict(saved["settings"])
        if data is not None:
            # the location is no part of what the run was trained on
            settings["data"] = data
        # a problem by its name is loaded from its files again, which may be others by now
        problem = rebuild_problem(self.folder, self.record, saved["name"], settings)
        if isinstance(problem, TabularProblem) and (
            not problem.table.agrees_with(self.table)
            or hash_answers(problem) != self.record.get("answers")
        ):
            raise RunError(
                f"the data of `{self.folder}` is not what it was trained on: its rows, columns, "
                "categories or means differ; give the same file as `data`, or use `run.predict` "
                "for new rows"
            )
        # images are not kept with a run, so their checksum stands for them
        recorded, current = (a.get("sha256") for a in (self.record["about"], problem.about))
        if recorded != current:
            raise RunError(
                f"the images found are not those `{self.folder}` was trained on (sha256 {current}, "
                f"there {recorded}): give the same files as `data`"
            )
        reference = self.record["training"]["reference"]
        if reference is None:
            return problem
        # the caller of `fit` set another reference point, by which the fronts were measured
        return dataclasses.replace(problem, reference=tuple(reference))


def choose_from(
    run: Run,
    criteria: Criteria,
    *,
    threshold: float | None = None,
    evaluations: int = 20,
    problem: Problem | None = None,
    cache: OutputCache = NO_CACHE,
) -> Choice:
    """Choose a point as `Run.choose` does, with a cache for repeated choices.

    Args:
        run: whose point is chosen.
        criteria: what is asked.
        threshold: as in `Run.choose`.
        evaluations: as in `Run.choose`.
        problem: as in `Run.choose`.
        cache: outputs of the run's network, which one choice leaves there for the next.
    """
    # first, since a misspelt name must not cost the time of loading the data
    criteria.check(run.front_val)
    if evaluations < 2:
        raise ConfigurationError(
            "`evaluations` must be at least 2, for the chosen ray on val and on test; found "
            f"{evaluations}"
        )
    if problem is not None:
        check_objectives(run.folder, run.record, problem)
    with status("choosing"):
        chosen = choose_point(
            run.model,
            run.problem() if problem is None else problem,
            run.front_val,
            criteria,
            fixed=run.record["fixed_rays"] is not None,
            # one is kept for the chosen ray on the test rows
            evaluations=evaluations - 1,
            threshold=threshold,
            cache=cache,
        )
        return evaluate_choice(run.model, chosen, cache)


@runtime_checkable
class SupportsToRun(Protocol):
    """Something fitted that gives a run, such as an estimator."""

    def to_run(self) -> Run:
        """The run: its network, its fronts, and what it predicts at."""


def to_run(given: Any) -> Run:
    """Return a run, that of an estimator, or that of the estimator a pipeline ends in.

    Args:
        given: any of them, fitted. What a pipeline does before its last step is no part of a run,
            which is warned of.
    """
    if isinstance(given, Run):
        return given
    # by its attribute: scikit-learn is optional, and need not be imported
    steps = getattr(given, "steps", None) or [("", given)]
    name, last = steps[-1]
    if not isinstance(last, SupportsToRun):
        raise ConfigurationError(
            "this needs a run, a `ParetoClassifier` or `ParetoRegressor`, or a pipeline that ends "
            f"in one, found {type(last).__name__}: give what `fit` or `load_run` returned"
        )
    run = last.to_run()
    if len(steps) > 1:
        warnings.warn(
            f"the steps before `{name}` are not included: pass the rows that "
            "`pipeline[:-1].transform(rows)` returns",
            DataWarning,
            stacklevel=3,
        )
    return run


class PredictsAt(NamedTuple):
    """The preference and the threshold of predictions for which none was asked.

    Attributes:
        ray: the preference of the estimator whose run it is, or of a frozen run; `None` for any
            other run.
        threshold: the probability above which a decision between two classes is positive.
        frozen: whether it answers at no other preference; then its fronts are of that threshold.
    """

    ray: tuple[float, ...] | None
    threshold: float
    frozen: bool = False


def predicts_at(run: Run) -> PredictsAt:
    """Return the preference and the threshold of the estimator that a run comes from."""
    recorded = run.record.get("predicts_at")
    if recorded is None:
        return PredictsAt(None, MIDDLE)
    ray = tuple(recorded["ray"])
    return PredictsAt(ray, recorded["threshold"], recorded.get("frozen", False))
