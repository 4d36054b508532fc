"""How a ray reaches the layers of somebody else's network.

A network that was written without rays has a ``forward(inputs)`` that passes none on. So the ray
travels beside it: state is set on modules for the time of a call. Everywhere else this package
passes state in arguments and return values; this file is the one exception, and has three parts.

1. `ConditionedLayer` takes the place of a layer. During a call, its attribute `injected` holds what
   the ray amounts to there (`Injected`): the ray itself, the scale and shift of FiLM, or tokens.
2. `CallState` sets the same tensors again in the backward pass. A hypernetwork uses it too, for the
   weights that it generates.
3. `InjectedConditioning` is the conditioning: its `forward` computes what is injected, sets it,
   calls the backbone and restores the layers, also if the call raises. Nothing else writes
   `injected`, and only the layers read it. A layer that is called on its own finds `None` and says
   so.

**Why the backward pass matters.** Gradient checkpointing recomputes parts of a call during the
backward pass, and the recomputed layers have to find the same state. So the outputs of a call carry
a gradient hook that sets the call's tensors again. Autograd runs the nodes of later calls before
those of earlier ones: until the pass reaches the outputs of another call, whatever is recomputed
belongs to this one. The end of the pass clears what was set last.

**Reentrant checkpointing** (``use_reentrant=True``) runs a backward pass of its own through each
recomputed part. Therefore the hook sets copies, which pass their gradient on at once
(`_detach_for_recomputation`).

**A backward pass that raises** never reaches its end, so the tensors stay set. The next hook clears
them, and so does the next call outside of a backward pass, before it begins.

**Nested calls**, such as a conditioned network inside another or a call that is recomputed as a
whole, set their own tensors and then restore those that they found.

**Many backward passes at once** (``is_grads_batched``, as TorchJD asks for). The hook then runs
inside a `vmap` and sets the tensors themselves: copies could not ask for gradients there, and
``use_reentrant=True`` is impossible anyway.

**torch.func, vmap, torch.compile, torch.export.** Tensors are set and restored as everywhere, and
become ordinary inputs of the graph. No hooks are added: tensors inside torch.func have none, and a
compiled graph recomputes nothing in Python.

**Threads** share modules and what is set on them, so one thread at a time may call a conditioned
network (the server sees to that); several threads need copies. The backward pass on a GPU runs in a
thread of torch's own, but its caller waits for it.
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
    find_insensitive_places,
    has_several_processes,
)
from paretocosmos.nn.conditioning.sample_layout import (
    FIRST,
    Batching,
    Layout,
    SampleAxis,
    can_probe,
    check_group_count,
    list_tensors,
    select_own_rows,
    stack_outputs,
)
from paretocosmos.nn.norms import StandIn
from paretocosmos.runtime.torch_private import (
    after_backward,
    in_backward_pass,
    is_functorch_wrapped,
)
from paretocosmos.types import Inputs, Outputs, first

Restore = Callable[[], None]
SetTensors = Callable[[Sequence[Tensor]], Restore]
"""Set tensors on modules; return the function that restores what was there before."""

Result = TypeVar("Result")


class CallState:
    """The tensors that a backward pass has set on the modules of one conditioned network."""

    def __init__(self) -> None:
        # both `None` unless a backward pass is under way, or has raised
        self._restore: Restore | None = None
        self._set: Callable[[], Restore] | None = None

    def call(
        self, compute: Callable[[], Result], tensors: Sequence[Tensor], set_tensors: SetTensors
    ) -> Result:
        """Run a computation, and set its tensors again in the backward pass.

        Args:
            compute: the computation; it sets the tensors and restores the modules itself.
            tensors: what it sets.
            set_tensors: sets them again.
        """
        if torch.compiler.is_compiling():  # a hook would break the graph
            return compute()
        if not in_backward_pass():
            self.clear()  # left by a backward pass that raised
        outputs = compute()
        if torch.is_grad_enabled():
            self._add_hooks(outputs, tensors, set_tensors)
        return outputs

    def clear(self) -> None:
        """Restore the modules."""
        # forgotten first, so that nothing is restored twice if restoring raises
        restore, self._restore = self._restore, None
        if restore is not None:
            restore()

    def read_original(self, read: Callable[[], Result]) -> Result:
        """Read from the modules what they hold outside of a call, whatever is set on them now."""
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
        def set_again(grad: Tensor | None) -> None:
            self.clear()  # of a later call, whose backward pass comes first
            # inside the `vmap` of many backward passes no tensor can ask for gradients
            batched = grad is not None and is_functorch_wrapped(grad)
            # one copy of a tensor that is set in several places, so that its gradients add up
            copies = {t: t if batched else _detach_for_recomputation(t) for t in tensors}
            self._set = partial(set_tensors, [copies[tensor] for tensor in tensors])
            self._restore = self._set()
            after_backward(self.clear)  # once per pass, however many hooks ask for it

        for tensor in list_tensors(outputs):
            # no `grad_fn`: a parameter that is returned as it is, where the hook would stay
            if tensor.grad_fn is not None and not is_functorch_wrapped(tensor):
                tensor.register_hook(set_again)

    def __deepcopy__(self, _: object) -> "CallState":
        return CallState()  # nothing is set on the modules of the copy

    def __reduce__(self) -> tuple[type["CallState"], tuple[()]]:
        return CallState, ()


def _detach_for_recomputation(tensor: Tensor) -> Tensor:
    """Return a leaf with the same numbers that passes its gradient on at once."""
    if not tensor.requires_grad:
        return tensor
    leaf = tensor.detach().requires_grad_()
    # reentrant checkpointing runs a backward pass through each recomputed part, and all of them
    # continue into the graph that gave the numbers: the first must not free it
    leaf.register_hook(lambda grad: torch.autograd.backward(tensor, grad, retain_graph=True))
    return leaf


class Injected(NamedTuple):
    """Values that a conditioned layer reads during one call.

    Attributes:
        term: what the rays amount to at this layer, one row per ray, ``[G, ...]``.
        batching: how rays meet samples.
        axis: the axis of the layer's outputs that counts samples.
    """

    term: Tensor
    batching: Batching = "groups"
    axis: SampleAxis = FIRST


class ConditionedLayer(StandIn):
    """A layer's replacement, which reads what is `injected` during a call."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(layer)
        self.injected: Injected | None = None

    def current(self) -> Injected:
        """Return what is injected; raise outside of a call."""
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


