"""What a server counts, as Prometheus reads it."""

import os
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

__all__ = ["Measures"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


@final
class Measures:
    """Counters of one process; several workers have one each, told apart by `process`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the series
        self.registry, self._own = CollectorRegistry(), str(os.getpid())

        def own(kind: Any, name: str, about: str, *labels: str, **more: Any) -> Any:
            full, named = f"paretocosmos_{name}", ("process", *labels)
            made = kind(full, about, named, registry=self.registry, **more)
            return made if labels else made.labels(self._own)

        self._requests = own(Counter, "requests", "Requests answered.", "path", "status")
        self._errors = own(Counter, "errors", "Requests answered with 4xx or 5xx.")
        self._rows = own(Counter, "rows", "Rows predicted.")
        self.open = own(Gauge, "open_requests", "Requests being answered.")
        self.waiting = own(Gauge, "waiting_rows", "Rows in the queue.")
        about = "From the request's head to its answer."
        self._seconds = own(Histogram, "request_seconds", about, "path", buckets=SECONDS)
        about = "Rows of a pass through the network."
        self._batch_rows = own(Histogram, "batch_rows", about, buckets=SIZES)
        about = "Requests of a pass."
        self._batch_requests = own(Histogram, "batch_requests", about, buckets=SIZES)

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(self._own, path, status).inc()
        self._seconds.labels(self._own, path).observe(seconds)
        if status >= 400:
            self._errors.inc()

    def batch(self, rows: int, *, requests: int) -> None:
        """A batch goes through the network."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_requests.observe(requests)
