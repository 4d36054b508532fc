"""A conditioned network at one preference, as an ordinary module, or merged into its weights."""

import contextlib
import copy
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import Conditioning, PerRayEnsemble, Unconditioned
from paretocosmos.nn.conditioning.concat import SplitLinear
from paretocosmos.nn.conditioning.film import Modulated
from paretocosmos.nn.conditioning.hypernet import Hypernet
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_types import get_base_layer, is_conv1d
from paretocosmos.nn.conditioning.low_rank import LowRank
from paretocosmos.pareto.rays import as_rays
from paretocosmos.runtime.torch_private import BatchOrInstanceNorm

# Methods that save the network, which only an ordinary one of its class can do.
WRITE_METHODS = ("save_pretrained", "push_to_hub")


class FixedRay(nn.Module):
    """A conditioned network with its ray fixed: called as the network was before.

    What else the network has is there too: attributes as they are, methods such as `generate` with
    the ray set while they run. `save_pretrained` writes the merged network, which is an ordinary
    one of its class; it is refused where merging is not exact.

    Args:
        model: the conditioned network; its weights are shared, not copied.
        ray: ``[J]``.
    """

    ray: Tensor

    def __init__(self, model: Conditioning, ray: Tensor) -> None:
        super().__init__()
        self.conditioned = model
        self.register_buffer("ray", ray)
        parameters: Iterable[inspect.Parameter] = ()
        with contextlib.suppress(TypeError, ValueError):  # compiled from another language
            parameters = inspect.signature(model.backbone.forward).parameters.values()
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._names = tuple(p.name for p in parameters if p.kind in positional)
        # with the network's signature, by which the Trainer of `transformers` picks columns
        self.forward = update_wrapper(partial(FixedRay._call, self), model.backbone.forward)
        self.train(model.training)

    def _call(self, *args: Any, **named: Any) -> Any:
        inputs: Any = args[0] if len(args) == 1 and not named else None
        if inputs is None:
            if len(args) > len(self._names):
                raise ConfigurationError(
                    "a network at a ray takes one positional argument, or as many as its `forward` "
                    f"has, here {len(self._names)}; found {len(args)}: pass them by name"
                )
            inputs = dict(zip(self._names, args, strict=False)) | named
        if self.conditioned.has_cache and (self._names or isinstance(inputs, Mapping)):
            mapping = inputs if isinstance(inputs, Mapping) else {self._names[0]: inputs}
            inputs = {"use_cache": None, **mapping}  # as the network's own configuration has it
        return self.conditioned(inputs, self.ray)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):  # copying and pickling must not use the backbone's methods
                raise
        model: Any = super().__getattr__("conditioned")
        attribute = getattr(model.backbone, name)
        if not inspect.ismethod(attribute):  # such as `config`; only methods call the network
            return attribute
        if name in WRITE_METHODS:
            return getattr(merge_ray(model, self.ray), name)

        def call_at_ray(*args: Any, **named: Any) -> Any:
            return model._call_method(name, self.ray, args, named)

        return call_at_ray

    def extra_repr(self) -> str:
        return f"ray={[round(weight, 4) for weight in self.ray.tolist()]}"


def fix_ray(model: Conditioning, ray: Tensor | Sequence[float], *, merge: bool) -> nn.Module:
    """Return the network at one ray; with `merge` a network of its own class."""
    (one_ray, *more) = as_rays(ray, model.objectives)
    if more:
        raise ConfigurationError(
            f"`at` takes one ray, found {1 + len(more)}: call the model with all of them, "
            "`model(inputs, rays)`"
        )
    if isinstance(ray, Tensor):  # `as_rays` rounds to float32; a network may be float64
        one_ray = ray.detach().reshape(-1)
    if isinstance(model, PerRayEnsemble):  # the network that was trained for the nearest ray
        network, its_ray = model.nearest(one_ray)
        if isinstance(network, Conditioning):
            return fix_ray(network, its_ray, merge=merge)
    like = next((p for p in model.parameters() if p.is_floating_point()), one_ray)
    one_ray = one_ray.to(like.device, like.dtype)
    return merge_ray(model, one_ray) if merge else FixedRay(model, one_ray)


# Layers of one matrix, or of one scale and shift, per channel of what they give.
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (BatchOrInstanceNorm, nn.LayerNorm, nn.GroupNorm)


def merge_ray(model: Conditioning, ray: Tensor) -> nn.Module:
    """Copy the network and fold one ray ``[J]`` into its own weights, where that is exact.

    Under a ray, what a conditioned layer adds is often a matrix, a bias, or a scale per channel.
    Then the layer's own weights can be changed instead, and it replaces the conditioned one.

    Raises:
        ConfigurationError: where the outputs would not be those of the model at that ray.
    """
    if isinstance(model, Hypernet):
        return model.network_at(ray)
    if not isinstance(model, InjectedConditioning | Unconditioned):
        raise _make_merge_error(f"{type(model).__name__} does not enter the network by its weights")
    with torch.no_grad():
        network: nn.Module = copy.deepcopy(model).with_ray(ray, _fold_layers)
    return network


