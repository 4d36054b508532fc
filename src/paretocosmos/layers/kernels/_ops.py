"""The two operators that torch knows: forward and backward, each with shapes and a vmap rule.

`torch.library.custom_op` rather than `autograd.Function`: an operator is opaque, so `make_fx` and
`torch.compile` record one node instead of trying to look into a kernel launch, and autograd below
vmap sees the stacked call, so several seeds are one launch forward and one set of launches back.
"""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from paretocosmos.layers.kernels import _launch

__all__ = ["backward_op", "forward_op"]


@torch.library.custom_op("paretocosmos::conv_pool", mutates_args=())
def forward_op(
    x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None, precision: str
) -> tuple[Tensor, Tensor]:
    """Give h [S,B,O,PH,PW] and, as int8, which output of each pool it came from."""
    return _launch.forward(x, weight, bias, term, precision)


@torch.library.custom_op("paretocosmos::conv_pool_backward", mutates_args=())
def backward_op(
    grad: Tensor,
    code: Tensor,
    x: Tensor,
    weight: Tensor,
    groups: int,
    needs_x: bool,
    needs_weight: bool,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Give dx, dW, db, dterm; an empty tensor for what is not asked for (`groups` 0: no term)."""
    none = _none(grad)
    dweight, dbias = none, none[:, :0].clone()
    dx, dterm = none[:, :0].clone(), none[:, :0].clone()
    if needs_weight:
        dweight, dbias = _launch.weight_gradients(x, weight, grad, code, precision)
    if needs_x:
        dx = _launch.input_gradient(x, weight, grad, code, precision)
    if groups:
        dterm = _launch.term_gradient(x, weight, grad, code, groups)
    return dx, dweight, dbias, dterm


def _none(grad: Tensor) -> Tensor:
    """No gradient: nothing per seed, because an operator must return tensors."""
    return grad.new_empty((grad.shape[0], 0))


@forward_op.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None, precision: str
) -> tuple[Tensor, Tensor]:
    sizes = _launch.Sizes.of(x, weight)
    h = x.new_empty((sizes.seeds, sizes.batch, sizes.o, *sizes.pooled))
    return h, torch.empty_like(h, dtype=torch.int8)


@backward_op.register_fake
def _(
    grad: Tensor,
    code: Tensor,
    x: Tensor,
    weight: Tensor,
    groups: int,
    needs_x: bool,
    needs_weight: bool,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sizes = _launch.Sizes.of(x, weight)
    return (
        x.new_empty(x.shape) if needs_x else _none(grad),
        weight.new_empty(weight.shape) if needs_weight else _none(grad),
        weight.new_empty(weight.shape[:2]) if needs_weight else _none(grad),
        x.new_empty((sizes.seeds, groups, sizes.o, *sizes.conv)) if groups else _none(grad),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _, term, ctx.precision = inputs
    ctx.groups = 0 if term is None else term.shape[1]
    ctx.save_for_backward(output[1], x, weight)
    ctx.set_materialize_grads(False)  # or a tensor of zeros is made for the code


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 5
    code, x, weight = ctx.saved_tensors
    wants_x, wants_weight, wants_bias, wants_term, _ = ctx.needs_input_grad
    dx, dweight, dbias, dterm = backward_op(
        grad,
        code,
        x,
        weight,
        ctx.groups if wants_term else 0,
        wants_x,
        wants_weight or wants_bias,
        ctx.precision,
    )
    return (
        dx if wants_x else None,
        dweight if wants_weight else None,
        dbias if wants_bias else None,
        dterm if wants_term else None,
        None,
    )


forward_op.register_autograd(_backward, setup_context=_setup)


def _stacking(op: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Any]:
    """The vmap rule of both: the mapped axis joins the seeds, an argument without it is shared."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        size = info.batch_size

        def stacked(arg: Any, dim: int | None) -> Any:
            if not isinstance(arg, Tensor):
                return arg
            arg = arg.unsqueeze(0).expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            return arg.flatten(0, 1)

        outputs = op(*map(stacked, args, in_dims))
        return tuple(out.unflatten(0, (size, -1)) for out in outputs), (0,) * len(outputs)

    return rule


forward_op.register_vmap(_stacking(forward_op))
backward_op.register_vmap(_stacking(backward_op))
