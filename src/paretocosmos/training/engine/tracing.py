"""Traced steps: the step's tensor operations written down once, backward pass included.

`make_fx` records the whole step as a flat list of operations, without autograd and without Python
between the layers. `traced` replays them, the same arithmetic in the same order: the gain is the
bookkeeping, which a small network on a CPU mostly consists of. `compiled` hands them to
Inductor, which fuses them into kernels of its own: the gain is memory traffic, the price some
seconds of compiling. Either is compared with the eager step on the batch it was made from, and
where it runs code from outside on other samples and rays too (`confirm`); where it does not hold,
or cannot be made, the eager step goes on alone and `failure` says why.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from paretocosmos.config.plan import get_declaration
from paretocosmos.io.files import one_line
from paretocosmos.methods import State
from paretocosmos.runtime.torch_private import make_fx, may_return_view, unwrap_operation
from paretocosmos.training.engine.step import Step, StepResult, match_layout
from paretocosmos.types import Batch, first, map_tensors

# What gives Python a number that depends on a tensor's values, or a shape that does, and that
# `make_fx` lets pass: it refuses `item`, `float` and `if` itself.
READING = frozenset(
    {
        *(Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__),
        *(Tensor.equal, Tensor.allclose, torch.equal, torch.allclose),
        *(Tensor.nonzero, Tensor.argwhere, Tensor.masked_select, Tensor.unique),
        *(torch.nonzero, torch.argwhere, torch.masked_select, torch.unique),
    }
)
# Values that say by themselves whether they changed; of others only the identity does.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class DataDependentError(Exception):
    """A step that a recording would not repeat, since Python has a say in it."""


class forbid_reading(TorchFunctionMode):  # noqa: N801, a context like those of contextlib
    """Refuses whatever lets Python see a tensor's values, be it as a shape."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        index = args[1] if func is Tensor.__getitem__ else ()
        # a mask takes as many entries as its values say
        parts = index if isinstance(index, tuple) else (index,)
        masked = any(isinstance(part, Tensor) and part.dtype == torch.bool for part in parts)
        if func in READING or masked:
            name = getattr(func, "__name__", str(func))
            raise DataDependentError(f"the step reads values of tensors in Python (`{name}`)")
        return func(*args, **(kwargs or {}))


@contextmanager
def forbid_changes(things: Iterable[object]) -> Iterator[None]:
    """Refuse things that change an attribute of their own inside.

    Args:
        things: those that promise to keep no state between steps.
    """
    watched = [thing for thing in things if hasattr(thing, "__dict__")]
    marks = [{name: _get_fingerprint(v) for name, v in vars(thing).items()} for thing in watched]
    yield
    for thing, before in zip(watched, marks, strict=True):
        after = {name: _get_fingerprint(v) for name, v in vars(thing).items()}
        # in both, so that attributes that came or went count too
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if changed:
            raise DataDependentError(
                f"`{type(thing).__name__}` changes its `{changed[0]}` from step to step in Python"
            )


def _get_fingerprint(value: object) -> object:
    """Return a value that differs once an attribute was changed, as a container's length does."""
    if isinstance(value, PLAIN):
        return type(value).__name__, repr(value)  # which is equal for two NaNs
    if isinstance(value, list | dict | set | tuple):
        return id(value), len(value)
    return id(value)


aten = torch.ops.aten

# Where the tensor an operation works on is never read again, the result can take its place.
IN_PLACE: dict[Any, Any] = {
    aten.add.Tensor: aten.add_.Tensor,
    aten.relu.default: aten.relu_.default,
}


def simplify_graph(graph: fx.GraphModule, *, in_place: bool) -> fx.GraphModule:
    """Make a graph compute the same numbers with fewer operations and less memory.

    Aliases and transposes of transposes, which only autograd needed, are left out.

    Args:
        graph: changed, and returned.
        in_place: do an addition or a ReLU of something nobody else reads in its place: on a CPU a
            tensor not written is time saved.
    """
    for node in list(graph.graph.nodes):
        if node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
        elif node.target is aten.t.default and node.args[0].target is aten.t.default:
            node.replace_all_uses_with(node.args[0].args[0])
    graph.graph.eliminate_dead_code()  # before the readers are counted
    for node in graph.graph.nodes if in_place else ():
        if node.target in IN_PLACE and not node.kwargs and _can_overwrite(node.args[0], node):
            node.target = IN_PLACE[node.target]
    graph.recompile()
    return graph


