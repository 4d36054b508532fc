"""Evaluate runs for a page: answers on validation and test data, and a dozen samples."""

import dataclasses
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate, evaluation_mode, predict_at_rays
from paretocosmos.evaluation.samples import move_to_evaluate
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold
from paretocosmos.explorer.page_model import Answers, Look, Outcome, Samples, View, build_words
from paretocosmos.explorer.predictions import (
    Reader,
    build_outcomes,
    compute_gap_intervals,
    compute_outcome_gaps,
    compute_shares,
    count_answers,
    find_readers,
    get_sizes,
)
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import HELD, Problem, Split
from paretocosmos.problems.tables import MISSING, Table, TableProblem, TabularProblem
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
    """Evaluate runs on one problem for a page: fronts, counted answers, a dozen samples.

    Args:
        runs: the first is chosen from at first.
        data: where the problem's data lies now, if it has moved.
        samples: whether to show a dozen; a page that holds some is shared as the data are.
        threshold: the probability above which an answer of yes or no is counted as a yes; if
            `None`, the one that an estimator predicts at, and 0.5 of any other run.

    Returns:
        The view; without answers and samples, and saying why, where the problem cannot be had.
    """
    _check_runs(runs)
    decided = predicts_at(runs[0]).threshold if threshold is None else threshold
    try:
        problem = runs[0].problem(data=data)
    except ParetoCosmosError as error:
        if threshold is not None:  # which nothing could be counted at
            raise
        return _view_without_answers(runs, None, error)
    problem = at_threshold(problem, decided)
    try:
        view = _build_view(runs, problem, decided)
    except ParetoCosmosError as error:
        return _view_without_answers(runs, problem, error)
    return view if samples else _drop_samples(view)


def _view_without_answers(
    runs: Sequence[Run], problem: Problem | None, error: ParetoCosmosError
) -> View:
    """The fronts alone, and why."""
    looks = [Look(run.record, _get_fronts(run), str(run.folder)) for run in runs]
    words = build_words(problem, _quantity_names(runs), _run_name(runs[0]))
    return View(looks, without=NOTHING, why=str(error), words=words)


def _quantity_names(runs: Sequence[Run]) -> list[str]:
    return [*dict.fromkeys(name for run in runs for name in (*run.front.names, *run.front.metrics))]


def _run_name(run: Run) -> str:
    return str(run.record.get("name") or "")


def _drop_samples(view: View) -> View:
    """Drop single samples and their answers; counts stay."""
    looks = [
        dataclasses.replace(
            look,
            answers=look.answers and dataclasses.replace(look.answers, chances=(), answers=()),
        )
        for look in view.looks
    ]
    said = "They were left out of this page."
    return dataclasses.replace(view, looks=looks, samples=None, without=said)


def _check_runs(runs: Sequence[Run]) -> None:
    """Refuse runs that do not belong on one page."""
    keys = ("name", "protocol", "about", "answers")
    for run in runs[1:]:
        other = run.front.names != runs[0].front.names or run.table != runs[0].table
        if other or any(run.record.get(key) != runs[0].record.get(key) for key in keys):
            raise ConfigurationError(
                f"the runs of one page must share a problem, its data and its protocol, found "
                f"{_describe_run(runs[0])} and {_describe_run(run)}: make a page for each"
            )


def _describe_run(run: Run) -> str:
    of = f"`{run.record.get('name')}` ({', '.join(run.front.names)})"
    return f"{of} in `{run.folder}`, protocol {run.record.get('protocol')}"


def _load_in_memory(problem: Problem, split: Split) -> Batch:
    """A split that a page counts answers of at many rays; one that is read on the way is not."""
    source = problem.source(split)
    found = problem.split(split) if source is None else source.held(HELD)
    if isinstance(found, str):
        raise DataError(f"{found}, so that no answers are counted for a page")
    return found


