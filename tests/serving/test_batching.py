"""The queue: who is answered together, and that nobody spoils it for the others."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest
from starlette.exceptions import HTTPException

from paretocosmos.serving import batching
from paretocosmos.serving.batching import Answers, Batcher, Network, Rays
from paretocosmos.serving.middleware import Metrics
from paretocosmos.serving.schemas import Numbers

OWN = {"process": str(os.getpid())}


class Sum(Network):
    """Answers a row with its number times the first entry of its ray; refuses 13."""

    def __init__(self, *, limit: int = 100, mixes: bool = True) -> None:
        self.limit, self.mixes = limit, mixes
        self.sizes: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def run_pass(self, rows: Numbers, rays: Rays) -> Answers:
        assert self.go.wait(600)
        self.sizes.append(len(rows))
        assert len(rows) <= self.limit
        assert len(rays) == 1 or (self.mixes and len(rays) == len(rows))
        if (rows == 13).any():
            raise ArithmeticError("13")
        return {"outputs": (rows[:, 0] * rays[:, 0]).astype(np.float32)}


def asked(*numbers: float, rays: list[float]) -> tuple[Numbers, Rays]:
    entries = np.array(rays, dtype=np.float32)
    return np.array(numbers)[:, None], np.stack([entries, 1 - entries], axis=1)


def together(network: Sum, *questions: tuple[Numbers, Rays]) -> tuple[list[Any], Metrics]:
    """Ask all at once."""
    metrics = Metrics()

    async def ask() -> list[Any]:
        batcher = Batcher(network, metrics)
        waiting: list[Coroutine[Any, Any, Answers]] = [batcher.predict(*one) for one in questions]
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(ask()), metrics


def numbers_of(answers: list[Any]) -> list[list[float]]:
    return [one["outputs"].tolist() for one in answers]


QUESTIONS = (asked(1, 2, rays=[0.5]), asked(3, rays=[0.25]), asked(4, 8, 12, rays=[1, 0.5, 0.25]))
ANSWERS = [[0.5, 1.0], [0.75], [4.0, 4.0, 3.0]]


def test_all_go_in_one_pass_and_get_their_own() -> None:
    network = Sum()
    answers, metrics = together(network, *QUESTIONS)
    assert numbers_of(answers) == ANSWERS
    assert network.sizes == [6]
    assert metrics.registry.get_sample_value("paretocosmos_rows_total", OWN) == 6


def test_a_network_that_takes_one_ray_is_called_once_for_each() -> None:
    network = Sum(mixes=False)
    answers, _ = together(network, *QUESTIONS)
    assert numbers_of(answers) == ANSWERS
    # 0.25 for two of them, 0.5 for three, 1 for one
    assert sorted(network.sizes) == [1, 2, 3]


def test_few_rays_of_many_rows_are_passes_of_their_own() -> None:
    network = Sum(limit=1000)
    rays = [0.5, 0.25] * 100
    answers, _ = together(network, asked(*range(20, 220), rays=rays))
    assert answers[0]["outputs"].tolist() == [
        number * ray for number, ray in zip(range(20, 220), rays, strict=True)
    ]
    assert network.sizes == [100, 100]


def test_passes_are_no_larger_than_the_network_bears() -> None:
    network = Sum(limit=4)
    answers, _ = together(network, *QUESTIONS, asked(*range(10), rays=[0.5]))
    assert numbers_of(answers) == [*ANSWERS, [n / 2 for n in range(10)]]
    assert network.sizes == [3, 3, 4, 4, 2]


def test_a_request_that_fails_fails_alone() -> None:
    answers, _ = together(Sum(), asked(1, rays=[1]), asked(13, rays=[1]), asked(2, rays=[1]))
    assert numbers_of([answers[0], answers[2]]) == [[1.0], [2.0]]
    assert isinstance(answers[1], ArithmeticError)


async def settle() -> None:
    """Let every task run until it waits for something else than its turn."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_while_a_pass_is_computed_the_next_ones_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH_DELAY", 0)
    network = Sum()
    network.go.clear()

    async def ask() -> None:
        batcher = Batcher(network, Metrics())
        first = asyncio.create_task(batcher.predict(*asked(1, rays=[1])))
        await settle()
        others = [asyncio.create_task(batcher.predict(*asked(n, rays=[1]))) for n in range(5)]
        await settle()
        others[0].cancel()  # a client that left
        network.go.set()
        await asyncio.gather(first, *others[1:])

    asyncio.run(ask())
    assert network.sizes == [1, 4]


def test_a_queue_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_WAITING_ROWS", 4)
    answers, _ = together(Sum(), *QUESTIONS)
    assert numbers_of(answers[:2]) == ANSWERS[:2]
    assert isinstance(answers[2], HTTPException)
    assert answers[2].status_code == 429
