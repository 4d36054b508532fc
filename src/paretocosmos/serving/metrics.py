"""Counters of a server in Prometheus's format."""

import os
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


@final
class Metrics:
    """Counters of one process; several workers have one each, told apart by `process`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the series
        # A registry of its own: the default one is global, and tests start several servers.
        self.registry, self._process = CollectorRegistry(), str(os.getpid())

        def make(kind: Any, name: str, about: str, *labels: str, **options: Any) -> Any:
            full_name, label_names = f"paretocosmos_{name}", ("process", *labels)
            metric = kind(full_name, about, label_names, registry=self.registry, **options)
            return metric if labels else metric.labels(self._process)

        self._requests = make(Counter, "requests", "Requests answered.", "path", "status")
        self._errors = make(Counter, "errors", "Requests answered with 4xx or 5xx.")
        self._rows = make(Counter, "rows", "Rows predicted.")
        self.open = make(Gauge, "open_requests", "Requests being answered.")
        self.waiting = make(Gauge, "waiting_rows", "Rows in the queue.")
        about = "From the request's head to its answer."
        self._seconds = make(Histogram, "request_seconds", about, "path", buckets=SECONDS)
        about = "Rows of a pass through the network."
        self._batch_rows = make(Histogram, "batch_rows", about, buckets=SIZES)
        about = "Requests of a pass."
        self._batch_requests = make(Histogram, "batch_requests", about, buckets=SIZES)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(self._process, path, status).inc()
        self._seconds.labels(self._process, path).observe(seconds)
        if status >= 400:
            self._errors.inc()

    def count_batch(self, rows: int, *, requests: int) -> None:
        """Count a batch that goes through the network."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_requests.observe(requests)
