"""How a ray reaches layers in the middle of somebody else's network.

A network that nobody here wrote has a ``forward(inputs)`` that passes no ray on. So state is set on
its modules for the time of a call. Everything else in this package passes state in arguments and
return values; this file is the one exception.

**What is set.** `ConditionedLayer` takes the place of a layer. During a call its attribute
`injected` holds what the ray amounts to there (`Injected`): the ray itself, the scale and shift of
FiLM, or tokens. A hypernetwork sets weights instead. Only the conditioning's `forward` sets them;
only the layers read them. At the end of the call, also if it raises, the layers are as before, and
a layer that is called on its own finds nothing and says so.

**The backward pass.** Gradient checkpointing computes parts of a call a second time there, which
have to find the same state. So the outputs of a call carry a gradient hook (`CallState`) that sets
the call's tensors again. Autograd runs the nodes of later calls before those of earlier ones: until
the pass reaches the outputs of another call, whatever is computed again belongs to this one. The
end of the pass clears what was set last. The hook sets copies that pass their gradient on
(`_detach_for_recomputation`), since ``use_reentrant=True`` runs a backward pass through each part.

**Exceptions in the backward pass.** Its end is then never reached, and the tensors stay set. The
next call outside of a backward pass clears them before it begins, and so does the next hook.

**Nesting.** A call inside a call (a network inside a conditioned network, a whole call computed
again) sets its own tensors and restores those that it found.

**Many backward passes at once** (``is_grads_batched``, TorchJD). The hook then runs inside a `vmap`
and sets the tensors as they are: ``use_reentrant=True`` is not possible there anyway.

**torch.func, vmap, torch.compile, torch.export.** Tensors are set and restored as everywhere, and
become plain inputs of the graph. Inside torch.func tensors have no hooks, and a compiled graph
computes nothing again in Python: no hooks there.

**Threads.** Modules are shared by threads, and so is what is set on them: one conditioned network
is called by one thread at a time, as the server does; threads that want more take copies. A GPU's
backward pass runs in a thread of torch's own, while its caller waits.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning.base import Conditioning
from paretocosmos.nn.conditioning.probing import (
    LayoutCache,
    can_probe,
    find_insensitive_places,
    find_sensitive_layers,
    has_several_processes,
)
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    Batching,
    Layout,
    SampleAxis,
    check_group_count,
    count_samples,
    has_samples_first,
    iter_tensors,
    select_own_rows,
)
from paretocosmos.nn.norms import StandIn
from paretocosmos.runtime.torch_private import (
    after_backward,
    in_backward_pass,
    is_functorch_wrapped,
)
from paretocosmos.types import Inputs, Outputs, map_tensors

Restore = Callable[[], None]
SetTensors = Callable[[Sequence[Tensor]], Restore]
"""Set tensors on modules; return the function that restores what was there before."""

Result = TypeVar("Result")


class CallState:
    """What the backward pass has set on the modules of one conditioned network."""

    def __init__(self) -> None:
        self._restore: Restore | None = None
        self._set: Callable[[], Restore] | None = None

    def call(
        self, compute: Callable[[], Result], tensors: Sequence[Tensor], set_tensors: SetTensors
    ) -> Result:
        """Compute with tensors set, and have them set again in the backward pass.

        Args:
            compute: sets the tensors and restores the modules by itself.
            tensors: what it sets.
            set_tensors: how they are set again.
        """
        if torch.compiler.is_compiling():
            return compute()
        if not in_backward_pass():
            self.clear()  # left by a backward pass that raised
        outputs = compute()
        if torch.is_grad_enabled():
            self._add_hooks(outputs, tensors, set_tensors)
        return outputs

    def clear(self) -> None:
        """Restore the modules."""
        restore, self._restore = self._restore, None
        if restore is not None:
            restore()

    def read_original(self, read: Callable[[], Result]) -> Result:
        """Read what belongs to the modules themselves, which may be covered by what is set."""
        if self._restore is None or self._set is None:
            return read()
        self._restore()
        try:
            return read()
        finally:
            self._restore = self._set()

    def _add_hooks(
        self, outputs: object, tensors: Sequence[Tensor], set_tensors: SetTensors
    ) -> None:
        def hook(grad: Tensor | None) -> None:
            self.clear()
            # many backward passes at once, by `vmap`: no tensor can ask for gradients in there
            batched = grad is not None and is_functorch_wrapped(grad)
            # a tensor that is set in several places gets one copy
            copies = {t: t if batched else _detach_for_recomputation(t) for t in tensors}
            self._set = partial(set_tensors, [copies[tensor] for tensor in tensors])
            self._restore = self._set()
            after_backward(self.clear)

        for tensor in iter_tensors(outputs):
            # not on a parameter, where it would stay
            if tensor.grad_fn is not None and not is_functorch_wrapped(tensor):
                tensor.register_hook(hook)

    def __deepcopy__(self, _: object) -> "CallState":
        return CallState()  # of other modules, on which nothing is set

    def __reduce__(self) -> tuple[type["CallState"], tuple[()]]:
        return CallState, ()


def _detach_for_recomputation(tensor: Tensor) -> Tensor:
    """Return a leaf with the same numbers that passes its gradient on at once.

    Reentrant checkpointing runs a backward pass through every part that it computed again. Each
    continues into the graph that gave the numbers, which the first must therefore not free.
    """
    if not tensor.requires_grad:
        return tensor
    leaf = tensor.detach().requires_grad_()
    leaf.register_hook(lambda grad: torch.autograd.backward(tensor, grad, retain_graph=True))
    return leaf


class Injected(NamedTuple):
    """What a conditioned layer reads during one call."""

    term: Tensor
    """What the rays amount to at this layer, one row per ray, ``[G, ...]``."""
    batching: Batching = "groups"
    axis: SampleAxis = FIRST
    """Where the layer's outputs have their samples."""


