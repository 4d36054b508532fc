"""Presets: whole configurations by name, `default` (this package's) and `paper` (the paper's).

Whatever a caller sets comes on top. `paper` is `paper.toml`, problem by problem. `default` is one
rule for every problem: its numbers follow from the number of rows, the shape of an input and
whether the network is the caller's own or a deep one, never from a data set's name.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from paretocosmos.config.settings import paper_network, paper_settings
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.schema import PRESETS
from paretocosmos.objectives import BinaryCrossEntropy, Objective, OneSidedError, RateObjective
from paretocosmos.problems import Problem, samples_in, split_of

__all__ = [
    "CONDITIONINGS",
    "METHODS",
    "NETWORKS",
    "PRESETS",
    "batch_size_for",
    "check_preset",
    "loop_groups",
    "loop_settings",
    "preset_for",
    "preset_method",
    "preset_network",
    "preset_settings",
]

METHODS = {"default": "linear", "paper": "cosmos"}
"""The method of a preset, where a caller names none."""
CONDITIONINGS = {"default": "auto", "paper": "input"}
"""How a ray enters a network of one's own (`condition`), where a caller does not say."""

# By the number of an input's axes.
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

# Settings of every training by the default preset, and why: docs/decisions/default_preset.md.
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
_VECTORS: dict[str, Any] = {"learning_rate": 2e-3, "groups": 4}
# Rows of a table at which its network takes the largest steps and has the least decay; q in
# [0.3, 1], the cube root of a table's share of it, makes the steps smaller and the decay larger, so
# that 700 rows are not learned by heart (docs/decisions/network_for_tables.md). A small table takes
# half the steps.
_ROWS, _LEAST, _HALF = 30_000, 0.3, 0.5
# Rows up to which such a network has a linear part beside the rest, where no ray enters it.
_LINEAR = 10_000
# Validation rows from which they select the best epoch of a table; of fewer, noise would.
_SELECTING = 500
_IMAGES: dict[str, Any] = {"learning_rate": 4e-3, "groups": 8, "epochs": 30}
# Too high against too low: both are in one unit, and a ray asks for the quantile or the expectile
# of just that level, so that its weights are taken as they are.
_LEVELS: dict[str, Any] = {"scale_losses": False, "calibrate": False, "floor": 0.0}
# A deep or pretrained network, as one's own may be: small steps, little decay.
_OWN = {"learning_rate": 5e-4, "weight_decay": 0.05}
# Samples of a step at most, by the number of an input's axes; a gap between groups needs many.
_LARGEST = {1: 2048, 3: 256}
_SMALLEST = 32
# Steps that a table takes to train, and epochs at least, where it is large.
_STEPS, _EPOCHS = 1000, 20
_VALIDATIONS = 12
# Targets that nothing predicts.
BESIDE = ("sensitive", "weight")


def preset_for(asked: str | None, problem: Problem) -> str:
    """The preset a training has: the one asked for, else the paper's under the paper's protocol."""
    if asked is None:
        return "paper" if problem.protocol == "paper" else "default"
    return check_preset(asked)


def check_preset(asked: str) -> str:
    """The name, if there is a preset of it."""
    if asked not in PRESETS:
        raise unknown("preset", asked, PRESETS)
    return asked


def preset_method(preset: str, settings: Mapping[str, Any]) -> str:
    """The method of a preset, for a caller who names none and has set this."""
    usual = METHODS[preset]
    if usual != "cosmos" and {"penalty", "method.penalty"} & settings.keys():
        raise ConfigurationError(
            f"`penalty` is a setting of the method `cosmos`, but the preset `{preset}` uses "
            f"`{usual}`: set the method too"
        ).with_hint({"method": "cosmos"})
    return usual


def preset_network(
    preset: str, problem: Problem, method: object, backbone: str | nn.Module | None = None
) -> dict[str, str]:
    """Return the backbone and the conditioning for a problem's shape, or its own backbone.

    Args:
        preset: its name.
        problem: what is trained on.
        method: how, by name or as it is.
        backbone: the caller's; a network gives the problem's outputs, not those of two heads.
    """
    usual = dict(NETWORKS[preset].get(len(problem.input_shape), {}))
    # a number that follows others in a straight line is better served by a plain network
    if preset == "default" and problem.tabular and not _numbers(problem):
        usual["backbone"] = "tabular"
        if method == METHODS["default"] and not isinstance(backbone, nn.Module):
            usual |= {} if gap_of(problem) is None else {"conditioning": "fairness_adjustment"}
    named = paper_network(_name(problem))
    usual |= named if preset == "paper" else {k: v for k, v in named.items() if k == "backbone"}
    if preset == "default" and "backbone" in usual:
        usual.setdefault("conditioning", "film")
    if len(usual) < 2:
        raise ConfigurationError(
            f"`{problem.name}` has inputs of shape {problem.input_shape}, for which there is no "
            "default network: pass `model`, or `backbone` and `conditioning`"
        )
    return usual


