"""Presets: complete configurations by name, `default` (this package's) and `paper` (the paper's).

The caller's settings override a preset's. `paper` is `paper.toml`, problem by problem. `default` is
one rule for every problem: its numbers follow from the number of rows, the shape of an input and
whether the network is the caller's own or a deep one, never from a data set's name.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from paretocosmos.config.settings import Training, get_paper_network, get_paper_settings
from paretocosmos.errors import ConfigurationError, check_choice
from paretocosmos.io.schema import PRESETS
from paretocosmos.objectives import BinaryCrossEntropy, Objective, OneSidedError, RateObjective
from paretocosmos.objectives.groups import GroupObjective
from paretocosmos.problems import Problem, samples_in, split_of
from paretocosmos.problems.functions import FunctionProblem

CONDITIONINGS = {"default": "film", "paper": "input"}
"""The default of `condition`'s argument `how`."""

# By the number of an input's axes: 1 for a row, 3 for an image.
NETWORKS = {
    "default": {
        1: {"backbone": "mlp", "conditioning": "film"},  # `tabular` for the rows of a table
        3: {"backbone": "lenet", "conditioning": "film"},
    },
    "paper": {
        1: {"backbone": "mlp", "conditioning": "concat"},
        3: {"backbone": "lenet", "conditioning": "transposed_conv"},
    },
}

# Settings of every training under the default preset; reasons: docs/decisions/default_preset.md.
_ALWAYS: dict[str, Any] = {
    "optimizer": "adamw",
    "schedule": "cosine",
    "warmup": 0.02,
    "average": 0.06,
    "scale_losses": True,
    "calibrate": True,
    "weight_decay": 0.25,
    "alpha": 0.5,
    "stratified": True,
    "floor": 0.01,
    "rank": 1,
}
# COSMOS by default, and why: docs/decisions/default_method.md. It divides losses by their sizes
# itself, which is right for bounded outputs too.
_ALIGNED: dict[str, Any] = {
    "penalty": 2.0,
    "alignment": "inverse",
    "normalise": True,
    "least": 0.5,
    "scale_losses": False,
}
# A function of decision variables: its values have no noise and rays hardly share anything, so that
# a strong pull to where a ray points does no harm, and the middle of a concave front needs it.
# Its losses go from 0 to 1 along the front already.
_FUNCTION: dict[str, Any] = {
    "penalty": 5.0,
    "least": 0.0,
    "normalise": False,
    "scale_losses": False,
}
_VECTORS: dict[str, Any] = {"learning_rate": 2e-3, "rays_per_batch": 4}
# The table size with the largest learning rate and the least decay. Below it both are scaled by
# s = cbrt(rows / 30,000), at least 0.3, so that a network does not memorise 700 rows
# (docs/decisions/network_for_tables.md). A small table takes at least half the steps.
_FULL_RATE_ROWS, _LEAST_SCALE, _LEAST_STEPS_SCALE = 30_000, 0.3, 0.5
# The largest table whose network has a linear part beside the rest, if no ray enters it.
_LINEAR_PART_ROWS = 10_000
# The fewest validation rows that select the best epoch of a table; with fewer, noise would.
_SELECTION_ROWS = 500
_IMAGES: dict[str, Any] = {"learning_rate": 4e-3, "rays_per_batch": 8, "epochs": 30}
# Too high against too low: both losses are in one unit, and a ray asks for the quantile or the
# expectile of exactly its level, so that its weights must reach the losses unchanged.
_LEVELS: dict[str, Any] = {"scale_losses": False, "calibrate": False, "floor": 0.0}
# The caller's network may be deep or pretrained: small steps, little decay. A small one would only
# reach a part of the front by small steps.
_OWN_NETWORK = {"learning_rate": 5e-4, "weight_decay": 0.05}
_SMALL_NETWORK_RATE, _SMALL_NETWORK_WEIGHTS = 3e-3, 1_000_000
# The largest batch, by the number of an input's axes; a gap between groups needs many rows.
_LARGEST_BATCH = {1: 2048, 3: 256}
_SMALLEST_BATCH = 32
# Steps of a training on a table, and the fewest epochs of one that is so large that it needs more.
_STEPS, _LEAST_EPOCHS = 1000, 20
_VALIDATIONS = 12
# Targets that are never predicted.
AUXILIARY_TARGETS = ("sensitive", "weight")


def choose_preset(name: str | None, problem: Problem) -> str:
    """Return the named preset; without a name, `paper` under the paper's protocol."""
    if name is None:
        return "paper" if problem.protocol == "paper" else "default"
    return check_preset(name)


def check_preset(name: str) -> str:
    """Return the name if it is a preset's."""
    return check_choice("preset", name, PRESETS)


