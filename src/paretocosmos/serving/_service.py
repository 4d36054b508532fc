"""A run and all that answers for it."""

import asyncio
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from starlette.exceptions import HTTPException

from paretocosmos.runs.like import predicts_at
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import SMALL_STEP
from paretocosmos.serving._batching import Batcher
from paretocosmos.serving._body import Bodies
from paretocosmos.serving._chooser import Chooser
from paretocosmos.serving._measures import Measures
from paretocosmos.serving._models import criteria_model, question_model
from paretocosmos.serving._network import Answers, Network, Rays, TorchNetwork, activated
from paretocosmos.serving._refusal import read_json
from paretocosmos.serving._rows import NumberRows, Numbers, Rows, TableRows
from paretocosmos.serving._settings import Settings

__all__ = ["Service"]

# Rows of a pass under load, about as many as there are clients.
TOGETHER = 64
LARGEST = float(np.finfo(np.float32).max)


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
        front, table, shape = self.run.front, self.run.table, self.run.record["input_shape"]
        self.rows: Rows = NumberRows(tuple(shape)) if table is None else TableRows(table)
        self._threshold = predicts_at(self.run).threshold
        self.question_model = question_model(
            self.rows, names=front.names, most=settings.max_rows, threshold=self._threshold
        )
        self.example = {
            "inputs": self.rows.example,
            "preference": [1 / front.objectives] * front.objectives,
        }
        self.criteria_model = criteria_model([*front.names, *front.metrics])
        self.network: Network = TorchNetwork(self.run, self.rows)
        if settings.onnx is not None:
            from paretocosmos.serving._onnx import OnnxNetwork

            self.network = OnnxNetwork(settings.onnx, self.run, self.rows, threads=threads)
        alone = not settings.batching
        self.batcher = Batcher(self.network, self.measures, alone=alone, threads=threads)
        self.chooser = Chooser(
            self.run, data=settings.data, timeout=settings.timeout, threads=threads
        )
        self._classes = classified(self.run)

    def question(self, body: bytes) -> tuple[Numbers, Rays, list[str], float]:
        """The rows, rays and threshold of a body; whatever is wrong with it is refused."""
        asked = read_json(self.question_model, body, columns=self.rows.columns)
        rows, warnings = self.rows.numbers(asked.inputs)
        _check_size(rows)
        if len(asked.preference) not in (1, len(rows)):
            rule = f"`preference` is one ray for all rows or one for each, here {len(rows)}"
            raise HTTPException(422, f"{rule}; found {len(asked.preference)}")
        rays = np.array(asked.preference, dtype=np.float32)
        threshold: float = getattr(asked, "threshold", self._threshold)
        return rows, self.network.used(rays), warnings, threshold

    def criteria(self, body: bytes) -> dict[str, Any]:
        """The arguments of `run.choose` in a body."""
        return read_json(self.criteria_model, body).model_dump(exclude_none=True)

    async def predict(
        self, rows: Numbers, rays: Rays, warnings: list[str], threshold: float
    ) -> dict[str, Any]:
        """The answer to `/predict`, for what `question` gave."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                answers = await self.batcher.answer(rows, rays)
        except TimeoutError as error:
            raise HTTPException(503, "the server is too busy: try again later") from error
        return self._said(answers, rays, warnings, threshold)

    def _said(
        self, answers: Answers, rays: Rays, warnings: list[str], threshold: float
    ) -> dict[str, Any]:
        for out in answers.values():
            _refuse_rows(~np.isfinite(out), "which gives nothing finite for it")
        used = rays.tolist()
        shared = {"preference": used if len(used) > 1 else used[0], "warnings": warnings}
        if self.run.table is not None:
            likely = answers["probability"]
            about = {key: self.run.record["about"].get(key) for key in ("target", "positive")}
            decided = {"decisions": (likely > threshold).tolist(), "threshold": threshold}
            return {"probabilities": likely.tolist(), **decided, **about, **shared}
        said = {"outputs": {head: out.tolist() for head, out in answers.items()}}
        if self._classes:
            of_classes = {head: answers[head] for head in answers if head in self._classes}
            said["probabilities"] = {h: activated(out).tolist() for h, out in of_classes.items()}
        if list(answers) == ["outputs"]:  # the only head has no name
            said = {key: heads["outputs"] for key, heads in said.items()}
        return said | shared


def _check_size(rows: Numbers) -> None:
    """Refuse numbers beyond float32, also those of a sign for which the network gives something."""
    with np.errstate(invalid="ignore"):
        _refuse_rows(np.abs(rows) > LARGEST, f"which takes at most {LARGEST:.2g}")


def _refuse_rows(wrong: npt.NDArray[np.bool_], why: str) -> None:
    rows = wrong.reshape(len(wrong), -1).any(axis=1)
    if rows.any():
        which = f"row {int(rows.argmax())} has numbers too large for the network"
        raise HTTPException(422, f"{which}, {why}")


def threads_of(run: Run, workers: int) -> int:
    """Threads of a pass: one where it is small, as in training, else a worker's share."""
    flat = len(run.record["input_shape"]) == 1
    if flat and run.record["parameters"] * TOGETHER < SMALL_STEP:
        return 1
    return max(1, torch.get_num_threads() // workers)


def classified(run: Run) -> set[str]:
    """The heads whose outputs are logits of classes: those whose accuracy the front reports."""
    outputs = run.record["outputs"]
    heads = {head: f"accuracy_{head}" for head in outputs} if isinstance(outputs, dict) else {}
    known = heads or {"outputs": "accuracy"}
    return {head for head, metric in known.items() if metric in run.front.metrics}