def _can_overwrite(tensor: Any, result: fx.Node) -> bool:
    """Return True if an operation of the graph made the tensor, for this one reader alone."""
    if not isinstance(tensor, fx.Node):
        return False
    values = [node.meta.get("val") for node in (tensor, result)]
    kinds = [(getattr(v, "dtype", None), getattr(v, "shape", None)) for v in values]
    if kinds[0] != kinds[1] or kinds[0][1] is None:
        return False
    while tensor.op == "call_function" and len(tensor.users) == 1:
        maker = tensor.args[0] if tensor.target is operator.getitem else tensor
        assert isinstance(maker, fx.Node)
        if not may_return_view(maker.target):
            # an expanded tensor has more numbers than places to write them to
            return bool(tensor.meta["val"].numel() == result.meta["val"].numel())
        tensor = tensor.args[0]
    return False


def compile_straight_line(graph: fx.Graph) -> Callable[..., list[Tensor]]:
    """Compile a graph to a function of its placeholders, in order, that returns its output.

    Intermediate results are released after their last use: their memory serves the next ones.
    """
    scope: dict[str, Any] = {}
    bound: dict[Any, str] = {}

    def name_of(value: Any) -> str:
        """Spell a value in the function's source; bind to a name what has no spelling."""
        if isinstance(value, fx.Node):
            return value.name
        if isinstance(value, list | tuple):
            return f"[{', '.join(name_of(item) for item in value)}]"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        # floats too: repr(inf) is no Python
        scope[f"constant_{len(scope)}"] = value
        return f"constant_{len(scope) - 1}"

    last_use = {used: node for node in graph.nodes for used in node.all_input_nodes}
    lines = []
    for node in graph.nodes:
        if node.op == "call_function":
            if node.target not in bound:
                bound[node.target] = f"operation_{len(bound)}"
                scope[bound[node.target]] = unwrap_operation(node.target)
            arguments = [name_of(value) for value in node.args]
            arguments += [f"{key}={name_of(value)}" for key, value in node.kwargs.items()]
            lines.append(f"{node.name} = {bound[node.target]}({', '.join(arguments)})")
            done = [
                used.name
                for used in node.all_input_nodes
                if last_use[used] is node and used.op != "get_attr"
            ]
            lines += [f"del {', '.join(done)}"] if done else []
        elif node.op == "get_attr":  # a constant the trace lifted out
            scope[node.name] = operator.attrgetter(node.target)(graph.owning_module)
        elif node.op == "output":
            lines.append(f"return {name_of(node.args[0])}")
        elif node.op != "placeholder":
            raise NotImplementedError(f"a recorded graph has no `{node.op}`")
    placeholders = [node.name for node in graph.nodes if node.op == "placeholder"]
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def replay({', '.join(placeholders)}):\n{body}", scope)
    replay: Callable[..., list[Tensor]] = scope["replay"]
    return replay


# How far a step may be from the eager one where rounding differs (fused kernels, a GPU's unordered
# sums): tf32 keeps 10 bits, so products of it agree to some 1e-3.
CLOSE = 1e-2
# Smaller tensors are measured by the others' size: gradients that cancel are rounding errors alone.
SHARE = 0.05


