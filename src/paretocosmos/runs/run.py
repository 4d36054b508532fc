"""A run: one training and its folder."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, DataWarning, ParetoCosmosError, RunError
from paretocosmos.evaluation.choice import Choice, choose
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.pareto.selection import Criteria
from paretocosmos.problems import Problem, load_problem
from paretocosmos.problems.tables.answers import Answer
from paretocosmos.problems.tables.base import TableProblem
from paretocosmos.problems.tables.table import Table
from paretocosmos.registry import Spec
from paretocosmos.runs.provenance import answers_of
from paretocosmos.runs.record import check_objectives, other_objectives
from paretocosmos.types import Outputs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "objective_of"]


@dataclass(frozen=True)
class Run:
    """What a training gave: the model, its fronts, and the folder that holds them.

    Attributes:
        folder: where everything is saved.
        record: `run.json`: the resolved configuration, versions, timings and numbers.
        front: the test front at the selected epoch.
        front_val: the validation front at the selected epoch.
        model: ``forward(inputs, ray) -> outputs``, at the selected epoch, in evaluation mode.
        table: the fitted preprocessing of a tabular problem.
        trained_on: the problem, as long as the run that `fit` gave is at hand.
        signed_by: the fingerprint of the key that its signature was verified with, if it was.
    """

    folder: Path
    record: Mapping[str, Any]
    front: Front
    front_val: Front
    model: nn.Module
    table: Table | None = None
    trained_on: Problem | None = field(default=None, repr=False, compare=False)
    signed_by: str | None = None

    def __repr__(self) -> str:
        reached = f"hypervolume {self.hypervolume:.4f} on {len(self.front)} rays"
        return f"Run({str(self.folder)!r}: {self.record['name']}, {reached})"

    @property
    def hypervolume(self) -> float:
        """Of the test front."""
        return float(self.record["metrics"]["test"]["hypervolume"])

    def predict(self, rows: "pd.DataFrame", *, ray: Rays, off_simplex: str = "refuse") -> Array:
        """What is predicted for rows of a table, at one preference.

        Args:
            rows: a DataFrame with the columns the run was trained on; others are ignored.
            ray: the preference, one entry per objective, summing to 1; or weights by name, as
                ``{"accuracy": 0.7, "tpr_gap": 0.3}``.
            off_simplex: ``"refuse"`` a ray that does not, or ``"normalise"`` it and warn.

        Returns:
            The probability of the positive class, one per row; of several classes that of each,
            ``[rows, classes]``; or the number.
        """
        if self.table is None:
            raise ConfigurationError(
                "`predict` is for tabular problems; call `run.model(inputs, ray)` for this one"
            )
        checked = as_rays(
            ray, self.front.objectives, names=self.front.names, off_simplex=off_simplex
        )
        if len(checked) > 1:
            raise ConfigurationError(
                f"`predict` takes one ray, found {len(checked)}: call it once for each"
            )
        parameter = next(self.model.parameters())
        inputs = torch.from_numpy(self.table.transform(rows)).to(parameter)
        with torch.inference_mode():
            outputs: Outputs = self.model(inputs, checked[0].to(parameter))
            found = Answer.from_about(self.record["about"]).read(outputs)
        return found.double().cpu().numpy().astype(np.float64)

    def choose(
        self,
        *,
        max: Mapping[str, float] | None = None,  # noqa: A002
        min: Mapping[str, float] | None = None,  # noqa: A002
        minimize: str | None = None,
        maximize: str | None = None,
        knee: bool = False,
        weights: Sequence[float] | None = None,
        near: Mapping[str, float] | Sequence[float] | None = None,
        allow_constant: bool = False,
        confidence: float | None = None,
        threshold: float | None = None,
        evaluations: int = 20,
        problem: Problem | None = None,
    ) -> Choice:
        """The point that meets the criteria best on the validation data, beyond the rays held.

        Where a bound excludes something better, new rays are evaluated (a bisection
        along the front) until it is met: "the smallest loss whose gap is at most 2 %".

        Args:
            max: the largest value allowed, by the name of an objective or a metric.
            min: the smallest value allowed, likewise.
            minimize: what is to be small; by default the first objective without a bound.
            maximize: what is to be large, such as ``"accuracy"``.
            knee: where giving way in one objective gains least in the others.
            weights: how much each objective matters (pseudo-weights).
            near: a point to come close to: values by name, or one per objective.
            allow_constant: take a classifier that gives everybody the same answer, too.
            confidence: with which bounds are to hold for new people, such as 0.9: then a bound is
                kept by the upper limit of what is bounded, and the rays of the front are tested
                instead of new ones looked for. `None`: bounds hold on the validation data.
            threshold: the probability above which a decision between two classes is positive, for
                everybody. `None` is 0.5, or another where no ray keeps the bounds at 0.5 but by
                giving all the same answer, or where it gains more of what is maximised than chance
                explains.
            evaluations: rays to evaluate at most.
            problem: what the run was trained on, where its folder cannot say.

        Returns:
            The ray, and the point on val and on test, with 95 % intervals. Refused where no ray
            keeps the bounds, saying how close one comes, or which bound the rows can support.

        >>> import tempfile
        >>> from paretocosmos import fit
        >>> run = fit("toy_convex", epochs=20, out=tempfile.mkdtemp() + "/run")
        >>> run.choose(max={"second": 0.42}).val["second"] <= 0.42
        True
        """
        criteria = Criteria(
            max=max or {},
            min=min or {},
            minimize=minimize,
            maximize=maximize,
            knee=knee,
            weights=weights,
            near=near,
            allow_constant=allow_constant,
            confidence=confidence,
        )
        criteria.check(self.front_val)
        if problem is not None:
            check_objectives(self.folder, self.record, problem)
        return choose(
            self.model,
            self.problem() if problem is None else problem,
            self.front_val,
            criteria,
            fixed=self.record["fixed_rays"] is not None,
            evaluations=evaluations,
            threshold=threshold,
        )

    def problem(self, *, data: str | None = None) -> Problem:
        """The problem this run was trained on, loaded where it is not at hand.

        Args:
            data: where its data lies now, if it has moved.
        """
        if data is None and self.trained_on is not None:
            return self.trained_on
        saved = self.record["problem"]
        if saved is None:
            raise RunError(
                f"`{self.folder}` was trained on a problem built by hand, which its folder cannot "
                "rebuild: hand it on, as in `run.choose(..., problem=problem)` and "
                "`evaluate(run.model, problem)`"
            )
        settings = dict(saved["settings"])
        if data is not None:
            settings["data"] = data
        problem = self._loaded(saved["name"], settings)
        if isinstance(problem, TableProblem) and (
            problem.table != self.table or answers_of(problem) != self.record.get("answers")
        ):
            raise RunError(
                f"the data of `{self.folder}` is not what it was trained on: its rows, columns, "
                "categories or means differ; give the same file as `data`, or use `run.predict` "
                "for new rows"
            ).by({"data": None})
        made, found = (about.get("sha256") for about in (self.record["about"], problem.about))
        if made != found:
            raise RunError(
                f"the images found are not those `{self.folder}` was trained on (sha256 {found}, "
                f"there {made}): give the same files as `data`"
            ).by({"data": None})
        reference = self.record["training"]["reference"]
        if reference is None:
            return problem
        return dataclasses.replace(problem, reference=tuple(reference))

    def _loaded(self, name: str, settings: Mapping[str, Any]) -> Problem:
        """The problem of the record, if it is one that the network can have been trained on."""
        try:
            with warnings.catch_warnings():
                # what was assumed of the data was said when it was trained on
                warnings.simplefilter("ignore", DataWarning)
                problem = load_problem(name, settings=settings)
        except ParetoCosmosError:
            raise
        except (LookupError, OSError, TypeError, ValueError) as error:
            if ":" in name:  # a mistake in code of one's own is best seen as it is
                raise
            raise RunError(
                f"`{self.folder}` was trained on `{name}` with settings that it cannot have "
                f"({one_line(error)}): bring back what the training wrote"
            ) from error
        problem = self._as_trained(problem, name)
        found = {"names": list(problem.names), "input_shape": list(problem.input_shape)}
        for key, value in found.items():
            if value != self.record[key]:
                raise RunError(
                    f"`{self.folder}` was not trained on `{name}` as it is here, whose `{key}` is "
                    f"{value}, there {self.record[key]}: give the same as `data`"
                ).by({"data": None})
        return problem

    def _as_trained(self, problem: Problem, name: str) -> Problem:
        """The problem with the objectives it was trained on, which its owner may have replaced."""
        other = other_objectives(self.record, problem)
        if not other:
            return problem
        specs = [Spec(**spec) for spec in self.record["objective_specs"]]
        gone = _unknown_settings(specs)
        if gone:
            raise RunError(
                f"`{self.folder}` was trained on objectives that are others in this version, "
                f"which has no {gone} ({'; '.join(other)}): train again, or evaluate it with the "
                f"version that wrote it, {self.record['version']}"
            )
        if {spec.name for spec in specs} <= {*registry.names("objectives")}:
            with suppress(ConfigurationError):
                objectives = tuple(objective_of(spec) for spec in specs)
                rebuilt = dataclasses.replace(problem, objectives=objectives)
                if not other_objectives(self.record, rebuilt):
                    return rebuilt
        raise RunError(
            f"`{self.folder}` was trained on `{name}` with objectives that its folder cannot "
            f"rebuild ({'; '.join(other)}): pass the problem as `load_run(..., problem=problem)`"
        )


def _unknown_settings(specs: Sequence[Spec]) -> str:
    """The settings in a record that this package's objectives of those names do not have."""
    here = {*registry.names("objectives")}
    return ", ".join(
        f"`{key}` of `{spec.name}`"
        for spec in specs
        if spec.name in here
        for key in spec.settings
        if key not in registry.parameters(registry.find("objectives", spec.name))
    )


def objective_of(spec: Spec) -> Objective:
    """An objective of this package from a record, each setting of the kind it is declared with."""
    known = registry.parameters(registry.find("objectives", spec.name))
    settings = {
        name: registry.convert(name, value, known[name].annotation)
        for name, value in spec.settings.items()
    }
    built: Objective = registry.build("objectives", Spec(spec.name, settings))
    return built
