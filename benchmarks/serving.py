"""`python -m benchmarks.serving --out results/serving.json`: a server under load.

Some clients on the same machine each ask for one row after the other, with another preference in
every request, and compare each answer with the known one. The same with a server that is killed and
started again meanwhile. One more client asks `/choose` for other points
of the default network all the time: bounds, the best accuracy under them, near points, and bounds
with a confidence; no two questions are the same.
"""

import argparse
import asyncio
import contextlib
import http.client
import importlib.metadata
import json
import os
import shlex
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks._clients import Log, Question, asking
from benchmarks._served import cpu_seconds, free_port, megabytes, server
from paretocosmos import fit
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.pareto import sample_rays
from paretocosmos.runs import Run, load_run
from paretocosmos.runs.provenance import get_provenance

SEED, QUESTIONS = 1, 20_000


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--seconds", type=float, default=60.0, help="of every load")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--run", type=Path, help="a run of adult; one is trained otherwise")
    parser.add_argument("--chosen", type=Path, help="one of the default preset to choose from")
    parser.add_argument("--server", default="", help="further options of `serve`")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    others = os.getloadavg()  # before we begin
    further = shlex.split(arguments.server)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BenchmarkWarning)
        place = arguments.run or trained(Path(folder) / "run")
        questions = questions_of(load_run(place))
        rows = {}
        rows["batching"] = loaded(place, questions, arguments, further)
        print("batching", rows["batching"], flush=True)
        larger = arguments.chosen or trained(Path(folder) / "larger", preset="default")
        rows["choosing"] = choosing(larger, arguments, further)
        print("choosing", rows["choosing"], flush=True)
        rows["killed and restarted"] = killed(place, questions, arguments, further)
        print("killed and restarted", rows["killed and restarted"])
    results = {
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "cores": os.cpu_count(),
        "others_load": [round(load, 2) for load in others],
        "rows": rows,
        "seed": SEED,
        "command": f"python -m benchmarks.serving {shlex.join(sys.argv[1:])}",
        **{name: importlib.metadata.version(name) for name in ("fastapi", "starlette", "uvicorn")},
        **{k: v for k, v in get_provenance(torch.device("cpu")).items() if k != "command"},
    }
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def trained(folder: Path, preset: str = "paper") -> Path:
    """A run of adult; how good it is matters to nobody here."""
    return fit("adult", preset=preset, epochs=5, seed=SEED, out=folder).folder


