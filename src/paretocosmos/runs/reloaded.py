"""The problem of a record, loaded again with the objectives it was trained on."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, DataWarning, ParetoCosmosError, RunError
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective
from paretocosmos.problems import Problem, load_problem, shares_of
from paretocosmos.registry import Spec
from paretocosmos.runs.record import other_objectives
from paretocosmos.types import Outputs

__all__ = ["load_as_trained", "objective_of"]


def load_as_trained(
    folder: Path, record: Mapping[str, Any], name: str, settings: Mapping[str, Any]
) -> Problem:
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
            f"`{folder}` was trained on `{name}` with invalid settings ({one_line(error)}): "
            "restore the original `run.json`"
        ) from error
    problem = _as_trained(folder, record, problem, name)
    found = {"names": list(problem.names), "input_shape": list(problem.input_shape)}
    for key, value in found.items():
        if value != record[key]:
            raise RunError(
                f"`{folder}` was not trained on `{name}` as it is here, whose `{key}` is "
                f"{value}, there {record[key]}: pass the same data as `data`"
            ).by({"data": None})
    return problem


def _as_trained(folder: Path, record: Mapping[str, Any], problem: Problem, name: str) -> Problem:
    """The problem with the objectives it was trained on, which its owner may have replaced."""
    other = other_objectives(record, problem)
    if not other:
        return problem
    specs = [Spec(**spec) for spec in record["objective_specs"]]
    gone = _unknown_settings(specs)
    if gone:
        raise RunError(
            f"`{folder}` was trained on objectives that changed since: this version has no {gone} "
            f"({'; '.join(other)}): train again, or evaluate it with the "
            f"version that wrote it, {record['version']}"
        )
    if {spec.name for spec in specs} <= {*registry.names("objectives")}:
        with suppress(ConfigurationError):
            objectives = tuple(objective_of(spec) for spec in specs)
            rebuilt = dataclasses.replace(problem, objectives=objectives)
            if not other_objectives(record, rebuilt):
                _check_names(folder, rebuilt)
                return rebuilt
    raise RunError(
        f"`{folder}` was trained on `{name}` with objectives that its folder cannot "
        f"rebuild ({'; '.join(other)}): pass the problem as `load_run(..., problem=problem)`"
    )


def _check_names(folder: Path, problem: Problem) -> None:
    """Refuse objectives of a record that name an output or a target that the problem lacks."""
    widths = problem.outputs
    for objectives, few in shares_of(problem, 2):
        if isinstance(widths, int):
            outputs: Outputs = torch.zeros(len(few), widths)
        else:
            outputs = {head: torch.zeros(len(few), width) for head, width in widths.items()}
        for objective in objectives:
            try:
                objective.loss(outputs, few.targets)
            except LookupError as error:
                raise RunError(
                    f"`{folder / 'run.json'}` is damaged: its objective `{objective.name}` reads "
                    f"{error}, which `{problem.name}` does not have (its targets are "
                    f"{', '.join(few.targets)}): restore the original file"
                ) from error
            except (RuntimeError, TypeError, ValueError):
                pass  # of two samples, such as a group without any


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
