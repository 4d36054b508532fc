"""`POST /choose`: criteria in JSON, and the point that meets them best."""

import asyncio
import functools
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np

from paretocosmos.errors import ParetoCosmosError
from paretocosmos.pareto.selection import point_of
from paretocosmos.problems import Problem
from paretocosmos.runs.run import Run
from paretocosmos.serving._refusal import RefusedError, refuse, shown

__all__ = ["KEYS", "Chooser", "read_criteria"]

KEYS = (
    "max",
    "min",
    "minimize",
    "maximize",
    "knee",
    "weights",
    "near",
    "allow_constant",
    "evaluations",
)
# Requests that may wait for the one that is being answered, and rays one may ask for.
WAITING, EVALUATIONS = 8, 100


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
            refuse(f"{WAITING} requests are waiting already: try again later", status=429)
        self._waiting += 1
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                work = functools.partial(self._answer, criteria)
                return await loop.run_in_executor(self._thread, work)
        except TimeoutError as error:
            raise RefusedError(
                503, f"choosing took longer than {self._timeout:g} s: ask for fewer `evaluations`"
            ) from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer(self, criteria: dict[str, Any]) -> dict[str, Any]:
        if self._problem is None:
            try:
                self._problem = self._run.problem(data=self._data)
            except ParetoCosmosError as error:  # looked for once: it may be a download
                self._problem = str(error)
                logging.getLogger("uvicorn.error").warning("choosing without data: %s", error)
        if not isinstance(self._problem, str):
            return self._run.choose(**criteria, problem=self._problem).to_dict()
        held = {key: value for key, value in criteria.items() if key != "evaluations"}
        val = self._run.front_val.choose(**held)
        same = np.isclose(self._run.front.rays, val.ray, atol=1e-6).all(axis=1)
        test = point_of(self._run.front, int(same.argmax())).to_dict() if same.any() else None
        return {
            "ray": list(val.ray),
            "val": val.to_dict(),
            "test": test,
            "evaluations": 0,
            "note": "chosen among the rays of the front: the data could not be read here",
        }


def read_criteria(content: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `run.choose`; what they mean is checked there, what they are is here."""
    criteria = {key: value for key, value in content.items() if value is not None}
    for key, value in criteria.items():
        if key in ("max", "min") or (key == "near" and isinstance(value, dict)):
            if not isinstance(value, dict) or not all(map(_is_number, value.values())):
                refuse(f"`{key}` is an object of names and numbers, found {shown(value)}")
        elif key in ("weights", "near"):
            if not isinstance(value, list) or not all(map(_is_number, value)):
                refuse(f"`{key}` is a list with a number per objective, found {shown(value)}")
        elif key in ("minimize", "maximize"):
            if not isinstance(value, str):
                refuse(f"`{key}` is the name of an objective or a metric, found {shown(value)}")
        elif key == "evaluations":
            if type(value) is not int or not 2 <= value <= EVALUATIONS:
                refuse(
                    f"`evaluations` is a whole number from 2 to {EVALUATIONS}, found {shown(value)}"
                )
        elif not isinstance(value, bool):
            refuse(f"`{key}` is true or false, found {shown(value)}")
    return criteria


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
