"""Evaluate runs for a page: predictions on validation and test data, and a dozen samples."""

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
from paretocosmos.explorer.network import add_networks
from paretocosmos.explorer.page_model import (
    Answers,
    Outcome,
    PageModel,
    RunView,
    Samples,
    Words,
    build_words,
)
from paretocosmos.explorer.predictions import (
    HeadReader,
    build_outcomes,
    compute_gap_intervals,
    compute_outcome_gaps,
    compute_shares,
    count_answers,
    find_readers,
)
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import HELD, Problem, Split
from paretocosmos.problems.tables import MISSING, Table, TabularProblem
from paretocosmos.runs.run import Run, predicts_at
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Batch, Outputs, map_tensors

# Predictions are counted at this many rays at most: a page shows the nearest of them.
MAX_COUNTED_RAYS = 101
# Rays whose outputs are in memory at once.
RAYS_PER_PASS = 25
SPLITS: tuple[Split, ...] = ("val", "test")
# The page gives no reason: an error may name folders of the machine that wrote it.
NO_DATA = "There are no counted answers: the data could not be read for this page."

# As many as a page shows without scrolling for long.
SAMPLE_COUNT = 12
# Half of the samples are those, of this many candidates, whose predictions change most.
CANDIDATES = 512
# A wide table would make the page large, and a sample hard to read.
MAX_COLUMNS = 20
MAX_PIXELS = 128  # along a side; larger pictures are thinned

Bytes = npt.NDArray[np.uint8]


def build_page_model(
    runs: Sequence[Run],
    *,
    data: str | None = None,
    samples: bool = False,
    threshold: float | None = None,
    network: bool = True,
) -> PageModel:
    """Evaluate runs on one problem for a page: fronts, counted predictions, a dozen samples.

    Args:
        runs: the runs; the first is selected when the page opens.
        data: the new location of the problem's data, if it has moved.
        samples: whether to show samples; whoever gets the page then gets these rows.
        threshold: the probability above which a binary prediction is positive; if `None`, that
            of an estimator, and 0.5 for any other run.
        network: whether the page of a table has the weights, and so answers for new rows.

    Returns:
        The model of the page; if the data cannot be read, it has fronts only, and the reason.
    """
    _check_runs(runs)
    # all runs of a page share a threshold: counts at different ones cannot be compared
    decided = predicts_at(runs[0]).threshold if threshold is None else threshold
    problem, page, reason = None, None, ""
    try:
        problem = runs[0].problem(data=data)
    except ParetoCosmosError as error:
        if threshold is not None:  # without data, the threshold would be ignored
            raise
        reason = str(error)
    if problem is not None:
        problem = at_threshold(problem, decided)
        try:
            page = _evaluate_runs(runs, problem, decided)
        except ParetoCosmosError as error:
            reason = str(error)
    if page is None:
        views = [RunView(run.record, _get_fronts(run), str(run.folder)) for run in runs]
        words = _build_words(problem, runs)
        page = PageModel(views, samples_note=NO_DATA, reason=reason, words=words)
    elif not samples:  # dropped last, since the counts need what the samples need
        page = _drop_samples(page)
    return page if runs[0].table is None else add_networks(page, runs, wanted=network)


def _build_words(problem: Problem | None, runs: Sequence[Run]) -> Words:
    """Return the labels of all objectives and metrics of runs."""
    names = dict.fromkeys(name for run in runs for name in (*run.front.names, *run.front.metrics))
    return build_words(problem, list(names), str(runs[0].record.get("name") or ""))


def _drop_samples(model: PageModel) -> PageModel:
    """Drop single samples and their predictions; counts stay."""
    views = [
        dataclasses.replace(
            view,
            answers=view.answers
            and dataclasses.replace(view.answers, probabilities=(), classes=()),
        )
        for view in model.runs
    ]
    # rows about people are personal data: the counts alone can be passed on
    return dataclasses.replace(model, runs=views, samples=None, samples_note="")


