"""From a batch to the scalar that a loop of another library back-propagates.

Lightning and Transformers share this module: it validates what a loop is given, draws rays and
weights the losses.
"""

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos import registry
from paretocosmos.config.plan import build_checked
from paretocosmos.config.presets import (
    check_preset,
    choose_method,
    choose_rays_per_batch,
    get_loop_settings,
)
from paretocosmos.config.settings import Training, get_pairs, get_spec_name, split_settings
from paretocosmos.errors import ConfigurationError, MissingExtraError, check_choice
from paretocosmos.integrations.fronts import to_batch, to_float32
from paretocosmos.methods import Gram, Method
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.registry import Spec
from paretocosmos.training.engine.gradients import LossGradients, find_head_modules
from paretocosmos.training.engine.step import (
    LOSS_SCALES,
    compute_group_losses,
    compute_weights,
    expand_rays,
)
from paretocosmos.training.loss_scales import compute_pulls
from paretocosmos.types import Outputs, Targets, first

Ranks = Literal["differ", "agree"]


class LoopOptions(TypedDict, total=False):
    """The options of `LossWeighting` that both loops take, each documented there."""

    preset: str
    method: str | Method | None
    settings: Mapping[str, Any] | None
    targets: Sequence[str]
    rays_per_batch: int | None
    ranks: Ranks


def import_base(package: str, name: str, purpose: str) -> Any:
    """Return a class to derive from; if its package is missing, one that cannot be built.

    So the module with the derived class can be imported, read and tested everywhere.

    Args:
        package: the package, which is also the name of its extra.
        name: the class in it.
        purpose: what needs it, for the message.
    """
    try:
        return getattr(importlib.import_module(package), name)
    except ModuleNotFoundError as error:
        if error.name != package:  # installed, but one of its own dependencies is missing
            raise

    class Missing:  # a subclass is defined without complaint; building one raises
        def __new__(cls, *_args: object, **_kwargs: object) -> Any:
            raise MissingExtraError(package, package, purpose)

    return Missing


# ---------------------------------------------------------------- validation


def check_objectives(objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """Require at least two objectives with different names."""
    for objective in objectives:
        if not isinstance(objective, Objective):
            raise ConfigurationError(
                f"`objectives` must be a list of `Objective`, found {objective!r}: derive a class "
                "from `Objective`, whose `loss(outputs, targets)` returns one number"
            )
    if len(objectives) < 2:
        raise ConfigurationError(
            f"`objectives` must be at least two, found {len(objectives)}: one has no front"
        )
    names = [objective.name for objective in objectives]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ConfigurationError(
            f"`objectives` need different names, found `{repeated[0]}` twice: pass `name`"
        )
    return tuple(objectives)


def build_method(
    method: str | Method | None,
    settings: Mapping[str, Any] | None,
    objectives: Sequence[Objective],
    preset: str,
) -> Method:
    """Return the method, given as it is, by name, or by the preset; it must serve one network."""
    if method is None:
        method = choose_method(check_preset(preset), objectives, loop=True)
    if isinstance(method, str):
        pair = get_pairs().get(method)
        if pair is not None:
            raise ConfigurationError(
                f"`{method}` is the method `{pair[0]}` with the conditioning `{pair[1]}`, not a "
                f'method: pass "{pair[0]}", and a network made by condition(..., '
                f'how="{pair[1]}")'
            )
        # a preset also has settings of training and of other methods: only this one's are taken
        owner = {"method": registry.find("methods", method)}
        defaults = split_settings(get_loop_settings(preset, objectives), owner, lenient=True)[
            "method"
        ]
        changes = split_settings(settings or {}, owner)["method"]
        built: Method = build_checked(Method, Spec(method, defaults | changes), "methods")
    elif not isinstance(method, Method):
        raise ConfigurationError(f"`method` must be a Method or the name of one, found {method!r}")
    elif settings:
        raise ConfigurationError(
            f"`settings` need a method given by name, found them with {method!r}: build it "
            "with them"
        )
    else:
        built = method
    if built.fixed_rays(len(objectives)) is not None:
        raise ConfigurationError(
            f"`{get_spec_name('methods', type(built))}` trains a network per ray, which does not "
            "work with a conditioned network: use `fit`, or a method that draws rays, such as "
            "`linear`"
        )
    # drawing a ray raises now, not in the first step, if the settings do not fit the objectives
    built.sample(len(objectives), 1, torch.Generator())
    return built


def check_model(model: nn.Module, objectives: int) -> nn.Module:
    """Require a network that is called as ``forward(inputs, ray)``."""
    if not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"`model` must be a network (nn.Module), found {model!r}: build it first"
        )
    if isinstance(model, Conditioning):
        if model.objectives != objectives:
            raise ConfigurationError(
                f"`model` takes rays of {model.objectives} entries, found {objectives} objectives: "
                f"condition it with objectives={objectives}"
            )
    elif not _takes_ray(model):
        names = ", ".join(list(inspect.signature(model.forward).parameters)[:3])
        raise ConfigurationError(
            f"`model` must be called as `forward(inputs, ray)`, found {type(model).__name__} with "
            f"`forward({names})`: make it take a ray with `condition(model, "
            f"objectives={objectives})`"
        )
    return model


