"""`POST /choose`: the point that meets criteria best."""

import asyncio
import contextlib
import copy
import dataclasses
import json
import logging
import warnings
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np
import torch
from starlette.exceptions import HTTPException

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, ParetoCosmosError
from paretocosmos.evaluation.evaluate import evaluate_shares
from paretocosmos.evaluation.output_cache import OutputCache
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.pareto.front import get_point
from paretocosmos.pareto.selection import Criteria
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run, choose_from

__all__ = ["Chooser"]

# Requests that may wait for the one that is being answered.
WAITING = 8
# Answers that are kept: the same question has the same answer.
KEPT = 1000
# What a request may set beside criteria.
OPTIONS = {"threshold", "evaluations"}


@final
class Chooser:
    """Answers requests one after the other, in a thread of its own.

    It has a copy of the network, since predictions are made at the same time in another thread, and
    a conditioned network is for one thread at a time (`conditioning/_during.py`).

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
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        if run.table is not None:
            self._thread.submit(self._prepare)

    async def choose(self, criteria: dict[str, Any]) -> dict[str, Any]:
        """The answer of `run.choose`, as JSON has it."""
        if self._waiting >= WAITING:
            raise HTTPException(429, f"{WAITING} requests are waiting already: try again later")
        self._waiting += 1
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._thread, self._answer, criteria)
        except TimeoutError as error:
            why = f"choosing took longer than {self._timeout:g} s: ask for fewer `evaluations`"
            raise HTTPException(503, why) from error
        finally:
            self._waiting -= 1

    def _answer(self, criteria: dict[str, Any]) -> dict[str, Any]:
        asked = json.dumps(criteria, sort_keys=True)
        if asked not in self._answers:
            self._answers[asked] = self._chosen(criteria)
            if len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        self._answers.move_to_end(asked)
        return self._answers[asked]

    def _data_or_why(self) -> Problem | str:
        """The problem, or why it cannot be had; looked for once, since it may be a download."""
        if self._problem is None:
            try:
                with warnings.catch_warnings():  # said when it was trained
                    warnings.simplefilter("ignore", BenchmarkWarning)
                    self._problem = self._run.problem(data=self._data)
            except ParetoCosmosError as error:
                self._problem = str(error)
                logging.getLogger("uvicorn.error").warning("choosing without data: %s", error)
        return self._problem

    def _prepare(self) -> None:
        """Read the data and look at the front's rays and thresholds, before anybody asks."""
        with contextlib.suppress(Exception):  # said to whoever asks
            problem, rays = self._data_or_why(), torch.tensor(self._run.front_val.rays).float()
            if not isinstance(problem, str):
                model = self._run.model
                val = load_samples_for(model, problem, "val")
                evaluate_shares(model, problem, val, rays, split="val", cache=self._outputs)
                self._answer({"knee": True})
                if "accuracy" in problem.metrics:
                    self._answer({"maximize": "accuracy"})

    def _chosen(self, criteria: dict[str, Any]) -> dict[str, Any]:
        problem = self._data_or_why()
        if not isinstance(problem, str):
            options = {name: criteria[name] for name in OPTIONS & criteria.keys()}
            asked: Any = {name: value for name, value in criteria.items() if name not in OPTIONS}
            return choose_from(
                self._run,
                Criteria.from_options(asked),
                **options,
                problem=problem,
                cache=self._outputs,
            ).to_dict()
        for name in {"confidence", "threshold"} & criteria.keys():
            why = f"a `{name}` needs the data, which could not be read here: leave it out"
            raise ConfigurationError(why)
        asked = {key: value for key, value in criteria.items() if key != "evaluations"}
        val = self._run.front_val.choose(**asked)
        same = np.isclose(self._run.front.rays, val.ray, atol=1e-6).all(axis=1)
        test = get_point(self._run.front, int(same.argmax())).to_dict() if same.any() else None
        return {
            "ray": list(val.ray),
            "val": val.to_dict(),
            "test": test,
            "evaluations": 0,
            "threshold": MIDDLE,
            "asked": asked,
            "note": "chosen among the rays of the front: the data could not be read here",
        }