def _check_runs(runs: Sequence[Run]) -> None:
    """Raise if runs do not belong on one page."""
    # `answers` is a hash of the labels, by which data are told apart
    keys = ("name", "protocol", "about", "answers")
    for run in runs[1:]:
        differs = run.front.names != runs[0].front.names or run.table != runs[0].table
        if differs or any(run.record.get(key) != runs[0].record.get(key) for key in keys):
            first, other = (
                f"`{run.record.get('name')}` ({', '.join(run.front.names)}) in `{run.folder}`, "
                f"protocol {run.record.get('protocol')}"
                for run in (runs[0], run)
            )
            raise ConfigurationError(
                "the runs of one page must share a problem, its data and its protocol, found "
                f"{first} and {other}: make a page for each"
            )


def _load_in_memory(problem: Problem, split: Split) -> Batch:
    """Load a split; raise if it is streamed and too large to be evaluated at many rays."""
    source = problem.source(split)
    # `held` loads a streamed split up to a limit, and explains if it is beyond it
    batch = problem.split(split) if source is None else source.held(HELD)
    if isinstance(batch, str):  # the reason why it is not in memory
        raise DataError(f"{batch}, so that no answers are counted for a page")
    return batch


def _evaluate_runs(runs: Sequence[Run], problem: Problem, threshold: float) -> PageModel:
    test = _load_in_memory(problem, "test")
    # spread evenly over the split
    spread = np.linspace(0, len(test) - 1, min(len(test), CANDIDATES))
    candidates = torch.from_numpy(spread.astype(np.int64))
    # Nine rays along the front show well enough whose predictions change.
    ray_indices = np.linspace(0, len(runs[0].front) - 1, 9).astype(np.int64)
    outputs = _predict(runs[0], problem, test, _get_rays(runs[0], ray_indices), candidates)
    readers = find_readers(problem, outputs, test, threshold)
    if not readers:
        raise ConfigurationError(f"`{problem.name}` does not predict classes")
    # without turns, a small group might have no sample at all
    compares_rates = isinstance(problem, TabularProblem) and problem.compares_rates
    groups = test.targets["sensitive"][candidates] if compares_rates else None
    probabilities = [reader.predict(outputs)[0] for reader in readers]
    rows, changing = choose_samples(candidates, probabilities, groups)
    samples = collect_samples(problem, test, rows, changing, readers)
    words = _build_words(problem, runs)
    outcomes = build_outcomes(problem, readers, words.groups)
    views = []
    for run in runs:
        answers = None
        # runs may have preprocessed the same data differently, so rows are not interchangeable
        shape = run.record["input_shape"]
        if run.table == runs[0].table and shape == runs[0].record["input_shape"]:
            answers = _collect_answers(run, problem, test, samples, readers, outcomes)
        fronts = _evaluate_at_threshold(run, problem, threshold)
        views.append(RunView(run.record, fronts, str(run.folder), answers))
    assert views[0].answers is not None
    words = dataclasses.replace(
        words,
        outcomes=outcomes,
        # from the counts, so that the page never shows other sizes than those it counted
        sizes={
            split: int(heads[0][0, 0].sum()) for split, heads in views[0].answers.confusion.items()
        },
        threshold=threshold if any(reader.head.binary for reader in readers) else None,
    )
    note = "" if samples.texts or samples.images else "These samples cannot be shown as text."
    heads = tuple(reader.head for reader in readers)
    return PageModel(views, heads, words.groups, samples, note, words=words)


def _get_fronts(run: Run) -> tuple[Front, ...]:
    """Return the fronts on val and test; an estimator, fitted on all rows, has none on test."""
    return (run.front_val, run.front) if run.front.split == "test" else (run.front_val,)


def _evaluate_at_threshold(run: Run, problem: Problem, threshold: float) -> tuple[Front, ...]:
    """Return the fronts on val and test, evaluated again if the threshold is not 0.5."""
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


