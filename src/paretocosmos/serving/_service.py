"""A run and all that answers for it."""

import asyncio
from typing import Any, NamedTuple, final

import torch

from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import SMALL_STEP
from paretocosmos.serving._answer import classified, prediction
from paretocosmos.serving._batching import Batcher
from paretocosmos.serving._body import Bodies, parsed
from paretocosmos.serving._criteria import Chooser
from paretocosmos.serving._measures import Measures
from paretocosmos.serving._network import Network, TorchNetwork
from paretocosmos.serving._preference import Rays, read_preference
from paretocosmos.serving._refusal import RefusedError, refuse
from paretocosmos.serving._rows import NumberRows, Numbers, Rows
from paretocosmos.serving._settings import Settings
from paretocosmos.serving._table_rows import TableRows

__all__ = ["Service"]

# Rows of a pass under load, about as many as there are clients.
TOGETHER = 64


class Question(NamedTuple):
    """What `/predict` is asked, checked."""

    rows: Numbers
    rays: Rays
    warnings: list[str]


@final
class Service:
    """A loaded run, its network, the queue before it, and what is counted.

    Args:
        settings: what the server was told.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.run = load_run(
            settings.folder, trust=settings.trust, verify=settings.verify, device=settings.device
        )
        threads = threads_of(self.run, settings.workers)
        self.measures = Measures()
        self.bodies = Bodies(max_bytes=settings.max_bytes, timeout=settings.timeout)
        table, shape = self.run.table, tuple(self.run.record["input_shape"])
        self.rows: Rows = NumberRows(shape) if table is None else TableRows(table)
        self.network: Network = TorchNetwork(self.run, self.rows)
        if settings.onnx is not None:
            from paretocosmos.serving._onnx import OnnxNetwork

            self.network = OnnxNetwork(settings.onnx, self.run, self.rows, threads=threads)
        alone = not settings.batching
        self.batcher = Batcher(self.network, self.measures, alone=alone, threads=threads)
        self.chooser = Chooser(self.run, data=settings.data, timeout=settings.timeout)
        self._classes = classified(self.run)

    def question(self, body: bytes) -> Question:
        """The rows and rays of a body; whatever is wrong with it is refused."""
        content = parsed(body, ("inputs", "preference"))
        for key in ("inputs", "preference"):
            if key not in content:
                refuse(f"the body has `inputs` and `preference`, found no `{key}`")
        rows, warnings = self.rows.read(content["inputs"], most=self.settings.max_rows)
        rays = read_preference(content["preference"], rows=len(rows), names=self.run.front.names)
        return Question(rows, self.network.used(rays), warnings)

    async def predict(self, asked: Question) -> dict[str, Any]:
        """The answer to `/predict`."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                answers = await self.batcher.answer(asked.rows, asked.rays)
        except TimeoutError as error:
            raise RefusedError(503, "the server is too busy: try again later") from error
        return prediction(self.run, answers, asked.rays, asked.warnings, self._classes)

    def close(self) -> None:
        """Let the threads end."""
        self.batcher.close()
        self.chooser.close()
        self.bodies.close()


def threads_of(run: Run, workers: int) -> int:
    """Threads of a pass: one where it is small, as in training, else a worker's share."""
    flat = len(run.record["input_shape"]) == 1
    if flat and run.record["parameters"] * TOGETHER < SMALL_STEP:
        return 1
    return max(1, torch.get_num_threads() // workers)
