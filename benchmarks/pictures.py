"""`python -m benchmarks.pictures`: pictures in files, read by a DataLoader alone and by a training.

Writes so many JPEG files of 64 x 64 pixels into a temporary folder, then measures in turn how many
of them a shuffling `DataLoader` reads, crops and flips a second when nothing is done with them, and
how many `fit` trains on, with as many workers: a network that is fast enough to wait for its data.
On a machine that others use, rates vary; so it also notes the seconds of a processor that the
workers spend on a picture in either, and the memory of the training process and of its workers.
Prints a table and, with `--out FILE`, writes the numbers as JSON.
"""

import argparse
import gc
import io
import json
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from paretocosmos import DataProblem, fit
from paretocosmos.objectives import CrossEntropy
from paretocosmos.runs.provenance import get_provenance

SIDE, CLASSES = 64, 10
PLAIN = 1000  # pictures that differ; every file is one of them
HEADS = ("first", "second")
WORKERS = 1
REPEATS = 3


class Folder(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """JPEG files, a thousand in a folder, read when they are asked for."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = str(folder), count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor, Tensor]:
        with Image.open(f"{self.folder}/{row // 1000}/{row}.jpg") as file:
            left, top = random.randint(0, 8), random.randint(0, 8)
            image = file.resize((SIDE, SIDE), box=(left, top, left + 56, top + 56))
            if random.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)
        return pixels, torch.tensor(row % CLASSES), torch.tensor(row // CLASSES % CLASSES)


class Small(nn.Module):
    """A network that trains faster than pictures are read."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 32), nn.ReLU())
        self.heads = nn.ModuleDict({head: nn.Linear(32, CLASSES) for head in HEADS})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.body(x[..., ::8, ::8])
        return {name: head(hidden) for name, head in self.heads.items()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--folder", type=Path, help="where to write the files; a temporary one")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        written = 0
        for count in sorted(arguments.counts):
            write(Path(folder), written, count)
            written = count
            # fewer passes over more pictures
            repeats = max(1, arguments.repeats * min(arguments.counts) // count)
            for batch in arguments.batches:
                rows.append(measured(Folder(Path(folder), count), batch, repeats))
                show(rows[-1])
    results: dict[str, Any] = {"side": SIDE, "workers": WORKERS, "rows": rows}
    results |= get_provenance(torch.device("cpu"))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def write(folder: Path, start: int, end: int) -> None:
    """Files of smooth random pictures."""
    draw = np.random.default_rng(1)
    plain = []
    for _ in range(PLAIN):
        coarse = Image.fromarray(draw.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        file = io.BytesIO()
        coarse.resize((SIDE, SIDE)).save(file, "jpeg")
        plain.append(file.getvalue())
    for row in range(start, end):
        if row % 1000 == 0:
            (folder / str(row // 1000)).mkdir()
        (folder / str(row // 1000) / f"{row}.jpg").write_bytes(plain[row % PLAIN])


def measured(data: Folder, batch: int, repeats: int) -> dict[str, Any]:
    """Rates of both in turn, their ratio, and memory."""
    alone, trained, memory = [], [], []
    spent: dict[str, list[float]] = {"alone": [], "trained": []}
    for _ in range(repeats):
        with Spent(len(data)) as worker:
            alone.append(read_alone(data, batch))
        spent["alone"].append(worker.each)
        with Spent(len(data)) as worker:
            rate, peak = train(data, batch)
        spent["trained"].append(worker.each)
        trained.append(rate)
        memory.append(peak)
    ratios = [ours / theirs for ours, theirs in zip(trained, alone, strict=True)]
    return {
        "pictures": len(data),
        "batch": batch,
        "alone": alone,
        "trained": trained,
        "ratios": ratios,
        "ratio": statistics.median(ratios),
        "seconds_of_workers": spent,
        "peak_bytes": max(memory),
    }


def read_alone(data: Folder, batch: int) -> float:
    """Pictures a second of an epoch in which nothing is done with them."""
    started = time.perf_counter()
    loader = DataLoader(data, batch_size=batch, shuffle=True, num_workers=WORKERS)
    seen = sum(len(found[0]) for found in loader)
    return seen / (time.perf_counter() - started)


def train(data: Folder, batch: int) -> tuple[float, int]:
    """Pictures a second of an epoch of training, and what it took of memory."""
    few = Folder(Path(data.folder), 512)
    problem = DataProblem(
        name="pictures",
        objectives=tuple(CrossEntropy(name=head, output=head, target=head) for head in HEADS),
        reference=(4.0, 4.0),
        outputs=dict.fromkeys(HEADS, CLASSES),
        train=DataLoader(data, batch_size=batch, shuffle=True, num_workers=WORKERS),
        val=few,
        test=few,
    )
    with tempfile.TemporaryDirectory() as folder, Peak() as peak:
        run = fit(
            problem,
            backbone=Small(),
            conditioning="film",
            epochs=1,
            settings={"rays": 3, "calibrate": False},
            out=Path(folder) / "run",
            progress=False,
            report=False,
        )
        return float(run.record["samples_per_second"]), peak.bytes


class Spent:
    """Seconds of a processor that worker processes spend on each of so many pictures."""

    def __init__(self, pictures: int) -> None:
        self._pictures, self.each = pictures, 0.0

    def __enter__(self) -> "Spent":
        self._before = _children()
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()  # workers that are no longer needed end
        self.each = (_children() - self._before) / self._pictures


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Peak:
    """The largest memory of this process and its children, pages of files and shared ones apart."""

    def __init__(self) -> None:
        self.bytes, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            every = [os.getpid(), *(child.pid for child in multiprocessing.active_children())]
            self.bytes = max(self.bytes, sum(map(_private, every)))


def _private(process: int | None) -> int:
    try:  # cheap: what is exact would cost as much as the training
        pages = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:  # it has ended meanwhile
        return 0
    return (int(pages[1]) - int(pages[2])) * resource.getpagesize()


def show(row: dict[str, Any]) -> None:
    """A line of the table."""
    alone, trained = (statistics.median(row[name]) for name in ("alone", "trained"))
    spent = [1e6 * statistics.median(own) for own in row["seconds_of_workers"].values()]
    size, memory = row["pictures"], row["peak_bytes"] / 1e6
    print(
        f"{size:>9,} pictures, batches of {row['batch']:4}: {alone:6,.0f} a second alone, "
        f"{trained:6,.0f} in training, ratio {row['ratio']:.2f}; workers spend {spent[0]:.0f} and "
        f"{spent[1]:.0f} µs on each; {memory:,.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