def questions_of(run: Run) -> list[Question]:
    """A row, a ray of its own, and the answer of the network alone."""
    table, draw = run.table, np.random.default_rng(SEED)
    assert table is not None
    numbers = {
        name: draw.normal(fill, scale, QUESTIONS).round(2)
        for (name, fill), scale in zip(table.numeric.items(), table.scale, strict=False)
    }
    texts = {name: draw.choice(labels, QUESTIONS) for name, labels in table.categorical.items()}
    frame = pd.DataFrame(numbers | texts)
    inputs = torch.from_numpy(table.transform(frame))
    rays = sample_rays(QUESTIONS, 2, generator=SEED)
    found = []
    for row, x, ray in zip(json.loads(frame.to_json(orient="records")), inputs, rays, strict=True):
        with torch.inference_mode():
            probability = float(torch.sigmoid(run.model(x[None], ray)).squeeze())
        body = json.dumps({"inputs": row, "preference": ray.tolist()}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        request = f"{head}Content-Type: application/json\r\n\r\n".encode() + body
        found.append(Question(request, probability))
    return found


def loaded(
    run: Path, questions: list[Question], arguments: argparse.Namespace, options: list[str]
) -> dict[str, Any]:
    """A server under load for some seconds, after warming up, in which caches fill."""
    port = free_port()
    with server(run, port, options) as process:
        warm = min(20.0, arguments.seconds / 2)
        asyncio.run(asking(port, questions, clients=arguments.clients, seconds=warm, log=Log()))

        async def measured() -> tuple[Log, list[float]]:
            log = Log()
            given = {"clients": arguments.clients, "seconds": arguments.seconds, "log": log}
            load = asyncio.create_task(asking(port, questions, **given))
            memory = [megabytes(process.pid)]
            for _ in range(6):
                await asyncio.sleep(arguments.seconds / 6)
                memory.append(megabytes(process.pid))
            await load
            return log, memory

        started, busy = time.perf_counter(), cpu_seconds(process.pid)
        log, memory = asyncio.run(measured())
        elapsed = time.perf_counter() - started
        cpu = cpu_seconds(process.pid) - busy
    return summary(log, elapsed) | {"memory_mb": memory, "server_cores": round(cpu / elapsed, 2)}


def choosing(run: Path, arguments: argparse.Namespace, options: list[str]) -> dict[str, Any]:
    """One client that asks for one point after the other, each another."""
    front, draw, port = load_run(run).front_val, np.random.default_rng(SEED), free_port()
    gap = front.names[1]
    low, high = float(front.values[:, 1].min()), float(front.values[:, 1].max())
    log, evaluations = Log(), list[int]()
    with server(run, port, options) as process:
        link = http.client.HTTPConnection("127.0.0.1", port)
        ask(link, {"knee": True})  # when the data has been read
        started, busy = time.perf_counter(), cpu_seconds(process.pid)
        while time.perf_counter() < started + arguments.seconds:
            bound = {gap: float(draw.uniform(low, high))}
            kinds = (
                {"max": bound},
                {"max": bound, "maximize": "accuracy"},
                {"near": [float(front.values[:, 0].min()), bound[gap]]},
                {"max": {gap: bound[gap] + 0.03}, "confidence": 0.9},
            )
            before = time.perf_counter()
            status, said = ask(link, kinds[len(log.seconds) % len(kinds)])
            log.seconds.append(time.perf_counter() - before)
            log.seen["right" if status == 200 else "error"] += 1
            evaluations.append(said.get("evaluations", 0))
        elapsed = time.perf_counter() - started
        cpu = cpu_seconds(process.pid) - busy
        link.close()
    found = {"mean_evaluations": round(float(np.mean(evaluations)), 1)}
    found["cpu_ms_each"] = round(1000 * cpu / len(log.seconds), 1)
    return summary(log, elapsed) | found


def ask(link: http.client.HTTPConnection, criteria: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """One question to `/choose`."""
    link.request("POST", "/choose", json.dumps(criteria), {"Content-Type": "application/json"})
    answer = link.getresponse()
    return answer.status, json.loads(answer.read())


def killed(
    run: Path, questions: list[Question], arguments: argparse.Namespace, options: list[str]
) -> dict[str, Any]:
    """SIGKILL under load, then a server on the same port; clients go on asking."""
    port, log, third = free_port(), Log(), max(arguments.seconds / 3, 4)

    async def measured() -> None:
        given = {"clients": arguments.clients, "seconds": 3 * third, "log": log}
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(server(run, port, options))
            load = asyncio.create_task(asking(port, questions, **given))
            await asyncio.sleep(third)
            first.kill()
            before = log.seen["right"]
            await asyncio.to_thread(stack.enter_context, server(run, port, options))
            await load
            assert log.seen["right"] > before, "the second server answered nobody"

    asyncio.run(measured())
    return summary(log, 3 * third)


def summary(log: Log, elapsed: float) -> dict[str, Any]:
    """Requests a second, how long they took, and what clients saw."""
    seconds = np.array(log.seconds)
    p50, p99, p999 = (round(float(q) * 1000, 1) for q in np.quantile(seconds, [0.5, 0.99, 0.999]))
    seen = {name: log.seen[name] for name in ("right", "wrong", "error", "cut", "refused")}
    asked = {"per_second": round(len(seconds) / elapsed, 1), "p50_ms": p50, "p99_ms": p99}
    return {
        **asked,
        "p999_ms": p999,
        "longest_ms": round(1000 * float(seconds.max()), 1),
        "seen": seen,
    }


if __name__ == "__main__":
    main()