class TracedStep:
    """A step that replays its operations; one recording per batch size."""

    def __init__(
        self,
        step: Step,
        model: nn.Module,
        mode: Literal["traced", "compiled"],
        third_party: Sequence[object] = (),
    ) -> None:
        """Record a step when it is first called.

        Args:
            step: the eager one.
            model: the network it runs.
            mode: whether operations are replayed or compiled.
            third_party: what it calls that is neither this package's nor torch's.
        """
        self._step, self._model, self.mode = step, model, mode
        self._third_party = third_party
        self._replays: dict[tuple[torch.Size, ...], Callable[[Arguments], StepResult]] = {}
        self.failure: str | None = None
        self.data_dependent = False
        """True if Python decides something in the step, so that it must not be captured."""

    def __call__(
        self, parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
    ) -> StepResult:
        arguments = Arguments(parameters, batch, rays, state)
        replay = self._replays.get(arguments.shapes)
        if replay is not None:
            with torch.inference_mode():  # the recording has the backward pass: no autograd
                return replay(arguments)
        if self.failure is None:
            return self._trace(arguments)
        return self._step(*arguments)

    def _trace(self, arguments: "Arguments") -> StepResult:
        """Trace on this batch, compare with the eager step, and return the eager result."""
        devices = _list_generator_devices(arguments.rays)
        buffers = {name: buffer.clone() for name, buffer in self._model.named_buffers()}
        replay, replayed = None, None
        try:
            reading = forbid_reading() if self._third_party else nullcontext()
            with torch.random.fork_rng(devices), forbid_changes(self._third_party), reading:
                replay = _make_replay(self._step, arguments, compiled=self.mode == "compiled")
            with torch.random.fork_rng(devices), torch.inference_mode():
                replayed = replay(arguments)
        except torch.cuda.OutOfMemoryError:
            raise  # the caller splits the stack of networks and tries again
        except DataDependentError as error:
            self._fall_back(str(error))
        except Exception as error:  # whatever a network does that cannot be recorded
            reason = f"{type(error).__name__}: {one_line(error)}"
            self.failure = f"the step cannot be {self.mode} ({reason}){self._advice}"
            # code from outside that claims to be traceable may have failed by a decision in Python
            self.data_dependent = bool(self._advice)
        for name, buffer in self._model.named_buffers():
            if not torch.equal(buffer, buffers[name]):
                self.failure = f"the network changes its buffer `{name}` as it goes"
                buffer.copy_(buffers[name])
        result = self._step(*arguments)
        if self.failure is None and replay is not None and replayed is not None:
            if self._agree(replayed, result):
                self._replays[arguments.shapes] = replay
            elif self._third_party:
                self._fall_back(f"the {self.mode} step does not repeat the eager one")
            else:
                self.failure = f"the {self.mode} step does not repeat the eager one"
        if self.failure is not None:
            self._replays.clear()  # a step is run in one way
        return result

    def confirm(
        self, parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
    ) -> None:
        """Compare the trace with the eager step on samples and rays it was not made from.

        What Python decided while it was traced may have to be decided otherwise there. This package
        and torch decide nothing in it.
        """
        arguments = Arguments(parameters, batch, rays, state)
        replay = self._replays.get(arguments.shapes)
        if replay is None or not self._third_party:
            return
        with torch.random.fork_rng(_list_generator_devices(rays)), torch.inference_mode():
            replayed = replay(arguments)
        try:
            with forbid_changes(self._third_party):
                result = self._step(*arguments)
        except DataDependentError as error:
            self._fall_back(str(error))
        else:
            if not self._agree(replayed, result):
                self._fall_back(
                    f"on other samples the {self.mode} step does not repeat the eager one"
                )

    def _fall_back(self, reason: str) -> None:
        """Go on without a recording, since Python decides something in it."""
        self.failure = f"{reason}, so a recording would freeze what Python decides{self._advice}"
        self.data_dependent = True
        self._replays.clear()

    @property
    def _advice(self) -> str:
        """The way out where a declaration does not hold; empty where there is none."""
        names = [type(thing).__name__ for thing in self._third_party if get_declaration(thing)]
        whose = " or ".join(f"`{name}`" for name in dict.fromkeys(names))
        return f": take `traceable = True` off {whose}" if names else ""

    def _agree(self, replayed: StepResult, result: StepResult) -> bool:
        # on a CPU the same operations give the same bits; a GPU may sum in another order
        exact = self.mode == "traced" and result.losses.device.type == "cpu"
        return _compute_difference(replayed, result) <= (0.0 if exact else CLOSE)


