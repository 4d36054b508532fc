"""Training a problem's network in a folder that is gone afterwards."""

import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from paretocosmos.errors import DivergedError, FindingWarning, FrontWarning
from paretocosmos.estimators._problem import Fitted
from paretocosmos.evaluation.evaluate import evaluate
from paretocosmos.methods import Method
from paretocosmos.pareto.front import Front
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.fit import fit
from paretocosmos.training.progress import Progress, show_bars

__all__ = ["Trained", "passes", "train"]

# Where an epoch is a few steps, a training needs more epochs; without rows to select the best epoch
# by, more steps learn the rows by heart. Picked by held-out scores on small tables.
EPOCHS, STEPS, STEPS_UNJUDGED = 50, 1000, 300
# A small table is passed over several times in what counts as an epoch, which costs a checkpoint.
STEPS_AT_ONCE = 100
EVALUATIONS = 10
# What a training draws, and how its steps are recorded, belongs to the whole process: threads (a
# grid search with that backend) take turns.
ONE_AT_A_TIME = threading.Lock()
# Calls between somebody's `fit` and what is said here.
DEPTH = 5
# Numbers that a table repeated in this way may take: 16 megabytes.
REPEATED = 4_000_000
# What a record says of the files beside it, and of a front that is measured anew.
NOT_KEPT = ("files", "sha256", "metrics", "by_objective")


class Trained(NamedTuple):
    """What a training gave.

    Attributes:
        model: the network, in float64 on the CPU.
        front: its validation front.
        record: what `run.json` said of it.
    """

    model: nn.Module
    front: Front
    record: dict[str, Any]


def passes(
    epochs: int | None, rows: int, features: int, batch_size: int, *, judged: bool
) -> tuple[int, int]:
    """Epochs, and how often each passes over the rows.

    Args:
        epochs: passes over the data, if somebody said so.
        rows: to train on.
        features: of a row.
        batch_size: of a step.
        judged: whether other rows select the best epoch.

    >>> passes(None, 100_000, 10, 256, judged=True), passes(None, 50, 10, 50, judged=False)
    ((50, 1), (3, 100))
    """
    if epochs is not None:
        return epochs, 1
    steps = -(-rows // batch_size)
    wanted = max(EPOCHS, -(-(STEPS if judged else STEPS_UNJUDGED) // steps))
    repeat = max(1, min(STEPS_AT_ONCE // steps, REPEATED // (rows * features)))
    return -(-wanted // repeat), repeat


def train(
    problem: Fitted,
    *,
    method: str | Method | None,
    settings: Mapping[str, Any],
    seed: int,
    device: str,
    progress: Callable[[Progress], None] | bool = True,
    callbacks: Sequence[Callback] = (),
) -> Trained:
    """Train a network, bring it to the CPU and look at it there, in float64.

    So what it predicts for a row does not depend on the rows beside it, and a front tells exactly
    what predictions have. What the training found of its front is warned of, in a sentence each.

    Args:
        problem: what to train on.
        method: a method or its name; the default preset's if `None`.
        settings: of the method, the network and the training.
        seed: of all that is drawn.
        device: where to train.
        progress: a bar where somebody looks, none, or what is called after every epoch.
        callbacks: told of the training.
    """
    place = tempfile.TemporaryDirectory(prefix="paretocosmos-")
    with (
        ONE_AT_A_TIME,
        place as folder,
        show_bars(keep=False, quiet=progress is not True),
        warnings.catch_warnings(),
    ):
        # the reference point is not the caller's, and no number of an estimator's; what is found is
        # told once all is done, as of the caller's own line
        warnings.simplefilter("ignore", FrontWarning)
        try:
            run = fit(
                problem,
                method=method,
                settings=settings,
                seed=seed,
                device=device,
                out=Path(folder) / "run",
                progress=progress,
                callbacks=callbacks,
                report=False,
            )
        except DivergedError as error:  # it speaks of a checkpoint, which is gone with the folder
            what = str(error).partition(";")[0]
            raise DivergedError(f"{what}: lower `learning_rate` or look at the data") from error
    for finding in run.record["findings"]:
        warnings.warn(finding["text"], FindingWarning, stacklevel=DEPTH)
    model = run.model.cpu().double()
    rays = [[float(part) for part in ray] for ray in run.front_val.rays]
    origin = dict(run.front_val.provenance)
    front = evaluate(model, problem, split="val", rays=rays, provenance=origin)
    record = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    return Trained(model, front, record)