def _collect_answers(
    run: Run,
    problem: Problem,
    test: Batch,
    samples: Samples,
    readers: Sequence[HeadReader],
    outcomes: Sequence[Outcome],
) -> Answers:
    """Predict for the samples at every ray, and count predictions of whole splits at some."""
    all_indices = np.arange(len(run.front))
    # evenly spread indices, of which `unique` drops repetitions on short fronts
    spread = np.linspace(0, len(all_indices) - 1, MAX_COUNTED_RAYS).round()
    ray_indices = np.unique(spread.astype(np.int64))
    confusion: dict[str, tuple[npt.NDArray[np.int64], ...]] = {}
    gaps: dict[str, dict[str, Array]] = {}
    for split in SPLITS if run.front.split == "test" else SPLITS[:1]:
        batch = _load_in_memory(problem, split)
        counts, intervals = [], []
        # a few rays at a time: outputs of all rays at once could exceed the memory
        for indices in np.split(ray_indices, range(RAYS_PER_PASS, len(ray_indices), RAYS_PER_PASS)):
            outputs = _predict(run, problem, batch, _get_rays(run, indices))
            counts.append(count_answers(readers, outputs, batch.targets))
            intervals.append(
                # on val, a ray is found by looking for one below a bound
                compute_gap_intervals(problem, outputs, batch.targets, chosen=split == "val")
            )
        confusion[split] = tuple(np.concatenate(head) for head in zip(*counts, strict=True))
        gaps[split] = compute_outcome_gaps(outcomes, confusion[split], chosen=split == "val") | {
            name: np.concatenate([ends[name] for ends in intervals]) for name in intervals[0]
        }
    outputs = _predict(run, problem, test, _get_rays(run, all_indices), torch.tensor(samples.rows))
    predictions = [reader.predict(outputs) for reader in readers]
    return Answers(
        ray_indices=ray_indices,
        confusion=confusion,
        # a sample per row, as the page draws a line for each
        probabilities=tuple(values.T.double().numpy() for values, _ in predictions),
        classes=tuple(classes.T.numpy() for _, classes in predictions),
        shares={split: compute_shares(outcomes, counts) for split, counts in confusion.items()},
        gaps=gaps,
    )


def _get_rays(run: Run, indices: Any) -> Tensor:
    return torch.from_numpy(run.front.rays[indices]).float()


def _predict(
    run: Run, problem: Problem, batch: Batch, rays: Tensor, rows: Tensor | None = None
) -> Outputs:
    """Return outputs ``[rays, B, ...]`` on the CPU, by the arithmetic of `evaluate`."""
    parameter = next(run.model.parameters(), torch.zeros(()))
    inputs = batch.inputs if rows is None else map_tensors(lambda x: x[rows], batch.inputs)
    inputs = move_to_evaluate(Batch(inputs, {}), parameter.device, parameter.dtype).inputs
    # TF32 would give slightly different counts on a GPU than `evaluate` reports.
    with evaluation_mode(run.model), set_precision("fp32"):
        outputs = predict_at_rays(run.model, inputs, rays, problem.prepare)
        on_cpu: Outputs = map_tensors(lambda out: out.cpu(), outputs)
    return on_cpu


def choose_samples(
    candidates: Tensor, probabilities: Sequence[Tensor], groups: Tensor | None = None
) -> tuple[tuple[int, ...], int]:
    """Choose rows to show: first those whose predictions change most, then random ones.

    Args:
        candidates: the row numbers to choose from.
        probabilities: per head, probabilities ``[rays, candidates]``.
        groups: the sensitive groups of the candidates, which then take turns.

    Returns:
        The row numbers, and the number of those chosen because their predictions change.
    """
    # the largest change over all heads: one that changes makes a sample worth a look
    spans = torch.stack([p.amax(dim=0) - p.amin(dim=0) for p in probabilities]).amax(dim=0)
    order = _alternate_groups(spans.argsort(descending=True, stable=True), groups)
    changing = order[: min(SAMPLE_COUNT // 2, len(candidates) // 2)]
    rest = order[len(changing) :].sort().values
    # always the same draw, so that a page written again shows the same samples
    drawn = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))]
    drawn = _alternate_groups(drawn, groups)[: SAMPLE_COUNT - len(changing)]
    return tuple(torch.cat([candidates[changing], candidates[drawn]]).tolist()), len(changing)


def _alternate_groups(order: Tensor, groups: Tensor | None) -> Tensor:
    """Reorder indices so that groups take turns, each in its given order."""
    if groups is None:
        return order
    ordered = groups[order]
    turn = torch.zeros_like(ordered)
    for group in ordered.unique():
        # the n-th of each group gets turn n
        turn[ordered == group] = torch.arange(int((ordered == group).sum()))
    return order[(turn * (int(groups.max()) + 1) + ordered).argsort(stable=True)]


