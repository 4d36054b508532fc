"""The network that answers, and the queue that batches rows of several requests."""

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from starlette.exceptions import HTTPException

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import PerRayEnsemble
from paretocosmos.nn.conditioning.hypernet import Hypernet
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.run import Run
from paretocosmos.serving.middleware import Metrics
from paretocosmos.serving.schemas import Numbers, Rows
from paretocosmos.types import Outputs

Rays = npt.NDArray[np.float32]

Answers = dict[str, npt.NDArray[np.float32]]
"""What a network says of rows ``[N, ...]``, by head; the only one of a table is `probability`."""

# Rows of a pass at most, and numbers of their inputs: an image grows in its first convolution.
MAX_PASS_ROWS, MAX_PASS_NUMBERS = 4096, 550_000
# Weights that a hypernetwork may emit in a pass, which it does for every row: 64 MB.
MAX_HYPERNET_WEIGHTS = 16_000_000
# Rows per ray from which a pass for each ray beats one with a ray for each row.
ROWS_PER_RAY = 8


class Network:
    """A run's network, which answers rows in passes of bounded size.

    Args:
        run: what is served.
        rows: how its rows become inputs.

    Attributes:
        limit: rows of one pass at most.
        mixes: whether one pass takes a ray for each row.
    """

    def __init__(self, run: Run, rows: Rows) -> None:
        self._model, self._rows = run.model, rows
        self._table, self._answer = run.table is not None, Answer.from_about(run.record["about"])
        if self._answer.task != "binary":
            raise ConfigurationError(
                f"a server supports only two classes, but `{run.folder}` predicts "
                f"{'a number' if self._answer.task == 'number' else 'several'}: use `paretocosmos "
                "predict`, or export it"
            )
        parameter = next(run.model.parameters())
        self._device, self._dtype = parameter.device, parameter.dtype
        self._ensemble = run.model if isinstance(run.model, PerRayEnsemble) else None
        self.mixes = self._ensemble is None
        # what goes through the network at once, so that memory stays bounded
        shape = run.record["input_shape"]
        limit: int = min(MAX_PASS_ROWS, MAX_PASS_NUMBERS // math.prod(shape))
        if isinstance(run.model, Hypernet):
            even = torch.full((run.front.objectives,), 1 / run.front.objectives)
            with torch.inference_mode():
                weights = run.model.weights(even.to(parameter))
            size = sum(weight.numel() for weight in weights.values())
            limit = min(limit, MAX_HYPERNET_WEIGHTS // size)
        self.limit = max(1, limit)

    def select_rays(self, rays: Rays) -> Rays:
        """Return the rays that answer: the nearest ones if there is a network for each of a few."""
        if self._ensemble is None:
            return rays
        nearest = [self._ensemble.nearest(torch.from_numpy(ray))[1] for ray in rays]
        return torch.stack(nearest).float().cpu().numpy()

    def run_pass(self, rows: Numbers, rays: Rays) -> Answers:
        """Run one pass: rows ``[N, ...]``, rays ``[1, J]`` or ``[N, J]``."""
        features = self._rows.to_features(rows)
        with torch.inference_mode():
            # The fitted preprocessing works in float32; the network may be float64.
            inputs = torch.from_numpy(features).to(self._device, self._dtype)
            # A ray of shape [J] takes the shared path of conditioned networks, [N, J] the one per
            # row.
            ray = torch.from_numpy(rays[0] if len(rays) == 1 else rays)
            outputs: Outputs = self._model(inputs, ray.to(self._device, self._dtype))
            if self._table:
                outputs = {self._answer.output_name: self._answer.read(outputs)}
            named = outputs if isinstance(outputs, Mapping) else {"outputs": outputs}
            return {head: out.float().cpu().numpy() for head, out in named.items()}

    def predict(self, rows: Numbers, rays: Rays) -> Answers:
        """Run as many passes as it takes: rows ``[N, ...]``, rays ``[1, J]`` or ``[N, J]``."""
        if len(rays) > 1:
            # One ray for many rows shares the work that depends on the ray alone, such as the
            # weights that a hypernetwork generates; with few rows per ray, one mixed pass is
            # faster.
            distinct, indices = np.unique(rays, axis=0, return_inverse=True)
            if not self.mixes or len(distinct) * ROWS_PER_RAY <= len(rows):
                return self._predict_by_ray(rows, distinct, indices.reshape(-1))
        passes = []
        for start in range(0, len(rows), self.limit):
            chunk = slice(start, start + self.limit)
            passes.append(self.run_pass(rows[chunk], rays if len(rays) == 1 else rays[chunk]))
        if len(passes) == 1:
            return passes[0]
        return {head: np.concatenate([p[head] for p in passes]) for head in passes[0]}

    def _predict_by_ray(
        self, rows: Numbers, rays: Rays, ray_indices: npt.NDArray[np.int64]
    ) -> Answers:
        answers: Answers = {}
        for index in range(len(rays)):
            members = np.flatnonzero(ray_indices == index)
            for head, out in self.predict(rows[members], rays[index : index + 1]).items():
                full = answers.setdefault(head, np.empty((len(rows), *out.shape[1:]), out.dtype))
                full[members] = out
        return answers


def to_probabilities(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Convert one logit a row to the positive class's probability, several to one per class."""
    # torch rather than numpy: the same rounding as in evaluation.
    tensor = torch.from_numpy(logits)
    multiclass = tensor.ndim > 1 and tensor.shape[-1] > 1
    out = tensor.softmax(dim=-1) if multiclass else tensor.reshape(len(tensor)).sigmoid()
    probabilities: npt.NDArray[np.float32] = out.numpy()
    return probabilities


Results = list[Answers | Exception]
# Seconds that the first request of a batch waits for others.
BATCH_DELAY = 0.001
# Rows that may wait; more would only wait longer.
MAX_WAITING_ROWS = 100_000
# And numbers in them: 128 megabytes.
MAX_WAITING_NUMBERS = 32_000_000


class QueuedRequest(NamedTuple):
    """Rows of one request, and the future of their answers."""

    rows: Numbers
    rays: Rays
    answers: "asyncio.Future[Answers]"


@final
class Batcher:
    """A queue on the event loop, and one thread that runs the network.

    The first request waits a millisecond for company; while a batch is computed the next ones
    gather. All bookkeeping is on the loop, so that there is nothing to lock.

    Args:
        network: answers rows with a ray for each.
        metrics: what it counts.
        threads: of a pass.
    """

    def __init__(self, network: Network, metrics: Metrics, *, threads: int = 1) -> None:
        self._network, self._metrics = network, metrics
        self._waiting: deque[QueuedRequest] = deque()
        self._rows = self._numbers = 0
        self._work: asyncio.Task[None] | None = None
        # set in the thread itself: libraries below torch do not share the setting of other threads
        self._thread: Executor = ThreadPoolExecutor(
            1, "network", initializer=torch.set_num_threads, initargs=(threads,)
        )
        metrics.waiting.set_function(lambda: self._rows)

    async def predict(self, rows: Numbers, rays: Rays) -> Answers:
        """Return the network's answers for rows ``[N, ...]`` at rays ``[1, J]`` or ``[N, J]``."""
        if (
            self._rows + len(rows) > MAX_WAITING_ROWS
            or self._numbers + rows.size > MAX_WAITING_NUMBERS
        ):
            why = f"{self._rows:,} rows are waiting already: try again in a second"
            raise HTTPException(429, why)
        request = QueuedRequest(rows, rays, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        # Counted here and not in the thread, so that the limit holds at once.
        self._rows += len(rows)
        self._numbers += rows.size
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._process_queue())
        return await request.answers

    async def _process_queue(self) -> None:
        # The first request waits for company; those that arrive during a pass need not.
        await asyncio.sleep(BATCH_DELAY)
        loop = asyncio.get_running_loop()
        while batch := self._take_batch():
            self._metrics.count_batch(
                sum(len(request.rows) for request in batch), requests=len(batch)
            )
            results = await loop.run_in_executor(
                self._thread, compute_answers, self._network, batch
            )
            for request, answers in zip(batch, results, strict=True):
                if request.answers.done():  # its client has left
                    continue
                if isinstance(answers, Exception):
                    request.answers.set_exception(answers)
                else:
                    request.answers.set_result(answers)

    def _take_batch(self) -> list[QueuedRequest]:
        """Take as many waiting requests as go through the network at once."""
        batch: list[QueuedRequest] = []
        rows = 0
        while self._waiting:
            count = len(self._waiting[0].rows)
            if batch and rows + count > self._network.limit:
                break
            request = self._waiting.popleft()
            self._rows -= count
            self._numbers -= request.rows.size
            if not request.answers.done():
                batch.append(request)
                rows += count
        return batch


def compute_answers(network: Network, batch: Sequence[QueuedRequest]) -> Results:
    """Compute the answers of every request; if a pass fails, try each request alone."""
    try:
        if len(batch) == 1:
            return [network.predict(batch[0].rows, batch[0].rays)]
        rows = np.concatenate([request.rows for request in batch])
        # A request with one ray for all its rows gets that ray once per row.
        repeats = [len(r.rows) // len(r.rays) for r in batch for _ in r.rays]
        rays = np.repeat(np.concatenate([request.rays for request in batch]), repeats, axis=0)
        answers = network.predict(rows, rays)
    except Exception as error:
        if len(batch) == 1:
            return [error]
        # One bad request must not fail the others that happened to be in its batch.
        return [answer for request in batch for answer in compute_answers(network, [request])]
    ends = accumulate((len(request.rows) for request in batch), initial=0)
    return [{head: out[a:b] for head, out in answers.items()} for a, b in pairwise(ends)]
