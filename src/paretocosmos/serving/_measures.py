"""What a server counts, as Prometheus reads it."""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import final

__all__ = ["Measures"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


@final
class Histogram:
    """How often a number was at most each of some bounds.

    Args:
        bounds: in order.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> list[str]:
        """Its samples, each bound with all below it."""
        found, below = [], 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            below += count
            found.append(f'{name}_bucket{{{labels},le="{bound}"}} {below}')
        return [
            *found,
            f"{name}_sum{{{labels}}} {self.total:g}",
            f"{name}_count{{{labels}}} {below}",
        ]


@final
class Measures:
    """Counters of one process; several workers have one each, told apart by `process`."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows = 0
        self.seconds: dict[str, Histogram] = {}
        self.batch_rows = Histogram(SIZES)
        self.batch_requests = Histogram(SIZES)
        self.waiting: Callable[[], int] = lambda: 0
        self.open = 0

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[path, status] += 1
        self.seconds.setdefault(path, Histogram(SECONDS)).add(seconds)

    def batch(self, rows: int, *, requests: int) -> None:
        """A batch goes through the network."""
        self.rows += rows
        self.batch_rows.add(rows)
        self.batch_requests.add(requests)

    def text(self) -> str:
        """The text format of Prometheus, version 0.0.4."""
        own = f'process="{os.getpid()}"'
        failed = sum(count for (_, status), count in self.requests.items() if status >= 400)
        lines: list[str] = []

        def add(name: str, kind: str, about: str, samples: Sequence[str]) -> None:
            full = f"paretocosmos_{name}"
            lines.extend([f"# HELP {full} {about}", f"# TYPE {full} {kind}"])
            lines.extend(f"{full}{sample}" for sample in samples)

        counted = sorted(self.requests.items())
        add(
            "requests_total",
            "counter",
            "Requests answered.",
            [f'{{{own},path="{p}",status="{s}"}} {count}' for (p, s), count in counted],
        )
        add(
            "errors_total", "counter", "Requests answered with 4xx or 5xx.", [f"{{{own}}} {failed}"]
        )
        add("rows_total", "counter", "Rows predicted.", [f"{{{own}}} {self.rows}"])
        add("open_requests", "gauge", "Requests being answered.", [f"{{{own}}} {self.open}"])
        add("waiting_rows", "gauge", "Rows in the queue.", [f"{{{own}}} {self.waiting()}"])
        seconds = [
            line
            for path, histogram in sorted(self.seconds.items())
            for line in histogram.lines("", f'{own},path="{path}"')
        ]
        add("request_seconds", "histogram", "From the request's head to its answer.", seconds)
        for name, about, histogram in (
            ("batch_rows", "Rows of a pass through the network.", self.batch_rows),
            ("batch_requests", "Requests of a pass.", self.batch_requests),
        ):
            add(name, "histogram", about, histogram.lines("", own))
        return "\n".join(lines) + "\n"