def preset_settings(
    preset: str,
    problem: Problem,
    label: str,
    *,
    single: bool,
    backbone: str | None,
    conditioning: str | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The settings a preset has for a problem and what is trained on it.

    Args:
        preset: its name.
        problem: what is trained on.
        label: the method with its conditioning, as the paper calls it.
        single: whether the method trains one network for each of a few rays.
        backbone: its name; `None` where the network is the caller's.
        conditioning: its name; `None` where the whole network is the caller's.
        given: what the caller has set, which other settings may follow from.
    """
    if preset == "paper":
        own = {} if problem.batch_size is None else {"batch_size": problem.batch_size}
        return paper_settings(_name(problem), label) | own
    axes, rows = len(problem.input_shape), samples_in(problem, "train")
    steps, validations = _STEPS, _VALIDATIONS
    found = _ALWAYS | (_VECTORS if axes == 1 else _IMAGES)
    if backbone == "tabular":
        share = max(_LEAST, min(1.0, (rows / _ROWS) ** (1 / 3)))
        found |= {"learning_rate": 6e-3 * share, "weight_decay": 1 / share**2}
        steps = round(_STEPS * max(_HALF, share))
        validations = _VALIDATIONS if len(split_of(problem, "val")) >= _SELECTING else 1
    if backbone is None or "backbone" in paper_network(_name(problem)):
        found |= _OWN
    if _asks_for_levels(problem.objectives):
        found |= _LEVELS
    size = _whole(given, "batch_size") or problem.batch_size or batch_size_for(rows, axes)
    found["batch_size"] = size
    if axes == 1:
        found["epochs"] = max(_EPOCHS, -(-steps // -(-rows // size)))
    epochs = _whole(given, "epochs") or int(found["epochs"])
    found["evaluate_every"] = max(1, epochs // validations)
    found["groups"] = 1 if single else loop_groups(preset, axes, size)
    found["groups"] = _whole(given, "accumulate") or found["groups"]
    gap = gap_of(problem)
    if conditioning == "fairness_adjustment" and gap is not None:  # it is trained without rays
        found |= {"groups": 1, "scale_losses": False, "sensitive_groups": gap.groups}
        if backbone == "tabular":
            found["linear"] = rows <= _LINEAR
    return found


def gap_of(problem: Problem) -> RateObjective | None:
    """The gap that is traded for the cross-entropy of yes and no, and nothing else; else `None`."""
    if problem.outputs != 1 or len(problem.objectives) != 2:
        return None
    answer, gap = problem.objectives
    if type(answer) is BinaryCrossEntropy and isinstance(gap, RateObjective) and gap.linear:
        return gap
    return None


def _asks_for_levels(objectives: Sequence[Objective]) -> bool:
    """Whether both sides of one error are traded: a ray is then a quantile's or expectile's level.

    An objective may stand around another, as one that is reported in the target's unit does.
    """
    inner = [getattr(one, "wrapped", one) for one in objectives]
    sided = [one for one in inner if isinstance(one, OneSidedError)]
    same = {(one.output, one.target, one.power) for one in sided}
    both = sorted(one.side for one in sided) == ["over", "under"]
    return both and len(inner) == 2 and len(same) == 1


def loop_settings(preset: str, objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """The settings a preset has for a network of one's own in a loop of one's own.

    Of these a method, a conditioning and a loop take what they know: nothing is said of a problem.

    Args:
        preset: its name.
        objectives: what is traded, where that is known.

    >>> loop_settings("default")["rank"], loop_settings("paper")
    (1, {})
    """
    if check_preset(preset) == "paper":
        return {}
    return _ALWAYS | _OWN | (_LEVELS if _asks_for_levels(objectives) else {})


def loop_groups(preset: str, axes: int, size: int) -> int:
    """Rays of a batch in such a loop.

    Args:
        preset: its name.
        axes: of an input; 1 for a row of a table.
        size: samples of the batch.

    >>> loop_groups("default", 1, 64), loop_groups("default", 3, 100), loop_groups("paper", 1, 64)
    (4, 4, 1)
    """
    if check_preset(preset) == "paper":
        return 1
    return math.gcd((_VECTORS if axes == 1 else _IMAGES)["groups"], size)


def _numbers(problem: Problem) -> bool:
    """Whether numbers are predicted rather than classes, by what is aimed at."""
    aims = [v for k, v in split_of(problem, "train").targets.items() if k not in BESIDE]
    return any(v.is_floating_point() and not bool(((v == 0) | (v == 1)).all()) for v in aims)


def _whole(given: Mapping[str, Any], name: str) -> int:
    """A whole number that was set, or 0; what is none is refused where it is read."""
    try:
        return int(given.get(name, given.get(f"training.{name}", 0)))
    except (TypeError, ValueError):
        return 0


def batch_size_for(rows: int, axes: int) -> int:
    """Samples of a step in the default preset: a power of two, some eight steps an epoch.

    Args:
        rows: samples to train on.
        axes: of an input; 1 for a row of a table.

    >>> batch_size_for(30_000, 1), batch_size_for(4_000, 1), batch_size_for(60_000, 3)
    (2048, 256, 256)
    """
    wished = 1 << int(math.log2(max(rows / 8, _SMALLEST)))
    return min(wished, _LARGEST.get(axes, 64), rows)


def _name(problem: Problem) -> str:
    """What the paper's settings know a problem by."""
    return "" if problem.spec is None else problem.spec.name