class InjectedConditioning(Conditioning):
    """A conditioning whose ray enters at conditioned layers of the backbone."""

    places: tuple[str, ...]
    """The conditioned layers, by their dotted names in the backbone."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives)
        self._call_state = CallState()
        self._layouts = LayoutCache()
        self._sensitivity_checked = False
        self._named: tuple[str, ...] = ()
        """The places that the caller named; the others were found in the network."""

    @abstractmethod
    def _terms(self, rays: Tensor) -> list[Tensor]:
        """Compute what is injected at rays ``[G, J]``: ``[G, ...]`` for each of the `places`."""

    def _find_readers(self) -> set[nn.Parameter]:
        """Return the parameters in the backbone that read what is injected."""
        return {
            parameter
            for module in self.backbone.modules()
            if isinstance(module, ConditionedLayer)
            for parameter in set(module.parameters()) - set(module.layer.parameters())
        }

    @property
    def ray_parameters(self) -> tuple[str, ...]:
        outer, readers = super().ray_parameters, self._find_readers()
        named = self.named_parameters()
        return tuple(name for name, entry in named if name in outer or entry in readers)

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        return self._call_with(inputs, self._terms(self.rays_for(ray)))

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        # where rays share no computation, one batch for all of them would only take more memory
        self.rays_for(rays)  # to refuse a wrong shape; each call below applies `ends` itself
        return stack_outputs(self(inputs, ray) for ray in rays.reshape(-1, self.objectives))

    def with_ray(self, ray: Tensor, function: Callable[[nn.Module], Any]) -> Any:
        terms = self._terms(self.rays_for(ray))
        return self._run(partial(function, self.backbone), terms)

    def _insert(self, layer: ConditionedLayer) -> None:
        """Replace a layer by its conditioned one, wherever the layer is used."""
        # with duplicates: a shared layer must be conditioned under each of its names
        modules = self.backbone.named_modules(remove_duplicate=False)
        for name in [name for name, module in modules if module is layer.layer]:
            if name == "":  # the network is that one layer
                self.backbone = layer
            else:
                self.backbone.set_submodule(name, layer)

    def _call_with(
        self, inputs: Inputs, terms: Sequence[Tensor], batching: Batching = "groups"
    ) -> Outputs:
        """Call the backbone with one term injected per conditioned layer.

        Several rays share the samples. Where samples influence one another, there is a call for
        every ray with all samples, and each sample keeps its outputs under its own ray.
        """
        self._check_sensitivity(inputs, terms)
        groups = max(term.shape[0] for term in terms)
        if groups == 1 or batching == "each":
            return self._run(partial(self.call, inputs), terms, batching)
        layout = self._layout(inputs, terms)
        if layout is None:
            alone = [
                self._run(partial(self.call, inputs), [term[index : index + 1] for term in terms])
                for index in range(groups)
            ]
            return select_own_rows(alone, None)
        samples = first(inputs).shape[layout.axis]
        check_group_count(samples, groups)
        # a layout may come from a call with another number of samples
        axes = [SampleAxis(block.axis, samples if block.inner else 0) for block in layout.blocks]
        return self._run(partial(self.call, inputs), terms, axes=axes)

    def _check_sensitivity(self, inputs: Inputs, terms: Sequence[Tensor]) -> None:
        """Raise if no ray can change the outputs; looks at the first call with gradients only."""
        if self._sensitivity_checked or not torch.is_grad_enabled():
            return
        if getattr(self.backbone, "samples_first", False) and not self._named:
            return  # a `Backbone`, at the places that it names itself
        tensors = list_tensors(inputs)
        # processes that probe at different times would wait for each other's collectives
        if not tensors or has_several_processes() or not can_probe([*tensors, *terms]):
            return
        places = self.places
        named = [index for index, name in enumerate(places) if name in self._named]
        self._sensitivity_checked = True  # before the calls below, which come here too
        insensitive = find_insensitive_places(
            self.backbone,
            self._find_readers(),
            partial(self._run, partial(self.call, inputs)),
            terms,
            inputs,
            places=[[index] for index in named] or [range(len(places))],
        )
        if not insensitive:
            return
        self._sensitivity_checked = False  # the next call has to raise again
        where = places[named[insensitive[0]]] if named else places[0]
        raise ConfigurationError(
            f"nothing that enters at `{where}` changes the outputs, so they cannot depend on the "
            "ray (a bias on attention keys cancels, or an output is not used): use "
            'how="film", which finds the places itself, or name another layer'
        )

    def _layout(self, inputs: Inputs, terms: Sequence[Tensor]) -> Layout | None:
        """Find which axes count the samples in this call."""
        one_ray = [term[:1].detach() for term in terms]
        return self._layouts.find(
            self.backbone,
            self.places,
            lambda new_inputs: self._run(partial(self.call, new_inputs), one_ray),
            inputs,
            terms,
        )

    def _run(
        self,
        function: Callable[[], Result],
        terms: Sequence[Tensor],
        batching: Batching = "groups",
        axes: Sequence[SampleAxis] = (),
    ) -> Result:
        """Run a function of the backbone with terms injected, now and if it is recomputed."""
        layers: list[Any] = [self.backbone.get_submodule(name) for name in self.places]
        axes = axes or [FIRST] * len(layers)

        def set_tensors(tensors: Sequence[Tensor]) -> Restore:
            # not always `None`: a call may be inside another call of the same network
            before = [layer.injected for layer in layers]
            for layer, term, axis in zip(layers, tensors, axes, strict=True):
                layer.injected = Injected(term, batching, axis)

            def restore() -> None:
                for layer, injected in zip(layers, before, strict=True):
                    layer.injected = injected

            return restore

        def compute() -> Result:
            restore = set_tensors(terms)
            try:
                return function()
            finally:
                restore()

        return self._call_state.call(compute, terms, set_tensors)
