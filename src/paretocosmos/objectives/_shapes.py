"""Shapes that an objective can compare, and refusals of those it would misread."""

from torch import Tensor

from paretocosmos.errors import ConfigurationError


def aligned(target: Tensor, output: Tensor, name: str = "label") -> Tensor:
    """A target in the shape of an output, number by number.

    Axes of length 1 may differ, as in ``[B]`` and ``[B, 1]``. All others must be the same in the
    same order: a reshape would compare channels with positions.

    >>> import torch
    >>> aligned(torch.zeros(4), torch.zeros(4, 1)).shape
    torch.Size([4, 1])
    """
    if target.shape == output.shape:
        return target
    if target.shape[:1] != output.shape[:1] or _long_axes(target) != _long_axes(output):
        raise ConfigurationError(
            f"`{name}` must have the shape of the outputs, found {list(target.shape)} for "
            f"outputs {list(output.shape)}: bring the axes of the target into the order of the "
            "outputs"
        )
    return target.reshape(output.shape)


def _long_axes(part: Tensor) -> list[int]:
    return [length for length in part.shape[1:] if length != 1]


def classes_last(
    logits: Tensor, labels: Tensor, axis: int | None = None, name: str = "label"
) -> Tensor:
    """Logits with their classes on the last axis, for one label each.

    The classes may be second, as torch's cross-entropy has them, ``[B, K, ...]`` for labels
    ``[B, ...]``; or last, as language models give them, ``[B, ..., K]``.

    Args:
        logits: of every class for every label.
        labels: the classes, one each.
        axis: of the classes: 1 or -1; the one that fits if `None`. Where both fit, because there
            are as many positions as classes, it must be given.
        name: of the labels, for a refusal.

    >>> import torch
    >>> classes_last(torch.zeros(4, 21, 16, 15), torch.zeros(4, 16, 15)).shape
    torch.Size([4, 16, 15, 21])
    """
    last = logits.shape[:-1] == labels.shape
    second = logits.ndim > 1 and (*logits.shape[:1], *logits.shape[2:]) == labels.shape
    if logits.ndim > 2 and last and second and axis is None:
        raise ConfigurationError(
            f"outputs {list(logits.shape)} may have their classes on the second or on the last "
            f"axis, found as many positions as classes in `{name}` {list(labels.shape)}: pass "
            "`axis=1` or `axis=-1`"
        )
    if not {None: last or second, 1: second, -1: last}[axis]:
        wanted = {None: "[B, K], [B, K, ...] or [B, ..., K]", 1: "[B, K, ...]", -1: "[B, ..., K]"}
        raise ConfigurationError(
            f"outputs are {wanted[axis]} for labels [B] or [B, ...], found {list(logits.shape)} "
            f"for `{name}` {list(labels.shape)}: the network must return logits of all classes for "
            "every label"
        )
    return logits if last and axis != 1 else logits.movedim(1, -1)


def check_axis(axis: int | None) -> None:
    """Refuse an axis that classes are never on."""
    if axis not in (None, 1, -1):
        raise ConfigurationError(
            f"`axis` must be 1 if classes come second or -1 if they come last, found {axis!r}"
        )
