"""`POST /choose`: the point that meets criteria best."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np
from starlette.exceptions import HTTPException

from paretocosmos.errors import ConfigurationError, ParetoCosmosError
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.pareto.selection import point_of
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run

__all__ = ["Chooser"]

# Requests that may wait for the one that is being answered.
WAITING = 8


@final
class Chooser:
    """Answers requests one after the other, in a thread of its own.

    Args:
        run: whose points are chosen.
        data: where the problem's data lies now, if moved.
        timeout: seconds a request may take.
    """

    def __init__(self, run: Run, *, data: str | None, timeout: float) -> None:
        self._run, self._data, self._timeout = run, data, timeout
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="choose")
        self._waiting = 0
        self._problem: Problem | str | None = None

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
        if self._problem is None:
            try:
                self._problem = self._run.problem(data=self._data)
            except ParetoCosmosError as error:  # looked for once: it may be a download
                self._problem = str(error)
                logging.getLogger("uvicorn.error").warning("choosing without data: %s", error)
        if not isinstance(self._problem, str):
            return self._run.choose(**criteria, problem=self._problem).to_dict()
        for name in {"confidence", "threshold"} & criteria.keys():
            why = f"a `{name}` needs the data, which could not be read here: leave it out"
            raise ConfigurationError(why)
        held = {key: value for key, value in criteria.items() if key != "evaluations"}
        val = self._run.front_val.choose(**held)
        same = np.isclose(self._run.front.rays, val.ray, atol=1e-6).all(axis=1)
        test = point_of(self._run.front, int(same.argmax())).to_dict() if same.any() else None
        return {
            "ray": list(val.ray),
            "val": val.to_dict(),
            "test": test,
            "evaluations": 0,
            "threshold": MIDDLE,
            "note": "chosen among the rays of the front: the data could not be read here",
        }