def choose_method(
    preset: str,
    objectives: Sequence[Objective],
    *,
    loop: bool = False,
) -> str:
    """Choose the method of a preset, for a caller who names none.

    The default is the weighted sum where a weight has a meaning of its own, as the level of a
    quantile; where an objective may vanish though nothing was learned, as the gap between groups of
    a network that answers the same to everybody; and where the length of the training is unknown.

    Args:
        preset: its name.
        objectives: what is traded.
        loop: whether a loop of somebody else trains, which does not know how long it will be.
    """
    gaps = any(isinstance(_unwrap(objective), GroupObjective) for objective in objectives)
    plain = preset == "default" and (loop or gaps or _trades_both_sides(objectives))
    return "linear" if plain else "cosmos"


def choose_network(preset: str, problem: Problem, method: object) -> dict[str, str]:
    """Return the names of the backbone and the conditioning for a problem.

    Args:
        preset: the name of the preset.
        problem: the problem; its inputs' shape decides, unless the paper names a backbone for it.
        method: the method, or its name.
    """
    names = dict(NETWORKS[preset].get(len(problem.input_shape), {}))
    # the encoding of `tabular` has steps: a plain network is better for numbers that follow others
    # in a straight line
    if preset == "default" and problem.tabular and not _predicts_numbers(problem):
        names["backbone"] = "tabular"
        adjustable = method == "linear" and getattr(problem, "group_use", "") != "none"
        if adjustable and find_rate_gap(problem) is not None:
            names["conditioning"] = "fairness_adjustment"
    paper = get_paper_network(_get_paper_name(problem))
    names |= paper if preset == "paper" else {k: v for k, v in paper.items() if k == "backbone"}
    if preset == "default" and "backbone" in names:
        names.setdefault("conditioning", "film")
    if len(names) < 2:
        raise ConfigurationError(
            f"`{problem.name}` has inputs of shape {problem.input_shape}, for which there is no "
            "default network: pass `model`, or `backbone` and `conditioning`"
        )
    return names