def _build_view(runs: Sequence[Run], problem: Problem, threshold: float) -> View:
    test = _load_in_memory(problem, "test")
    pool = spread_rows(len(test))
    few = _get_rays(runs[0], np.linspace(0, len(runs[0].front) - 1, 9).astype(np.int64))
    found = _predict(runs[0], problem, test, few, pool)
    readers = find_readers(problem, found, test, threshold)
    if not readers:
        raise ConfigurationError(f"`{problem.name}` does not predict classes")
    people = test.targets["sensitive"][pool] if isinstance(problem, TabularProblem) else None
    rows, moved = choose_samples(pool, [reader.chances(found)[0] for reader in readers], people)
    samples = collect_samples(problem, test, rows, moved, readers)
    words = build_words(problem, _quantity_names(runs), _run_name(runs[0]))
    outcomes = build_outcomes(problem, readers, words.groups)
    looks = [
        Look(
            run.record,
            _evaluate_at_threshold(run, problem, threshold),
            str(run.folder),
            _collect_answers(run, problem, test, samples, readers, outcomes)
            if _has_same_inputs(run, runs[0])
            else None,
        )
        for run in runs
    ]
    seen = next(look.answers for look in looks if look.answers is not None)
    words = dataclasses.replace(
        words,
        outcomes=outcomes,
        sizes=get_sizes(seen.confusion),
        threshold=threshold if any(one.head.binary for one in readers) else None,
    )
    without = "" if samples.texts or samples.images else "These samples cannot be shown as text."
    heads = tuple(one.head for one in readers)
    return View(looks, heads, words.groups, samples, without, words=words)


def _get_fronts(run: Run) -> tuple[Front, ...]:
    """On val and on test; an estimator has no rows to test on."""
    return (run.front_val, run.front) if run.front.split == "test" else (run.front_val,)


def _evaluate_at_threshold(run: Run, problem: Problem, threshold: float) -> tuple[Front, ...]:
    """The same, with decisions at a threshold."""
    if threshold == MIDDLE:
        return _get_fronts(run)
    return tuple(
        evaluate(
            run.model,
            problem,
            split=front.split,
            rays=torch.tensor(front.rays).float(),
            provenance=front.provenance,
        )
        for front in _get_fronts(run)
    )


def _has_same_inputs(run: Run, other: Run) -> bool:
    """Return True if both take the same inputs."""
    return run.table == other.table and run.record["input_shape"] == other.record["input_shape"]


