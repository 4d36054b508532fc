"""A loaded run with everything that answers for it: `/predict` and `/choose`."""

import asyncio
import contextlib
import copy
import dataclasses
import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from starlette.exceptions import HTTPException

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate_shares
from paretocosmos.evaluation.samples import OutputCache, load_samples_for
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.pareto.front import get_point
from paretocosmos.pareto.selection import Criteria
from paretocosmos.problems import Problem
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run, choose_from, predicts_at
from paretocosmos.runtime.device import SMALL_STEP
from paretocosmos.serving.batching import (
    Answers,
    Batcher,
    Network,
    Rays,
    to_probabilities,
)
from paretocosmos.serving.middleware import Metrics
from paretocosmos.serving.request_body import BodyReader, parse_body
from paretocosmos.serving.schemas import (
    NumberRows,
    Numbers,
    Rows,
    TableRows,
    make_criteria_model,
    make_question_model,
)
from paretocosmos.serving.settings import Settings

# Requests that may wait for the one that is being answered.
MAX_WAITING = 8
# What a request may set beside criteria.
OPTIONS = {"threshold", "evaluations"}


@final
class Chooser:
    """Answers requests one after the other, in a thread of its own.

    It has a copy of the network, since predictions are made at the same time in another thread, and
    a conditioned network is for one thread at a time (`nn/conditioning/injection.py`).

    It keeps the data, the network's outputs and its answers. A table is read as soon as the server
    starts; other data may be large, and is read when somebody asks.

    Args:
        run: whose points are chosen.
        data: where the problem's data lies now, if moved.
        timeout: seconds a request may take.
        threads: of a pass; more than the predictions leave free would wait for each other.
    """

    def __init__(self, run: Run, *, data: str | None, timeout: float, threads: int = 1) -> None:
        self._run = dataclasses.replace(run, model=copy.deepcopy(run.model))
        self._data, self._timeout = data, timeout
        self._thread = ThreadPoolExecutor(
            1, "choose", initializer=torch.set_num_threads, initargs=(threads,)
        )
        self._waiting = 0
        self._problem: Problem | str | None = None
        self._outputs = OutputCache()
        if run.table is not None:
            # Reading and evaluating takes seconds, which the first client would have to wait for.
            self._thread.submit(self._prepare)

    async def choose(self, criteria: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `run.choose` as JSON."""
        if self._waiting >= MAX_WAITING:
            raise HTTPException(429, f"{MAX_WAITING} requests are waiting already: try again later")
        # Requests wait in the executor's queue, which has no limit of its own.
        self._waiting += 1
        loop = asyncio.get_running_loop()
        try:
            # The thread cannot be stopped: it finishes, and its outputs serve whoever asks again.
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._thread, self._choose, criteria)
        except TimeoutError as error:
            why = f"choosing took longer than {self._timeout:g} s: ask for fewer `evaluations`"
            raise HTTPException(503, why) from error
        finally:
            self._waiting -= 1

    def _load_problem(self) -> Problem | str:
        """Load the problem once, or return why that failed."""
        if self._problem is None:
            try:
                with warnings.catch_warnings():  # shown when it was trained
                    warnings.simplefilter("ignore", BenchmarkWarning)
                    self._problem = self._run.problem(data=self._data)
            except ParetoCosmosError as error:
                self._problem = str(error)
                logging.getLogger("uvicorn.error").warning("choosing without data: %s", error)
        return self._problem

    def _prepare(self) -> None:
        """Read the data and evaluate the front's rays and thresholds before the first request."""
        with contextlib.suppress(Exception):  # shown to the next client who asks
            problem, rays = self._load_problem(), torch.tensor(self._run.front_val.rays).float()
            if not isinstance(problem, str):
                model = self._run.model
                val = load_samples_for(model, problem, "val")
                evaluate_shares(model, problem, val, rays, split="val", cache=self._outputs)
                self._choose({"knee": True})
                if "accuracy" in problem.metrics:
                    self._choose({"maximize": "accuracy"})

    def _choose(self, criteria: dict[str, Any]) -> dict[str, Any]:
        problem = self._load_problem()
        if not isinstance(problem, str):
            options = {name: criteria[name] for name in OPTIONS & criteria.keys()}
            bounds: Any = {name: value for name, value in criteria.items() if name not in OPTIONS}
            return choose_from(
                self._run,
                Criteria.from_options(bounds),
                **options,
                problem=problem,
                cache=self._outputs,
            ).to_dict()
        for name in {"confidence", "threshold"} & criteria.keys():
            why = f"a `{name}` needs the data, which could not be read here: leave it out"
            raise ConfigurationError(why)
        asked = {key: value for key, value in criteria.items() if key != "evaluations"}
        val = self._run.front_val.choose(**asked)
        # The test front may have other rays than the validation front: without data, no new
        # evaluation.
        equal = np.isclose(self._run.front.rays, val.ray, atol=1e-6).all(axis=1)
        test = get_point(self._run.front, int(equal.argmax())).to_dict() if equal.any() else None
        return {
            "ray": list(val.ray),
            "val": val.to_dict(),
            "test": test,
            "evaluations": 0,
            "threshold": MIDDLE,
            "asked": asked,
            "note": "chosen among the rays of the front: the data could not be read here",
        }


# Rows of a pass under load, about as many as there are clients.
ROWS_UNDER_LOAD = 64
MAX_FLOAT32 = float(np.finfo(np.float32).max)


@final
class Service:
    """A loaded run, its network, the queue before it, and what is counted.

    Args:
        settings: of the server.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.run = load_run(settings.folder, trust=settings.trust, device=settings.device)
        # More threads than one slow small matrix products down, since they have to be woken.
        is_small = self.run.record["parameters"] * ROWS_UNDER_LOAD < SMALL_STEP
        if is_small and len(self.run.record["input_shape"]) == 1:
            threads = 1
        else:
            threads = max(1, torch.get_num_threads() // settings.workers)
        self.metrics = Metrics()
        self.body_reader = BodyReader(max_bytes=settings.max_bytes, timeout=settings.timeout)
        front, table, shape = self.run.front, self.run.table, self.run.record["input_shape"]
        self.rows: Rows = NumberRows(tuple(shape)) if table is None else TableRows(table)
        default = predicts_at(self.run)
        self._threshold = default.threshold
        self.question_model = make_question_model(
            self.rows, names=front.names, most=settings.max_rows, default=default
        )
        self.example = {
            "inputs": self.rows.example,
            "preference": list(default.ray or [1 / front.objectives] * front.objectives),
        }
        self.criteria_model = make_criteria_model([*front.names, *front.metrics])
        self.network = Network(self.run, self.rows)
        self.batcher = Batcher(self.network, self.metrics, threads=threads)
        self.chooser = Chooser(
            self.run, data=settings.data, timeout=settings.timeout, threads=threads
        )
        # the heads with logits of classes: those whose accuracy the front reports
        outputs = self.run.record["outputs"]
        heads = {head: f"accuracy_{head}" for head in outputs} if isinstance(outputs, dict) else {}
        metrics = heads or {"outputs": "accuracy"}
        self._classes = {head for head, metric in metrics.items() if metric in front.metrics}

    def parse_question(self, body: bytes) -> tuple[Numbers, Rays, list[str], float]:
        """Return the rows, rays, warnings and threshold of a body."""
        question = parse_body(self.question_model, body, columns=self.rows.columns)
        rows, warnings = self.rows.to_numbers(question.inputs)
        _check_size(rows)
        if len(question.preference) not in (1, len(rows)):
            rule = f"`preference` is one ray for all rows or one for each, here {len(rows)}"
            raise HTTPException(422, f"{rule}; found {len(question.preference)}")
        rays = np.array(question.preference, dtype=np.float32)
        threshold: float = getattr(question, "threshold", self._threshold)
        return rows, self.network.select_rays(rays), warnings, threshold

    def parse_criteria(self, body: bytes) -> dict[str, Any]:
        """Return the arguments of `run.choose` in a body."""
        return parse_body(self.criteria_model, body).model_dump(exclude_none=True)

    async def predict(
        self, rows: Numbers, rays: Rays, warnings: list[str], threshold: float
    ) -> dict[str, Any]:
        """Answer `/predict` for what `parse_question` returned."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                answers = await self.batcher.predict(rows, rays)
        except TimeoutError as error:
            raise HTTPException(503, "the server is too busy: try again later") from error
        return self._format_answer(answers, rays, warnings, threshold)

    def _format_answer(
        self, answers: Answers, rays: Rays, warnings: list[str], threshold: float
    ) -> dict[str, Any]:
        for out in answers.values():
            _check_rows(~np.isfinite(out), "which gives nothing finite for it")
        preferences = rays.tolist()
        shared = {
            "preference": preferences if len(rays) > 1 else preferences[0],
            "warnings": warnings,
        }
        if self.run.table is not None:
            probabilities = answers["probability"]
            about = {key: self.run.record["about"].get(key) for key in ("target", "positive")}
            decisions = {"decisions": (probabilities > threshold).tolist(), "threshold": threshold}
            return {"probabilities": probabilities.tolist(), **decisions, **about, **shared}
        response = {"outputs": {head: out.tolist() for head, out in answers.items()}}
        if self._classes:
            logits = {head: answers[head] for head in answers if head in self._classes}
            response["probabilities"] = {
                h: to_probabilities(out).tolist() for h, out in logits.items()
            }
        if list(answers) == ["outputs"]:  # the only head has no name
            response = {key: heads["outputs"] for key, heads in response.items()}
        return response | shared


def _check_size(rows: Numbers) -> None:
    """Raise for numbers beyond float32, for which some networks would still give something."""
    with np.errstate(invalid="ignore"):
        _check_rows(np.abs(rows) > MAX_FLOAT32, f"which takes at most {MAX_FLOAT32:.2g}")


def _check_rows(is_wrong: npt.NDArray[np.bool_], why: str) -> None:
    rows = is_wrong.reshape(len(is_wrong), -1).any(axis=1)
    if rows.any():
        description = f"row {int(rows.argmax())} has numbers too large for the network"
        raise HTTPException(422, f"{description}, {why}")
