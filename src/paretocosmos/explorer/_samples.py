"""A dozen samples of the test data, as text or as small pictures."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.explorer._heads import Reader
from paretocosmos.explorer._view import Samples
from paretocosmos.problems import Problem
from paretocosmos.problems.tables import MISSING, Table, TableProblem, TabularProblem
from paretocosmos.types import Batch

COUNT = 12
# Half of the samples are those, of this many, whose answers change most along the rays.
POOL = 512
COLUMNS = 20
LARGEST = 128  # pixels along a side; larger pictures are thinned

Bytes = npt.NDArray[np.uint8]


def pool_of(size: int) -> Tensor:
    """Rows spread evenly over a split."""
    return torch.from_numpy(np.linspace(0, size - 1, min(size, POOL)).astype(np.int64))


def chosen(
    pool: Tensor, chances: Sequence[Tensor], sensitive: Tensor | None = None
) -> tuple[tuple[int, ...], int]:
    """Rows of the samples, and how many of the first were taken because their answers move.

    Args:
        pool: rows to choose from.
        chances: per head, probabilities ``[rays, pool]``.
        sensitive: the groups of the people in the pool, who are then taken from each in turn.
    """
    span = torch.stack([one.amax(dim=0) - one.amin(dim=0) for one in chances]).amax(dim=0)
    order = _in_turn(span.argsort(descending=True, stable=True), sensitive)
    moving = order[: min(COUNT // 2, len(pool) // 2)]
    rest = order[len(moving) :].sort().values
    drawn = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))]
    even = _in_turn(drawn, sensitive)
    rows = torch.cat([pool[moving], pool[even[: COUNT - len(moving)]]])
    return tuple(rows.tolist()), len(moving)


def _in_turn(order: Tensor, sensitive: Tensor | None) -> Tensor:
    """The same places, one of each group after the other, in their order within a group."""
    if sensitive is None:
        return order
    own = sensitive[order]
    turn = torch.zeros_like(own)
    for group in own.unique():
        turn[own == group] = torch.arange(int((own == group).sum()))
    return order[(turn * (int(sensitive.max()) + 1) + own).argsort(stable=True)]


def samples_of(
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
        rest = texts_of(problem.table, inputs[where].numpy())
        columns = problem.table.columns
        first: list[tuple[str, ...]] = [()] * len(where)
        if isinstance(problem, TabularProblem):
            columns = (problem.sensitive, *columns)
            people = batch.targets["sensitive"][where].tolist()
            first = [(problem.groups[group],) for group in people]
        texts = tuple((*who, *row)[: COLUMNS + 1] for who, row in zip(first, rest, strict=True))
        columns, whole = columns[: COLUMNS + 1], len(columns)
    elif isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        images = tuple(png(_bytes(inputs[row].cpu())) for row in where)
    elif isinstance(inputs, Tensor) and inputs.ndim == 2:
        whole = inputs.shape[1]
        columns = tuple(f"input {place + 1}" for place in range(min(whole, COLUMNS)))
        texts = tuple(tuple(f"{x:.4g}" for x in inputs[row, :COLUMNS].tolist()) for row in where)
    return Samples(rows, columns, texts, images, truth, moved, whole)


def texts_of(table: Table, inputs: npt.NDArray[np.float32]) -> list[tuple[str, ...]]:
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
            texts.append(MISSING if absent else _number(by_name[name], table.scale[place]))
        for name, every in table.categorical.items():
            held = [value for value in every if by_name[f"{name}={value}"] > 0.5]
            texts.append(held[0] if held else "(other)")
        rows.append(tuple(texts))
    return rows


def _number(value: float, scale: float) -> str:
    """A number without the digits that standardising it in float32 has cost."""
    digits = max(0, int(np.ceil(5 - np.log10(scale))) - 1)
    text = f"{value:.{min(digits, 12)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _bytes(image: Tensor) -> Bytes:
    """A picture ``[C, H, W]`` as bytes ``[H, W, C]``, not larger than a page needs."""
    step = -(-max(image.shape[1:]) // LARGEST)
    image = image[:, ::step, ::step]
    if image.is_floating_point():
        low, high = image.min(), image.max()
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).round()
    return image.to(torch.uint8).permute(1, 2, 0).numpy()


def png(pixels: Bytes) -> bytes:
    """A PNG file of ``[H, W, 1]`` greys or ``[H, W, 3]`` colours.

    >>> png(np.zeros((2, 2, 1), np.uint8))[1:4]
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