def _collect_answers(
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
        batch = _load_in_memory(problem, split)
        parts, ends = [], []
        for some in np.split(where, range(TOGETHER, len(where), TOGETHER)):
            outputs = _predict(run, problem, batch, _get_rays(run, some))
            parts.append(count_answers(readers, outputs, batch.targets))
            ends.append(
                compute_gap_intervals(problem, outputs, batch.targets, chosen=split == "val")
            )
        confusion[split] = tuple(np.concatenate(of_head) for of_head in zip(*parts, strict=True))
        counted = compute_outcome_gaps(outcomes, confusion[split], chosen=split == "val")
        measured = {name: np.concatenate([one[name] for one in ends]) for name in ends[0]}
        gaps[split] = counted | measured
    outputs = _predict(run, problem, test, _get_rays(run, every), torch.tensor(samples.rows))
    read = [reader.chances(outputs) for reader in readers]
    return Answers(
        at=where,
        confusion=confusion,
        chances=tuple(chance.T.double().numpy() for chance, _ in read),
        answers=tuple(answer.T.numpy() for _, answer in read),
        shares={split: compute_shares(outcomes, counts) for split, counts in confusion.items()},
        gaps=gaps,
    )


def _get_rays(run: Run, where: Any) -> torch.Tensor:
    return torch.from_numpy(run.front.rays[where]).float()


def _predict(
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


COUNT = 12
# Half of the samples are those, of this many, whose answers change most along the rays.
POOL = 512
COLUMNS = 20
LARGEST = 128  # pixels along a side; larger pictures are thinned

Bytes = npt.NDArray[np.uint8]


def spread_rows(size: int) -> Tensor:
    """Rows spread evenly over a split."""
    return torch.from_numpy(np.linspace(0, size - 1, min(size, POOL)).astype(np.int64))


def choose_samples(
    pool: Tensor, chances: Sequence[Tensor], sensitive: Tensor | None = None
) -> tuple[tuple[int, ...], int]:
    """Rows of the samples, and how many of the first were taken because their answers move.

    Args:
        pool: rows to choose from.
        chances: per head, probabilities ``[rays, pool]``.
        sensitive: the groups of the people in the pool, who are then taken from each in turn.
    """
    span = torch.stack([one.amax(dim=0) - one.amin(dim=0) for one in chances]).amax(dim=0)
    order = _alternate_groups(span.argsort(descending=True, stable=True), sensitive)
    moving = order[: min(COUNT // 2, len(pool) // 2)]
    rest = order[len(moving) :].sort().values
    drawn = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))]
    even = _alternate_groups(drawn, sensitive)
    rows = torch.cat([pool[moving], pool[even[: COUNT - len(moving)]]])
    return tuple(rows.tolist()), len(moving)


def _alternate_groups(order: Tensor, sensitive: Tensor | None) -> Tensor:
    """The same places, one of each group after the other, in their order within a group."""
    if sensitive is None:
        return order
    own = sensitive[order]
    turn = torch.zeros_like(own)
    for group in own.unique():
        turn[own == group] = torch.arange(int((own == group).sum()))
    return order[(turn * (int(sensitive.max()) + 1) + own).argsort(stable=True)]


def collect_samples(
    problem: Problem, batch: Batch, rows: tuple[int, ...], moved: int, readers: Sequence[Reader]
) -> Samples:
    """The samples of some rows, with what is true of them."""
    truth = torch.stack([reader.truth(batch.targets)[list(rows)] for reader in readers]).numpy()
    inputs, where = batch.inputs, list(rows)
    columns: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    images: tuple[bytes, ...] = ()
    whole = 0
    if isinstance(problem, TableProblem) and isinstance(inputs, Tensor):
        rest = restore_texts(problem.table, inputs[where].numpy())
        columns = problem.table.columns
        first: list[tuple[str, ...]] = [()] * len(where)
        if isinstance(problem, TabularProblem):
            columns = (problem.sensitive, *columns)
            people = batch.targets["sensitive"][where].tolist()
            first = [(problem.groups[group],) for group in people]
        texts = tuple((*who, *row)[: COLUMNS + 1] for who, row in zip(first, rest, strict=True))
        columns, whole = columns[: COLUMNS + 1], len(columns)
    elif isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        images = tuple(encode_png(_to_pixels(inputs[row].cpu())) for row in where)
    elif isinstance(inputs, Tensor) and inputs.ndim == 2:
        whole = inputs.shape[1]
        columns = tuple(f"input {place + 1}" for place in range(min(whole, COLUMNS)))
        texts = tuple(tuple(f"{x:.4g}" for x in inputs[row, :COLUMNS].tolist()) for row in where)
    return Samples(rows, columns, texts, images, truth, moved, whole)


def restore_texts(table: Table, inputs: npt.NDArray[np.float32]) -> list[tuple[str, ...]]:
    """Rows as they were before the preprocessing, in the order of its columns.

    A category that it does not know is lost, and so is what float32 rounds away.
    """
    raw = inputs * np.array(table.scale) + np.array(table.mean)
    names, rows = table.features, []
    for row in raw:
        by_name = dict(zip(names, row.tolist(), strict=True))
        texts = []
        for place, name in enumerate(table.numeric):
            absent = name in table.flagged and by_name[f"{name}={MISSING}"] > 0.5
            texts.append(MISSING if absent else _format_number(by_name[name], table.scale[place]))
        for name, every in table.categorical.items():
            held = [value for value in every if by_name[f"{name}={value}"] > 0.5]
            texts.append(held[0] if held else "(other)")
        rows.append(tuple(texts))
    return rows


def _format_number(value: float, scale: float) -> str:
    """A number without the digits that standardising it in float32 has cost."""
    digits = max(0, int(np.ceil(5 - np.log10(scale))) - 1)
    text = f"{value:.{min(digits, 12)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _to_pixels(image: Tensor) -> Bytes:
    """A picture ``[C, H, W]`` as bytes ``[H, W, C]``, not larger than a page needs."""
    step = -(-max(image.shape[1:]) // LARGEST)
    image = image[:, ::step, ::step]
    if image.is_floating_point():
        low, high = image.min(), image.max()
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).round()
    return image.to(torch.uint8).permute(1, 2, 0).numpy()


def encode_png(pixels: Bytes) -> bytes:
    """A PNG file of ``[H, W, 1]`` greys or ``[H, W, 3]`` colours.

    >>> encode_png(np.zeros((2, 2, 1), np.uint8))[1:4]
    b'PNG'
    """
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # every line begins with its filter: none
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
