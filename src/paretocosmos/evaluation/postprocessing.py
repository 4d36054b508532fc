"""Networks whose ray only post-processes their outputs: what is fitted after their training.

Such a network (`TrainingTask.fit`) learns probabilities without any ray. What turns them into
answers at a ray is fitted afterwards, by more rows at once than a step of the training has.
"""

import torch
from torch import Tensor

from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.samples import Shares, map_batch
from paretocosmos.nn.conditioning import TrainingTask
from paretocosmos.problems import Problem, split_of
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Batch, Outputs, Targets, first, map_tensors

# Training rows to fit to at most, at the end and while training goes on.
ROWS, ROWS_QUICK = 65_536, 8_192
# Rows in one pass of the network.
CHUNK = 8_192


def fit_postprocessing(task: TrainingTask, problem: Problem, *, quick: bool = False) -> None:
    """Fit what a task fits after an epoch, on training rows; do nothing where there is nothing.

    Args:
        task: what the network is trained on.
        problem: where the rows are from.
        quick: whether fewer rows will do, while training goes on.
    """
    if task.fit is None:
        return
    rows, most = split_of(problem, "train"), ROWS_QUICK if quick else ROWS
    if len(rows) > most:
        # the same rows every time, from a generator of its own: how often this is called must not
        # change what the training draws
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:most]
        rows = map_batch(rows, lambda tensor: tensor[order.to(tensor.device)])
    outputs = predict_rows(task, problem, rows)
    device = first(outputs).device
    targets = {name: target.to(device) for name, target in rows.targets.items()}
    task.fit(outputs, targets, quick=quick)


def compute_quality(task: TrainingTask, problem: Problem, val: Shares) -> float:
    """Return minus the sum of a task's losses on held-out rows, to compare epochs by.

    A front would not do: a gap counted on a few hundred rows would select an epoch by chance.
    """
    ((_, samples),) = val  # all objectives are of the same rows
    batches = [(predict_rows(task, problem, batch), batch.targets) for batch in samples]
    outputs: Outputs = map_tensors(lambda *parts: torch.cat(parts), *(out for out, _ in batches))
    targets: Targets = map_tensors(lambda *parts: torch.cat(parts), *(t for _, t in batches))
    losses = [objective.loss(outputs, targets) for objective in task.objectives]
    return -float(torch.stack(losses).sum())


def predict_rows(task: TrainingTask, problem: Problem, rows: Batch) -> Outputs:
    """Return the outputs of a task's network for rows, in double precision."""
    parameter = next(task.network.parameters())
    # any ray will do, as the network of such a task does not read it
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives))
    chunks = []
    with evaluation_mode(task.network), set_precision("fp32"):
        for start in range(0, len(rows), CHUNK):

            def chunk(tensor: Tensor, start: int = start) -> Tensor:
                return tensor[start : start + CHUNK].to(parameter.device)

            inputs = problem.prepare(map_tensors(chunk, rows.inputs), parameter.dtype)
            outputs = task.network(inputs, ray.to(parameter))
            chunks.append(map_tensors(lambda out: out.double(), outputs))
    joined: Outputs = map_tensors(lambda *parts: torch.cat(parts), *chunks)
    return joined
