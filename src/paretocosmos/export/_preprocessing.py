"""A table's preprocessing as a part of a network, so that an exported file needs nothing else."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.problems.tables import MISSING, Table


class Preprocessing(nn.Module):
    """What `Table.encode` gives, ``[N, columns]``, to what `Table.transform` gives.

    A number that is NaN or infinite is missing. So is such a category, which then is the category
    `(missing)` where the fitting rows had one; anything else that is no place in the column's list
    of categories is none of them. Numbers are standardised in float64, as there, so that large ones
    with a small spread stay exact. A feature that is 0 or 1 has two values when standardised, which
    are known beforehand.

    Args:
        table: the fitted preprocessing.
    """

    fill: Tensor
    mean: Tensor
    scale: Tensor
    flagged: Tensor
    unknown: Tensor
    spread: Tensor
    place: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, table: Table) -> None:
        super().__init__()
        lists = list(table.categorical.values())
        self.numbers, self.flags = len(table.numeric), len(table.flagged)
        mean, scale = np.array(table.mean), np.array(table.scale)
        low, high = (((bit - mean) / scale).astype(np.float32)[self.numbers :] for bit in (0, 1))
        names, lengths = list(table.numeric), [len(every) for every in lists]
        parts = {
            "fill": np.array(list(table.numeric.values()), dtype=np.float64),
            "mean": mean[: self.numbers],
            "scale": scale[: self.numbers],
            "flagged": np.array([names.index(name) for name in table.flagged], dtype=np.int64),
            "unknown": np.array(
                [every.index(MISSING) if MISSING in every else -1 for every in lists],
                dtype=np.float32,
            ),
            "spread": np.repeat(np.eye(len(lists), dtype=np.float32), lengths, axis=1),
            "place": np.array([at for long in lengths for at in range(long)], np.float32),
            "low": low,
            "high": high,
        }
        for name, values in parts.items():
            if values.size:  # torch.export cannot save a buffer of nothing
                self.register_buffer(name, torch.tensor(values))

    def forward(self, x: Tensor) -> Tensor:
        """Float32 ``[N, columns]`` to float32 ``[N, features]``."""
        there = x.abs() < math.inf  # not so where NaN
        parts = []
        if self.numbers:
            numbers = x[:, : self.numbers].double()
            filled = torch.where(there[:, : self.numbers], numbers, self.fill)
            parts.append(((filled - self.mean) / self.scale).float())
        flags = self.flags
        if flags:
            known = there.index_select(1, self.flagged)
            parts.append(torch.where(known, self.low[:flags], self.high[:flags]))
        if x.shape[1] > self.numbers:
            given = torch.where(there[:, self.numbers :], x[:, self.numbers :], self.unknown)
            # each value once per category of its column: a product with zeros and ones is exact,
            # and onnxruntime gathers columns more slowly than it multiplies
            hit = given @ self.spread == self.place
            parts.append(torch.where(hit, self.high[flags:], self.low[flags:]))
        return torch.cat(parts, dim=1)
