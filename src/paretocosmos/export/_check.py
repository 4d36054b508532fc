"""Whether a written file gives what PyTorch gives."""

import numpy as np
import torch
from torch import Tensor

from paretocosmos.export._deployed import Call, Output, Shared
from paretocosmos.export.metadata import Takes
from paretocosmos.problems.tables import DECISION, Table

# The largest difference that float32 and another order of adding explain.
LIMIT = 1e-5

# Numbers of rows and preferences that are tried.
TRIED: dict[Takes, tuple[tuple[int, int], ...]] = {
    "any": ((1, 1), (2, 1), (2, 2), (7, 1), (7, 7), (33, 1)),
    "each": ((1, 1), (2, 2), (7, 7)),
    "one": ((1, 1), (2, 1), (7, 1), (33, 1)),
}


def difference(
    shared: Shared,
    call: Call,
    *,
    takes: Takes,
    table: Table | None,
) -> float:
    """The largest difference between a file and PyTorch on random rows and rays.

    Relative where outputs are above 1, since a logit of 100 has no more digits than a probability.

    Args:
        shared: what was exported.
        call: runs the file.
        takes: how many preferences it takes.
        table: the preprocessing in it.
    """
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for rows, count in TRIED[takes]:
        x = random_rows(rows, shared.row, table, generator)
        ray = torch.rand(count, shared.objectives, generator=generator).log().neg()
        ray /= ray.sum(dim=1, keepdim=True)
        with torch.inference_mode():
            expected = [output.numpy() for output in shared.network(x, ray)]
        given = dict(zip(shared.outputs, call(x, ray), strict=True))
        wanted = dict(zip(shared.outputs, expected, strict=True))
        if DECISION in given:  # which must follow from what the file itself says
            found = torch.from_numpy(given[shared.network.answer.called])
            wanted[DECISION] = shared.network.decided(found)[DECISION].numpy()
        worst = max(worst, *(apart(given[name], wanted[name]) for name in shared.outputs))
    return worst


def apart(found: Output, wanted: Output) -> float:
    """The largest difference, relative to the largest of `wanted` where that is above 1.

    >>> apart(np.array([200.0, 3.0]), np.array([202.0, 3.0]))
    0.009900990099009901
    """
    if found.shape != wanted.shape:
        return float("inf")
    largest = np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max())
    return float(np.nan_to_num(largest, nan=np.inf))


def random_rows(
    rows: int, row: tuple[int, ...], table: Table | None, generator: torch.Generator
) -> Tensor:
    """Rows of noise; of a table, numbers like its own, categories, missing and unknown values."""
    noise = torch.randn(rows, *row, generator=generator)
    if table is None:
        return noise
    count = len(table.numeric)
    x = noise.double()
    x[:, :count] = x[:, :count] * torch.tensor(table.scale[:count]) + torch.tensor(
        table.mean[:count]
    )
    for at, every in enumerate(table.categorical.values(), start=count):
        x[:, at] = torch.randint(-1, len(every) + 1, (rows,), generator=generator)
    strange = torch.rand(x.shape, generator=generator)
    x[strange < 0.1] = torch.nan
    x[strange > 0.95] = torch.inf
    largest = torch.finfo(torch.float32).max
    return torch.where(x.isfinite(), x.clamp(-largest, largest), x).float()