class ConditionedLayer(StandIn):
    """Takes a layer's place and reads what is `injected` during a call."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(layer)
        self.injected: Injected | None = None

    def current(self) -> Injected:
        """Return what is set at the moment; raise outside of a call."""
        if self.injected is None:
            raise ConfigurationError(
                f"{type(self.layer).__name__} is conditioned on a ray but got none: call the "
                "whole model, `model(inputs, ray)`, not a part of it"
            )
        return self.injected

    def supports(self, axis: SampleAxis) -> bool:
        """Return True if each sample can have its own ray where samples are on this axis."""
        del axis
        return True


def _inject(layers: Sequence[Any], injected: Sequence[Injected]) -> Restore:
    """Set what each layer reads; return the function that restores what was there before."""
    before = [layer.injected for layer in layers]
    for layer, new in zip(layers, injected, strict=True):
        layer.injected = new

    def restore() -> None:
        for layer, old in zip(layers, before, strict=True):
            layer.injected = old

    return restore


class InjectedConditioning(Conditioning):
    """A conditioning whose ray enters at conditioned layers of the backbone."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives)
        self._call_state = CallState()
        self._layouts = LayoutCache()
        self._sensitivity_checked = False
        self._named: tuple[str, ...] = ()
        """The places that a caller named."""

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """The conditioned layers, by their dotted names in the backbone."""

    @abstractmethod
    def _terms(self, rays: Tensor) -> list[Tensor]:
        """What is injected at rays ``[G, J]``, ``[G, ...]`` for each of the `places`."""

    @property
    def ray_parameters(self) -> frozenset[str]:
        readers = {
            parameter
            for module in self.backbone.modules()
            if isinstance(module, ConditionedLayer)
            for parameter in set(module.parameters()) - set(module.layer.parameters())
        }
        inner = (name for name, parameter in self.named_parameters() if parameter in readers)
        return super().ray_parameters.union(inner)

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._call_with(inputs, self._terms(self.rays_for(ray)))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # where samples share nothing between rays, one batch for all would only take more memory
        self.rays_for(rays)
        all_rays = rays.unsqueeze(0) if rays.ndim == 1 else rays
        outputs: Outputs = map_tensors(
            lambda *outs: torch.stack(outs), *(self(inputs, ray) for ray in all_rays)
        )
        return outputs

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        terms = self._terms(self.rays_for(ray))
        return self._run_injected(lambda: function(self.backbone), terms)

    def _put(self, layer: ConditionedLayer) -> None:
        """Put a conditioned layer in its layer's place, wherever that layer is used."""
        modules = self.backbone.named_modules(remove_duplicate=False)
        for name in [name for name, module in modules if module is layer.layer]:
            if name == "":  # the network is that one layer
                self.backbone = layer
            else:
                self.backbone.set_submodule(name, layer)

    def _conditioned_layers(self) -> list[nn.Module]:
        return [self.backbone.get_submodule(name) for name in self.places]

    def _call_with(
        self, inputs: Inputs, terms: Sequence[Tensor], batching: Batching = "groups"
    ) -> Outputs:
        """Call the backbone while its conditioned layers read these terms, one for each.

        Several rays share the samples. Where samples influence one another, every ray has a call
        of its own for all of them, and each sample's outputs are those under its ray.
        """
        self._check_sensitivity(inputs, terms)
        groups = max(term.shape[0] for term in terms)
        if groups == 1 or batching == "each":
            return self._run(inputs, terms, batching)
        layout = self._layout(inputs, terms)
        if layout is None:
            alone = [
                self._run(inputs, [term[index : index + 1] for term in terms])
                for index in range(groups)
            ]
            return select_own_rows(alone, None)
        samples = count_samples(inputs, layout.axis)
        check_group_count(samples, groups)
        axes = [SampleAxis(block.axis, samples if block.inner else 0) for block in layout.blocks]
        return self._run(inputs, terms, axes=axes)

    def _check_sensitivity(self, inputs: Inputs, terms: Sequence[Tensor]) -> None:
        """Raise where a ray can change nothing, at the first call that is to be trained."""
        tensors = list(iter_tensors(inputs))
        if self._sensitivity_checked or not torch.is_grad_enabled() or not tensors:
            return
        if has_samples_first(self.backbone) and not self._named:
            return  # made to be conditioned, in places that were found
        if has_several_processes() or not can_probe([*tensors, *terms]):
            return
        places = self.places
        named = [index for index, name in enumerate(places) if name in self._named]
        self._sensitivity_checked = True  # the calls below come here, too
        insensitive = find_insensitive_places(
            self.backbone,
            self._conditioned_layers(),
            lambda other: self._run(inputs, other),
            terms,
            inputs,
            places=[[index] for index in named] or [range(len(places))],
        )
        if not insensitive:
            return
        self._sensitivity_checked = False
        where = places[named[insensitive[0]]] if named else places[0]
        one_ray = [term[:1].detach() for term in terms]
        layers = find_sensitive_layers(self.backbone, lambda: self._run(inputs, one_ray), inputs)
        some = ", ".join(f"`{name}`" for name in layers[:4]) + ", ..." * (len(layers) > 4)
        other = f", or name another layer ({some})" if layers else ""
        raise ConfigurationError(
            f"nothing that enters at `{where}` changes the outputs, so they cannot depend on the "
            "ray (a bias on attention keys cancels, or an output is not used): use "
            f'how="auto", which finds the places itself{other}'
        )

    def _layout(self, inputs: Inputs, terms: Sequence[Tensor]) -> Layout | None:
        """Find where the samples of this call are."""
        one_ray = [term[:1].detach() for term in terms]
        return self._layouts.find(
            self.backbone,
            self._conditioned_layers(),
            lambda other: self._run(other, one_ray),
            inputs,
            terms,
        )

    def _run(
        self,
        inputs: Inputs,
        terms: Sequence[Tensor],
        batching: Batching = "groups",
        axes: Sequence[SampleAxis] = (),
    ) -> Outputs:
        return self._run_injected(lambda: self.call(inputs), terms, batching, axes)

    def _run_injected(
        self,
        function: Callable[[], Result],
        terms: Sequence[Tensor],
        batching: Batching = "groups",
        axes: Sequence[SampleAxis] = (),
    ) -> Result:
        """Run a function of the backbone with terms injected, once more in the backward pass."""
        layers = self._conditioned_layers()
        axes = axes or [FIRST] * len(layers)

        def set_tensors(tensors: Sequence[Tensor]) -> Restore:
            pairs = zip(tensors, axes, strict=True)
            return _inject(layers, [Injected(term, batching, axis) for term, axis in pairs])

        def compute() -> Result:
            restore = set_tensors(terms)
            try:
                return function()
            finally:
                restore()

        return self._call_state.call(compute, terms, set_tensors)
