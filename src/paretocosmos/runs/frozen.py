"""A run that is frozen at one preference: whatever is asked of it, it answers at that one."""

import dataclasses

import numpy as np
import torch

from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.evaluation.check import evaluate_ray
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold
from paretocosmos.nn.conditioning import PerRayEnsemble
from paretocosmos.pareto.front import Front, Point, get_point
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.runs.record import measure_fronts
from paretocosmos.runs.run import Run, predicts_at


def freeze_run(run: Run, at: Choice | Rays, threshold: float | None = None) -> Run:
    """Return a run of one preference, like those of methods that train a network for each ray.

    Its fronts are what that preference reaches, at the threshold it is frozen at.

    Args:
        run: any run.
        at: what `run.choose` returned, or a ray, or weights by name. A ray is evaluated on the
            run's data; where they are not at hand, it must be one of the front's.
        threshold: the probability above which a decision between two classes is positive: by
            default the choice's, the estimator's, or 0.5.
    """
    if not isinstance(at, Choice):
        at = _evaluate_at(run, at, threshold)
    elif threshold not in (None, at.threshold):
        raise ConfigurationError(
            f"`threshold` must be that of the choice, {at.threshold:g}, found {threshold:g}: leave "
            "it out, or choose with it"
        )
    model, ray = run.model, list(at.ray)
    if isinstance(model, PerRayEnsemble):
        model, trained_for = model.nearest(torch.tensor(ray))
        ray = trained_for.tolist()
    fronts = {"test": _keep_point(run.front, at.test), "val": _keep_point(run.front_val, at.val)}
    told = [check.describe_reached(at.test[check.name]) for check in at.bounds]
    record = {
        **run.record,
        **measure_fronts(fronts),
        "fixed_rays": [ray],
        "predicts_at": {"ray": list(at.ray), "threshold": at.threshold, "frozen": True},
        "caveats": [*run.record["caveats"], *told],
        # of the whole front
        "evaluations": [],
        "findings": [],
        "centre": None,
        "sensitivity": None,
    }
    return dataclasses.replace(
        run,
        record=record,
        front=fronts["test"],
        front_val=fronts["val"],
        model=PerRayEnsemble([model], torch.tensor([ray]).to(next(model.parameters()))).eval(),
    )


def _evaluate_at(run: Run, ray: Rays, threshold: float | None) -> Choice:
    """Return one ray with its points on val and test, as if it had been chosen."""
    rays = as_rays(ray, run.front.objectives, names=run.front.names)
    if len(rays) > 1:
        raise ConfigurationError(f"`at` must be one ray, found {len(rays)}: freeze at each")
    # without the further digits of float32
    chosen = tuple(float(f"{weight:.7g}") for weight in rays[0].tolist())
    decided = predicts_at(run).threshold if threshold is None else threshold
    try:
        problem = at_threshold(run.problem(), decided)
    except RunError:
        measured = predicts_at(run)
        known = MIDDLE if not measured.frozen else measured.threshold
        test, val = (_find_point(front, chosen) for front in (run.front, run.front_val))
        if test is None or val is None or decided != known:
            raise
    else:
        val, _ = evaluate_ray(run.model, problem, chosen, split="val")
        # an estimator has no test rows: its validation front stands for both
        test = val
        if run.front.split == "test":
            test, _ = evaluate_ray(run.model, problem, chosen, split="test")
    return Choice(chosen, val, test, 2, decided)


def _find_point(front: Front, ray: tuple[float, ...]) -> Point | None:
    """Return the point of a front at a ray, or `None` if it has none."""
    indices = np.flatnonzero(np.isclose(front.rays, ray, atol=1e-6).all(axis=1))
    return get_point(front, int(indices[0])) if len(indices) else None


def _keep_point(front: Front, point: Point) -> Front:
    """Return a front of one point."""
    return Front(
        [point.ray],
        [[point.values[name] for name in front.names]],
        front.names,
        front.reference,
        metrics={name: [value] for name, value in point.metrics.items()},
        split=front.split,
        provenance=front.provenance,
    )