def _takes_ray(model: nn.Module) -> bool:
    """Return True if `forward` requires a second argument or has an optional one called `ray`.

    Other optional arguments do not count: a network that takes an attention mask would pass.
    """
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # wrapped by something without a signature
        return True
    try:
        bound = signature.bind(None, None)
    except TypeError:
        return False
    second = [signature.parameters[name] for name in bound.arguments][1:]
    return all(p.default is p.empty or p.name == "ray" for p in second)


# ---------------------------------------------------------------- one step


class WeightedBatch(NamedTuple):
    """The losses of a batch and their weighted sum.

    Attributes:
        total: the scalar to back-propagate; its gradient is the method's, its value means little.
        losses: ``[J]``, without gradient, the mean over the rays.
        outputs: the network's.
        samples: the size of the batch.
    """

    total: Tensor
    losses: Tensor
    outputs: Outputs
    samples: int


class LossWeighting:
    """Draws rays, weights losses, and holds the method's state.

    A ray is a function of the seed and the position of its batch in the training, so that a
    resumed training draws what it would have drawn.

    Args:
        model: ``forward(inputs, ray)``; it is only inspected.
        objectives: what is traded.
        preset: the source of all settings that are left out.
        method: how losses become weights, or its name; the preset's if `None`.
        settings: of a method by name.
        targets: those that the caller's own objectives read beside their `target`.
        rays_per_batch: rays per batch, each for an equal share of it; the preset's if `None`.
        ranks: ``"differ"`` if each of several processes draws rays of its own, else ``"agree"``.
        seed: of the rays.
    """

    def __init__(
        self,
        model: nn.Module,
        objectives: Sequence[Objective],
        *,
        preset: str = "default",
        method: str | Method | None = None,
        settings: Mapping[str, Any] | None = None,
        targets: Sequence[str] = (),
        rays_per_batch: int | None = None,
        ranks: Ranks = "differ",
        seed: int = 1,
    ) -> None:
        self.objectives = check_objectives(objectives)
        self.method = build_method(method, settings, self.objectives, preset)
        check_model(model, len(self.objectives))
        if rays_per_batch is not None and rays_per_batch < 1:
            raise ConfigurationError(f"`rays_per_batch` must be at least 1, found {rays_per_batch}")
        check_choice("`ranks`", ranks, get_args(Ranks))
        if type(seed) is not int or seed < 0:
            raise ConfigurationError(f"`seed` must be a whole number of at least 0, found {seed!r}")
        names = [objective.target for objective in self.objectives]
        names += [o.sensitive for o in self.objectives if isinstance(o, GroupObjective)]
        self.targets = tuple(dict.fromkeys([*names, *targets]))
        self.preset, self.rays_per_batch = preset, rays_per_batch
        self.ranks, self.seed = ranks, seed
        defaults = get_loop_settings(preset, self.objectives)
        self.training = Training(
            **split_settings(defaults, {"training": Training}, lenient=True)["training"]
        )
        self.epoch = -1  # no epoch has begun
        self.state = self._init_state()
        self._scaled = not self.training.scale_losses  # True once every loss has its scale

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names."""
        return tuple(objective.name for objective in self.objectives)

    def draw_rays(self, position: Sequence[int], rank: int, count: int) -> Tensor:
        """Draw rays ``[G, J]`` of the batch at a position in the training, for one process."""
        # SeedSequence mixes the numbers, so that neighbouring batches have unrelated rays
        rank_entropy = [rank] if self.ranks == "differ" else []
        sequence = np.random.SeedSequence([self.seed, *position, *rank_entropy])
        generator = torch.Generator().manual_seed(int(sequence.generate_state(1)[0]))
        return self.method.sample(len(self.objectives), count, generator)

    def __call__(
        self,
        model: nn.Module,
        data: Any,
        *,
        epoch: int,
        position: Sequence[int],
        rank: int = 0,
        network: nn.Module | None = None,
        mean: Callable[[Tensor], Tensor] | None = None,
    ) -> WeightedBatch:
        """Draw rays, call the network, and weight its losses.

        Args:
            model: what is called, the network or a wrapper around it.
            data: a loader's batch on the network's device.
            epoch: of the training, from 0.
            position: numbers that no other batch of the training has.
            rank: the number of the process.
            network: the network itself, if `model` is a wrapper around it.
            mean: over processes; if their rays agree, the losses of all are weighted.
        """
        network = model if network is None else network
        parameter = next(p for p in network.parameters() if p.is_floating_point())
        batch = to_batch(data, self.targets)
        if self.rays_per_batch is None:
            count = choose_rays_per_batch(self.preset, first(batch.inputs).ndim - 1, len(batch))
        else:
            count = math.gcd(len(batch), self.rays_per_batch)
        rays = self.draw_rays(position, rank, count).to(parameter.device)
        network_rays = rays.to(parameter.dtype)
        # somebody's own network knows a ray for each sample, but no groups
        if not isinstance(network, Conditioning):
            network_rays = expand_rays(network_rays, len(batch))
        outputs = model(batch.inputs, network_rays)
        # losses and weights are always float32: half precision loses small differences
        with torch.autocast(parameter.device.type, enabled=False):
            exact = to_float32(outputs)
            losses = compute_group_losses(self.objectives, exact, batch.targets, count)
            if not self._scaled:
                self._update_scales(exact, batch.targets, mean)
            detached = losses.detach()
            if mean is not None and self.ranks == "agree":
                detached = mean(detached)
            self._start_epoch(epoch, detached)
            state = {name: value.to(rays.device) for name, value in self.state.items()}
            scales = {name: value for name, value in state.items() if name == LOSS_SCALES}
            # a loss whose scale is not known yet is taken as it is
            state |= {name: torch.where(value > 0, value, 1.0) for name, value in scales.items()}
            gram = self._make_gram(losses, network)
            weights, after = compute_weights(
                self.method, detached, rays, gram, state, rays_in_step=count
            )
            # weights are constants (a method may differentiate through `losses` to find them)
            total = (weights.detach() * losses).sum()
        self.state = {**after, **scales}
        return WeightedBatch(total, losses.detach().mean(dim=0), outputs, len(batch))

    def _init_state(self) -> dict[str, Tensor]:
        """Return the state before the first batch: the method's, and no scales."""
        count = len(self.objectives)
        scales = {LOSS_SCALES: torch.zeros(count)} if self.training.scale_losses else {}
        return {**self.method.init(count), **scales}

    def _update_scales(
        self, outputs: Outputs, targets: Targets, mean: Callable[[Tensor], Tensor] | None
    ) -> None:
        """Take each loss's scale from the first batch in which it has a gradient."""
        generator = torch.Generator().manual_seed(self.seed)
        norms = compute_pulls(self.objectives, outputs, targets, generator)
        stacked = torch.stack([norms, (norms > 0).float()])  # one reduction for both
        # the mean over the processes whose batch gives a scale, so that all have the same one
        norms, share = stacked if mean is None else mean(stacked)
        before = self.state[LOSS_SCALES].to(norms)
        # a loss without a gradient in this batch waits for a later one; its share is 0 then
        scales = torch.where(before > 0, before, norms / share.clamp_min(1e-12))
        self.state[LOSS_SCALES], self._scaled = scales, bool((scales > 0).all())

    def _start_epoch(self, epoch: int, losses: Tensor) -> None:
        if self.epoch < 0:  # once, on the first losses: some methods need positive ones
            self.method.check(losses.mean(dim=0), self.names)
        if epoch != self.epoch:
            self.state |= self.method.at_epoch(epoch, self.state)
            self.epoch = epoch

    def _make_gram(self, losses: Tensor, network: nn.Module) -> Gram:
        # a function, since it takes a backward pass per objective, which most methods do not need
        def gram() -> Tensor:
            leaves = {name: p for name, p in network.named_parameters() if p.requires_grad}
            heads = find_head_modules(network, self.method)
            return LossGradients(losses, leaves, heads, stacked=False).gram()

        return gram

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint holds, in plain numbers and lists."""
        state = {name: value.tolist() for name, value in self.state.items()}
        return {"epoch": self.epoch, "state": state}

    def load_state_dict(self, stored: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        initial = self._init_state()
        if stored["state"].keys() != initial.keys():
            raise ConfigurationError(
                f"the checkpoint's method has the state {', '.join(stored['state']) or 'nothing'}, "
                f"this one {', '.join(initial) or 'nothing'}: resume with the same "
                "`method` and `preset`"
            )
        self.state = {
            name: torch.tensor(stored["state"][name], dtype=value.dtype).reshape(value.shape)
            for name, value in initial.items()
        }
        self.epoch = int(stored["epoch"])
        self._scaled = LOSS_SCALES not in self.state or bool((self.state[LOSS_SCALES] > 0).all())