def _make_merge_error(reason: str) -> ConfigurationError:
    """Make the error of a ray that cannot be merged exactly."""
    return ConfigurationError(
        f"`merge` must fold the ray into the weights exactly, but {reason}: use `at(ray)` "
        "without `merge`"
    )


def _fold_layers(network: nn.Module) -> nn.Module:
    """Replace the conditioned layers by folded ones, the innermost first."""
    conditioned_layers = [
        (name, module)
        for name, module in network.named_modules()
        if isinstance(module, ConditionedLayer)
    ]
    # `named_modules` yields a module before those inside it, whose names folding would change
    for name, conditioned in reversed(conditioned_layers):
        layer = _fold_layer(network, name, conditioned)
        modules = network.named_modules(remove_duplicate=False)
        for path in [path for path, module in modules if module is conditioned]:
            if path == "":
                network = layer
            else:
                network.set_submodule(path, layer)
    return network


def _fold_layer(network: nn.Module, path: str, conditioned: ConditionedLayer) -> nn.Module:
    """Return the layer inside, changed as the current ray changes it."""
    term = conditioned.current().term[0]
    layer: nn.Module = conditioned.layer
    if isinstance(conditioned, LowRank):
        base = get_base_layer(layer)  # of an adapter: what that adds stays beside it
        _check_own_weight(network, path, base)
        # B diag(c) A, with each entry of the term repeated for its ranks
        rank = conditioned.writes.shape[1] // len(term)
        scales = term.to(conditioned.writes).repeat_interleave(rank)
        change = (conditioned.writes * scales) @ conditioned.reads.weight.flatten(1)
        _add_to_weights(
            base, change, None if conditioned.shifts is None else term @ conditioned.shifts
        )
    elif isinstance(conditioned, SplitLinear):  # W_x x + W_r r: a constant that joins the bias
        _check_own_weight(network, path, layer)
        _add_to_weights(layer, None, conditioned.ray.weight @ term)
    elif isinstance(conditioned, Modulated):
        last = layer  # the layer whose outputs are scaled, through any plain sequences
        while type(last) is nn.Sequential and len(last):
            last = last[-1]
        if not _can_scale(last):
            raise _make_merge_error(
                f"the scale and shift at `{path}` come after {type(layer).__name__}, which does "
                "not end in a linear layer, a convolution, or a normalisation with a bias"
            )
        _check_own_weight(network, path, last)
        scale, shift = term.chunk(2)
        # output channels are the last axis of a `Conv1D`'s weight, and the first of any other
        scaled: Any = last
        along = (-1,) if is_conv1d(last) else (-1, *[1] * (scaled.weight.ndim - 1))
        scaled.weight.mul_((1 + scale).to(scaled.weight).view(along))
        if scaled.bias is not None:
            scaled.bias.mul_((1 + scale).to(scaled.bias))
        _add_to_weights(scaled, None, shift)
    else:
        kind = type(layer).__name__
        raise _make_merge_error(f"what the ray adds at `{path}` is no weight of {kind}")
    return layer


def _check_own_weight(network: nn.Module, path: str, layer: nn.Module) -> None:
    """Raise if a layer's weight is shared with another, or computed from other parameters."""
    if parametrize.is_parametrized(layer):
        raise _make_merge_error(f"the weight at `{path}` is computed by a parametrisation")
    holders = Counter(
        parameter for module in network.modules() for parameter in module.parameters(recurse=False)
    )
    if holders[layer.weight] > 1:  # type: ignore[index]
        raise _make_merge_error(f"the weight at `{path}` is shared with another layer")


def _add_to_weights(layer: Any, weight: Tensor | None, bias: Tensor | None) -> None:
    """Add to a layer's weight ``[O, ...]``, given as ``[O, I]``, and to its bias ``[O]``."""
    if weight is not None:
        layer.weight.add_(weight.T if is_conv1d(layer) else weight.view_as(layer.weight))
    if bias is None:
        return
    if layer.bias is None:
        layer.bias = nn.Parameter(bias.to(layer.weight), requires_grad=layer.weight.requires_grad)
    else:
        layer.bias.add_(bias)


def _can_scale(layer: nn.Module) -> bool:
    """Return True if a layer's outputs can be scaled and shifted by its own weights."""
    kind = next((kind for kind in (*MATRICES, *NORMS) if isinstance(layer, kind)), None)
    if kind is None:
        return is_conv1d(layer)
    if kind in NORMS:  # one without a bias has nowhere to put the shift
        flat = not isinstance(layer, nn.LayerNorm) or len(layer.normalized_shape) == 1
        return flat and getattr(layer, "bias", None) is not None
    return type(layer).forward is kind.forward  # a subclass may do more after its matrix