class Arguments(NamedTuple):
    """The arguments of a step."""

    parameters: Mapping[str, Tensor]
    batch: Batch
    rays: Tensor
    state: State

    @property
    def shapes(self) -> tuple[torch.Size, ...]:
        """The shapes that a recording is for."""
        # the targets' too: shares of batches of different sizes may be of one size
        return first(self.batch.inputs).shape, first(self.batch.targets).shape, self.rays.shape

    def flatten(self) -> list[Tensor]:
        """Return every tensor, in the order in which `rebuild` takes them."""
        inputs = self.batch.inputs
        return [
            *self.parameters.values(),
            *([inputs] if isinstance(inputs, Tensor) else inputs.values()),
            *self.batch.targets.values(),
            self.rays,
            *self.state.values(),
        ]

    def rebuild(self, tensors: Iterable[Tensor]) -> "Arguments":
        """Return arguments of this structure with other tensors."""
        rest = iter(tensors)
        return Arguments(
            _rebuild(self.parameters, rest),
            Batch(_rebuild(self.batch.inputs, rest), _rebuild(self.batch.targets, rest)),
            next(rest),
            _rebuild(self.state, rest),
        )


def _list_generator_devices(rays: Tensor) -> list[torch.device]:
    """Return the devices, besides the CPU, from whose generators a step may draw."""
    return [rays.device] if rays.device.type == "cuda" else []


def _make_replay(
    step: Step, example: Arguments, *, compiled: bool
) -> Callable[[Arguments], StepResult]:
    """Trace a step on example arguments and return what replays it."""

    def flat_step(*tensors: Tensor) -> list[Tensor]:
        result = step(*example.rebuild(tensors))
        return [result.losses, *result.gradients.values(), *result.state.values()]

    graph = simplify_graph(
        make_fx(flat_step)(*(tensor.detach() for tensor in example.flatten())),
        in_place=example.rays.device.type == "cpu" and not compiled,
    )
    run: Callable[..., Any] = (
        torch.compile(graph, fullgraph=True, dynamic=False)
        if compiled
        else compile_straight_line(graph.graph)
    )

    def replay(arguments: Arguments) -> StepResult:
        rest = iter(run(*arguments.flatten()))
        losses, gradients = next(rest), _rebuild(arguments.parameters, rest)
        if compiled:  # a compiler may choose other strides
            gradients = {
                name: match_layout(g, arguments.parameters[name]) for name, g in gradients.items()
            }
        return StepResult(losses, gradients, _rebuild(arguments.state, rest))

    return replay


def _rebuild(structure: Tensor | Mapping[str, Tensor], tensors: Iterator[Tensor]) -> Any:
    """Return the next tensors, arranged as `structure`."""
    return map_tensors(lambda _: next(tensors), structure)


def _compute_difference(result: StepResult, expected: StepResult) -> float:
    """Compute how far two results are apart, tensor by tensor, relative to the second's size.

    A tensor that is small beside the others of its kind is measured against a share of theirs.
    """
    worst = 0.0
    kinds = (
        ([result.losses], [expected.losses]),
        (result.gradients.values(), expected.gradients.values()),
        (result.state.values(), expected.state.values()),
    )
    for ours, theirs in kinds:
        pairs = [(a.double(), b.double()) for a, b in zip(ours, theirs, strict=True)]
        if not all(torch.equal(a.isfinite(), b.isfinite()) for a, b in pairs):
            return math.inf
        apart = [float(torch.where(b.isfinite(), a - b, 0).norm()) for a, b in pairs]
        sizes = [float(torch.where(b.isfinite(), b, 0).norm()) for _, b in pairs]
        least = SHARE * math.hypot(*sizes)
        for far, size in zip(apart, sizes, strict=True):
            beside = max(size, least)
            worst = max(worst, far / beside if beside else float(far > 0))
    return worst
