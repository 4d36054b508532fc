"""Looking at runs: their answers on the validation and test data, and at a dozen samples."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate, evaluation_mode, predict_at_rays
from paretocosmos.evaluation.samples import move_to_evaluate
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold
from paretocosmos.explorer._heads import Reader, count, readers_of
from paretocosmos.explorer._outcomes import gap_ends, outcome_gaps, outcomes_of, shares_of, sizes_of
from paretocosmos.explorer._samples import chosen, pool_of, samples_of
from paretocosmos.explorer._view import Answers, Look, Outcome, Samples, View
from paretocosmos.explorer._words import words_of
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import HELD, Problem, Split
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.runs.run import Run, predicts_at
from paretocosmos.runtime.device import precise
from paretocosmos.types import Batch, Outputs, map_tensors

# Answers are counted at this many rays at most: a page shows the nearest of them.
COUNTED = 101
# Rays whose outputs are held at once.
TOGETHER = 25
SPLITS: tuple[Split, ...] = ("val", "test")
# What a page says. The reason is for its maker alone: it may name places on a machine.
NOTHING = "There are no samples and no counted answers: the data could not be read for this page."


def look_at(
    runs: Sequence[Run],
    *,
    data: str | None = None,
    samples: bool = True,
    threshold: float | None = None,
) -> View:
    """What a page shows of runs on one problem: fronts, counted answers, a dozen samples.

    Args:
        runs: the first is chosen from at first.
        data: where the problem's data lies now, if it has moved.
        samples: whether to show a dozen; a page that holds some is shared as the data are.
        threshold: the probability above which an answer of yes or no is counted as a yes; if
            `None`, the one that an estimator predicts at, and 0.5 of any other run.

    Returns:
        The view; without answers and samples, and saying why, where the problem cannot be had.
    """
    _check(runs)
    decided = predicts_at(runs[0]).threshold if threshold is None else threshold
    try:
        problem = runs[0].problem(data=data)
    except ParetoCosmosError as error:
        if threshold is not None:  # which nothing could be counted at
            raise
        return _bare(runs, None, error)
    problem = at_threshold(problem, decided)
    try:
        view = _seen(runs, problem, decided)
    except ParetoCosmosError as error:
        return _bare(runs, problem, error)
    return view if samples else _without_samples(view)


def _bare(runs: Sequence[Run], problem: Problem | None, error: ParetoCosmosError) -> View:
    """The fronts alone, and why."""
    looks = [Look(run.record, _fronts(run), str(run.folder)) for run in runs]
    words = words_of(problem, _quantities(runs), _name(runs[0]))
    return View(looks, without=NOTHING, why=str(error), words=words)


def _quantities(runs: Sequence[Run]) -> list[str]:
    return [*dict.fromkeys(name for run in runs for name in (*run.front.names, *run.front.metrics))]


def _name(run: Run) -> str:
    return str(run.record.get("name") or "")


def _without_samples(view: View) -> View:
    """What was counted stays; what single samples are and are answered goes."""
    looks = [
        dataclasses.replace(
            look,
            answers=look.answers and dataclasses.replace(look.answers, chances=(), answers=()),
        )
        for look in view.looks
    ]
    said = "They were left out of this page."
    return dataclasses.replace(view, looks=looks, samples=None, without=said)


def _check(runs: Sequence[Run]) -> None:
    """Refuse runs that do not belong on one page."""
    keys = ("name", "protocol", "about", "answers")
    for run in runs[1:]:
        other = run.front.names != runs[0].front.names or run.table != runs[0].table
        if other or any(run.record.get(key) != runs[0].record.get(key) for key in keys):
            raise ConfigurationError(
                f"the runs of one page must share a problem, its data and its protocol, found "
                f"{_problem(runs[0])} and {_problem(run)}: make a page for each"
            )


def _problem(run: Run) -> str:
    of = f"`{run.record.get('name')}` ({', '.join(run.front.names)})"
    return f"{of} in `{run.folder}`, protocol {run.record.get('protocol')}"


def _in_memory(problem: Problem, split: Split) -> Batch:
    """A split that a page counts answers of at many rays; one that is read on the way is not."""
    source = problem.source(split)
    found = problem.split(split) if source is None else source.held(HELD)
    if isinstance(found, str):
        raise DataError(f"{found}, so that no answers are counted for a page")
    return found


def _seen(runs: Sequence[Run], problem: Problem, threshold: float) -> View:
    test = _in_memory(problem, "test")
    pool = pool_of(len(test))
    few = _rays(runs[0], np.linspace(0, len(runs[0].front) - 1, 9).astype(np.int64))
    found = _outputs(runs[0], problem, test, few, pool)
    readers = readers_of(problem, found, test, threshold)
    if not readers:
        raise ConfigurationError(f"`{problem.name}` does not predict classes")
    people = test.targets["sensitive"][pool] if isinstance(problem, TabularProblem) else None
    rows, moved = chosen(pool, [reader.chances(found)[0] for reader in readers], people)
    samples = samples_of(problem, test, rows, moved, readers)
    words = words_of(problem, _quantities(runs), _name(runs[0]))
    outcomes = outcomes_of(problem, readers, words.groups)
    looks = [
        Look(
            run.record,
            _fronts_at(run, problem, threshold),
            str(run.folder),
            _answers(run, problem, test, samples, readers, outcomes)
            if _same(run, runs[0])
            else None,
        )
        for run in runs
    ]
    seen = next(look.answers for look in looks if look.answers is not None)
    words = dataclasses.replace(
        words,
        outcomes=outcomes,
        sizes=sizes_of(seen.confusion),
        threshold=threshold if any(one.head.binary for one in readers) else None,
    )
    without = "" if samples.texts or samples.images else "These samples cannot be shown as text."
    heads = tuple(one.head for one in readers)
    return View(looks, heads, words.groups, samples, without, words=words)


def _fronts(run: Run) -> tuple[Front, ...]:
    """On val and on test; an estimator has no rows to test on."""
    return (run.front_val, run.front) if run.front.split == "test" else (run.front_val,)


def _fronts_at(run: Run, problem: Problem, threshold: float) -> tuple[Front, ...]:
    """The same, with decisions at a threshold."""
    if threshold == MIDDLE:
        return _fronts(run)
    return tuple(
        evaluate(
            run.model,
            problem,
            split=front.split,
            rays=torch.tensor(front.rays).float(),
            provenance=front.provenance,
        )
        for front in _fronts(run)
    )


def _same(run: Run, other: Run) -> bool:
    """Whether both take the same inputs."""
    return run.table == other.table and run.record["input_shape"] == other.record["input_shape"]


def _answers(
    run: Run,
    problem: Problem,
    test: Batch,
    samples: Samples,
    readers: Sequence[Reader],
    outcomes: Sequence[Outcome],
) -> Answers:
    every = np.arange(len(run.front))
    where = np.unique(np.linspace(0, len(every) - 1, COUNTED).round().astype(np.int64))
    confusion: dict[str, tuple[npt.NDArray[np.int64], ...]] = {}
    gaps: dict[str, dict[str, Array]] = {}
    for split in SPLITS if run.front.split == "test" else SPLITS[:1]:
        batch = _in_memory(problem, split)
        parts, ends = [], []
        for some in np.split(where, range(TOGETHER, len(where), TOGETHER)):
            outputs = _outputs(run, problem, batch, _rays(run, some))
            parts.append(count(readers, outputs, batch.targets))
            ends.append(gap_ends(problem, outputs, batch.targets, chosen=split == "val"))
        confusion[split] = tuple(np.concatenate(of_head) for of_head in zip(*parts, strict=True))
        counted = outcome_gaps(outcomes, confusion[split], chosen=split == "val")
        measured = {name: np.concatenate([one[name] for one in ends]) for name in ends[0]}
        gaps[split] = counted | measured
    outputs = _outputs(run, problem, test, _rays(run, every), torch.tensor(samples.rows))
    read = [reader.chances(outputs) for reader in readers]
    return Answers(
        at=where,
        confusion=confusion,
        chances=tuple(chance.T.double().numpy() for chance, _ in read),
        answers=tuple(answer.T.numpy() for _, answer in read),
        shares={split: shares_of(outcomes, counts) for split, counts in confusion.items()},
        gaps=gaps,
    )


def _rays(run: Run, where: Any) -> torch.Tensor:
    return torch.from_numpy(run.front.rays[where]).float()


def _outputs(
    run: Run,
    problem: Problem,
    batch: Batch,
    rays: torch.Tensor,
    rows: torch.Tensor | None = None,
) -> Outputs:
    """On the CPU, ``[rays, B, ...]``, by the arithmetic of `evaluate`."""
    parameter = next(run.model.parameters(), torch.zeros(()))
    inputs = batch.inputs if rows is None else map_tensors(lambda part: part[rows], batch.inputs)
    some = move_to_evaluate(Batch(inputs, {}), parameter.device, parameter.dtype)
    with evaluation_mode(run.model), precise("fp32"):
        outputs = predict_at_rays(run.model, some.inputs, rays, problem.prepare)
        found: Outputs = map_tensors(lambda part: part.cpu(), outputs)
    return found