def compute_preset_settings(
    preset: str,
    problem: Problem,
    label: str,
    *,
    single: bool,
    backbone: str | nn.Module | None,
    conditioning: str | None,
    user_settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Compute the settings that a preset has for a problem, a method and a network.

    Args:
        preset: the name of the preset.
        problem: the problem.
        label: the method with its conditioning, as the paper calls it.
        single: set if the method trains one network for each of a few rays.
        backbone: its name, or a network of the caller.
        conditioning: its name; `None` if the caller passed the whole network.
        user_settings: the caller's settings, from which others may follow.
    """
    if preset == "paper":
        loader = {} if problem.batch_size is None else {"batch_size": problem.batch_size}
        # Algorithm 1 concatenates the ray to the input, and then draws one first layer for both
        drawn = {"joined": True} if conditioning == "concat" else {}
        return drawn | get_paper_settings(_get_paper_name(problem), label) | loader
    axes, rows = len(problem.input_shape), samples_in(problem, "train")
    steps, validations = _STEPS, _VALIDATIONS
    settings = _ALWAYS | (_VECTORS if axes == 1 else _IMAGES)
    # all corners, and as many rays between them
    settings["rays"] = max(Training.rays, 2 * len(problem.objectives))
    if backbone == "tabular":
        scale = max(_LEAST_SCALE, min(1.0, (rows / _FULL_RATE_ROWS) ** (1 / 3)))
        settings |= {"learning_rate": 6e-3 * scale, "weight_decay": 1 / scale**2}
        steps = round(_STEPS * max(_LEAST_STEPS_SCALE, scale))
        validations = 1 if len(split_of(problem, "val")) < _SELECTION_ROWS else validations
    own = backbone if isinstance(backbone, nn.Module) else None
    if own is not None or "backbone" in get_paper_network(_get_paper_name(problem)):
        settings |= _OWN_NETWORK
    if own is not None and _count_weights(own) <= _SMALL_NETWORK_WEIGHTS:
        settings["learning_rate"] = _SMALL_NETWORK_RATE
    if _trades_both_sides(problem.objectives):
        settings |= _LEVELS
    aligned = label == "cosmos" and choose_method(preset, problem.objectives) == "cosmos"
    if aligned:
        # for many objectives most rays of one alpha would lie near the centre, none at a corner
        settings |= _ALIGNED | {"alpha": 1 / len(problem.objectives)}
    # the samples of a function are all the same, so that each may have a ray of its own
    one_each = isinstance(problem, FunctionProblem)
    if one_each:
        settings |= _FUNCTION
    size = _read_int(user_settings, "batch_size") or problem.batch_size
    settings["batch_size"] = size = size or pick_batch_size(rows, axes)
    if axes == 1 or own is not None:
        least = _LEAST_EPOCHS if axes == 1 else int(settings["epochs"])
        settings["epochs"] = max(least, -(-steps // -(-rows // size)))
    epochs = _read_int(user_settings, "epochs") or int(settings["epochs"])
    settings["evaluate_every"] = max(1, epochs // validations)
    if aligned:
        settings["least_epochs"] = epochs // 2
    several = size if one_each else choose_rays_per_batch(preset, axes, size)
    rays_per_batch = 1 if single else several
    settings["rays_per_batch"] = _read_int(user_settings, "accumulate") or rays_per_batch
    gap = find_rate_gap(problem)
    if conditioning == "fairness_adjustment" and gap is not None:
        # its network is trained without rays: they enter the adjustment, which is fitted afterwards
        settings |= {"rays_per_batch": 1, "scale_losses": False, "sensitive_groups": gap.groups}
        settings |= getattr(problem, "adjustment_settings", {})
        if backbone == "tabular":
            settings["linear"] = rows <= _LINEAR_PART_ROWS
    return settings


def _count_weights(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters() if not is_lazy(p))


def find_rate_gap(problem: Problem) -> RateObjective | None:
    """Return the gap if a problem trades just binary cross-entropy and a linear rate gap."""
    if problem.outputs != 1 or len(problem.objectives) != 2:
        return None
    answer, gap = problem.objectives
    # a subclass of the cross-entropy may be another loss, which the closed form does not know
    if type(answer) is BinaryCrossEntropy and isinstance(gap, RateObjective) and gap.linear:
        return gap
    return None


def _trades_both_sides(objectives: Sequence[Objective]) -> bool:
    """Return True if both sides of one error are traded: a ray is then a quantile's level.

    With squared errors it is an expectile's. An objective may wrap another one, as one that is
    reported in the target's unit does.
    """
    inner = [_unwrap(objective) for objective in objectives]
    errors = [objective for objective in inner if isinstance(objective, OneSidedError)]
    return (
        len(inner) == 2
        and sorted(error.side for error in errors) == ["over", "under"]
        and len({(error.output, error.target, error.power) for error in errors}) == 1
    )


def _unwrap(objective: Objective) -> Objective:
    """Return the objective inside of one that reports it in another unit."""
    inner: Objective = getattr(objective, "wrapped", objective)
    return inner


def get_loop_settings(preset: str, objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """Return the settings a preset has for the caller's network in the caller's loop.

    Methods, conditionings and loops take those that they know. None depends on a problem.

    Args:
        preset: the name of the preset.
        objectives: the objectives, if they are known.

    >>> get_loop_settings("default")["rank"], get_loop_settings("paper")
    (1, {})
    """
    if check_preset(preset) == "paper":
        return {}
    return _ALWAYS | _OWN_NETWORK | (_LEVELS if _trades_both_sides(objectives) else {})


def choose_rays_per_batch(preset: str, axes: int, size: int) -> int:
    """Compute the number of rays in a batch.

    Args:
        preset: the name of the preset.
        axes: axes of an input; 1 for a row of a table.
        size: samples in the batch, which the rays must divide.

    >>> choose_rays_per_batch("default", 1, 64), choose_rays_per_batch("default", 3, 100)
    (4, 4)
    """
    if check_preset(preset) == "paper":
        return 1
    return math.gcd((_VECTORS if axes == 1 else _IMAGES)["rays_per_batch"], size)


def _predicts_numbers(problem: Problem) -> bool:
    """Return True if a target holds numbers other than 0 and 1 rather than classes."""
    targets = split_of(problem, "train").targets
    values = [value for name, value in targets.items() if name not in AUXILIARY_TARGETS]
    return any(v.is_floating_point() and not bool(((v == 0) | (v == 1)).all()) for v in values)


def _read_int(settings: Mapping[str, Any], name: str) -> int:
    """Return a setting as an int, or 0; `split_settings` reports one that is no number."""
    try:
        return int(settings.get(name, settings.get(f"training.{name}", 0)))
    except (TypeError, ValueError):
        return 0


def pick_batch_size(rows: int, axes: int) -> int:
    """Compute the batch size of the default preset: a power of two, about eight steps an epoch.

    Args:
        rows: training samples.
        axes: axes of an input; 1 for a row of a table.

    >>> pick_batch_size(30_000, 1), pick_batch_size(4_000, 1), pick_batch_size(60_000, 3)
    (2048, 256, 256)
    """
    size = 1 << int(math.log2(max(rows / 8, _SMALLEST_BATCH)))
    return min(size, _LARGEST_BATCH.get(axes, 64), rows)


def _get_paper_name(problem: Problem) -> str:
    return "" if problem.spec is None else problem.spec.name