def collect_samples(
    problem: Problem,
    batch: Batch,
    rows: tuple[int, ...],
    changing: int,
    readers: Sequence[HeadReader],
) -> Samples:
    """Collect the texts or images of some rows, with their true classes."""
    inputs, indices = batch.inputs, list(rows)
    truth = torch.stack([r.get_true_classes(batch.targets)[indices] for r in readers]).numpy()
    columns: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    images: tuple[bytes, ...] = ()
    column_count = 0
    if isinstance(problem, TabularProblem) and isinstance(inputs, Tensor):
        columns = problem.table.columns
        texts = tuple(restore_texts(problem.table, inputs[indices].numpy()))
        if problem.compares_rates:  # the group comes first: it is no input
            columns = (problem.sensitive, *columns)
            codes = batch.targets["sensitive"][indices].tolist()
            texts = tuple(
                (problem.groups[code], *text) for code, text in zip(codes, texts, strict=True)
            )
        column_count = len(columns)
        # one more, for the group in front
        columns = columns[: MAX_COLUMNS + 1]
        texts = tuple(text[: MAX_COLUMNS + 1] for text in texts)
    # one or three channels: anything else is no picture
    elif isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        images = tuple(encode_png(_to_pixels(inputs[row].cpu())) for row in rows)
    elif isinstance(inputs, Tensor) and inputs.ndim == 2:
        column_count = inputs.shape[1]
        columns = tuple(f"input {index + 1}" for index in range(min(column_count, MAX_COLUMNS)))
        texts = tuple(tuple(f"{x:.4g}" for x in inputs[row, :MAX_COLUMNS].tolist()) for row in rows)
    return Samples(rows, columns, texts, images, truth, changing, column_count)


def restore_texts(table: Table, inputs: npt.NDArray[np.float32]) -> list[tuple[str, ...]]:
    """Return the rows as they were before preprocessing, in the order of the table's columns.

    Unknown categories are lost, and so are digits that float32 rounds away.
    """
    rows = []
    # the inverse of standardising
    for values in (inputs * np.array(table.scale) + np.array(table.mean)).tolist():
        features = dict(zip(table.features, values, strict=True))
        texts = []
        for index, name in enumerate(table.numeric):
            if name in table.flagged and features[f"{name}={MISSING}"] > 0.5:
                texts.append(MISSING)
            else:
                texts.append(_format_number(features[name], table.scale[index]))
        for name, labels in table.categorical.items():
            # one-hot columns: at most one of them is 1; all are 0 for an unknown category
            hot = (label for label in labels if features[f"{name}={label}"] > 0.5)
            texts.append(next(hot, "(other)"))
        rows.append(tuple(texts))
    return rows


def _format_number(value: float, scale: float) -> str:
    """Format a number without the digits that standardising in float32 has spoilt."""
    # float32 keeps about seven digits of a standardised value, so digits count from its scale.
    digits = max(0, int(np.ceil(5 - np.log10(scale))) - 1)
    text = f"{value:.{min(digits, 12)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    # a tiny negative number rounds to -0
    return "0" if text == "-0" else text


def _to_pixels(image: Tensor) -> Bytes:
    """Convert a picture ``[C, H, W]`` to bytes ``[H, W, C]``, thinned to `MAX_PIXELS` a side."""
    # Rounded up, so that the larger side fits.
    step = -(-max(image.shape[1:]) // MAX_PIXELS)
    image = image[:, ::step, ::step]
    if image.is_floating_point():
        low, high = image.min(), image.max()
        # inputs are normalised, so their range is stretched to that of a picture
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).round()
    return image.to(torch.uint8).permute(1, 2, 0).numpy()


def encode_png(pixels: Bytes) -> bytes:
    r"""Encode ``[H, W, 1]`` greys or ``[H, W, 3]`` colours as a PNG file, without Pillow.

    >>> grey, colour = (encode_png(np.zeros((2, 2, count), np.uint8)) for count in (1, 3))
    >>> grey[1:4], grey[24:26], colour[24:26]
    (b'PNG', b'\x08\x00', b'\x08\x02')
    """
    height, width, channels = pixels.shape
    # eight bits a channel, colour type 0 (grey) or 2 (RGB), no interlacing
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # every line begins with the number of its filter, 0: none
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    chunks = (
        # a chunk is its length, its kind, its content, and a checksum of the last two
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
