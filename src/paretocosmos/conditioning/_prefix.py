"""Tokens before a sequence: put in where ids are embedded, and taken off what comes out.

Ids are lengthened in front by any valid id, so that all that a network counts on its own, positions
above all, counts the tokens too; the embedding then puts the tokens in these places.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._batch import check_groups
from paretocosmos.conditioning._listening import Listener
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs

__all__ = [
    "Axes",
    "Prefixed",
    "cut",
    "filler_of",
    "grown",
    "position_axes",
    "prompted",
    "same",
    "unprompted",
]

Path = tuple[str | int, ...]
Axes = Mapping[Path, tuple[int, ...]]
"""Which axes of each tensor that a network gives count positions."""

# What stands at new positions, in the words of `transformers`: they are attended to, and no loss is
# taken there.
IDS = "input_ids"
GROWING = {"attention_mask": 1, "token_type_ids": 0, "labels": -100}
# Given only when something was asked for; every one of the tuple is [B, T, D].
HIDDEN = "hidden_states"


class Prefixed(Listener):
    """An embedding whose first positions are tokens: rays here are ``[G, tokens * D]``."""

    def __init__(self, layer: nn.Embedding, tokens: int) -> None:
        super().__init__(layer)
        self.tokens = tokens
        self.least = 0
        """Ids of fewer positions go on with a sequence that has its tokens already."""

    def forward(self, ids: Tensor) -> Tensor:
        """``[B, tokens + T]`` to ``[B, tokens + T, D]``."""
        embedded: Tensor = self.layer(ids)
        if ids.ndim != 2:
            raise ConfigurationError(
                f"`token` stands before sequences of ids [batch, positions], found ids of shape "
                f"{tuple(ids.shape)}: use another conditioning"
            )
        if ids.shape[1] < self.least:
            return embedded
        tokens = self.heard().unflatten(1, (self.tokens, -1)).to(embedded)
        samples, groups = ids.shape[0], tokens.shape[0]
        check_groups(samples, groups)
        each = tokens.repeat_interleave(samples // groups, dim=0)
        return torch.cat([each, embedded[:, self.tokens :]], dim=1)


def filler_of(embedding: nn.Embedding) -> int:
    """An id to lengthen sequences by: any but the one that means padding."""
    return 1 if embedding.padding_idx == 0 else 0


def grown(inputs: Inputs, tokens: int, filler: int) -> Inputs:
    """Inputs with room for tokens in front of the sequence."""
    if isinstance(inputs, Tensor):
        return _longer(inputs, tokens, filler)
    given: dict[str, Any] = {name: part for name, part in inputs.items() if part is not None}
    for name in ("inputs_embeds", "past_key_values"):
        if name in given:
            raise ConfigurationError(
                f"`token` puts its tokens before a whole sequence of ids, found `{name}`: pass "
                "`input_ids`, or use `model.at(ray).generate`"
            )
    if IDS not in given:
        whole = [name for name, part in given.items() if _are_ids(part) and name not in GROWING]
        if len(whole) != 1:
            raise ConfigurationError(
                f"`token` needs one input with ids, either `{IDS}` or the only input of whole "
                f"numbers [batch, positions], found {', '.join(given)}"
            )
    ids = IDS if IDS in given else whole[0]
    shape = given[ids].shape
    for name, part in given.items():
        if name == ids:
            given[name] = _longer(part, tokens, filler)
        elif name == "position_ids":
            first = torch.arange(tokens, device=part.device, dtype=part.dtype)
            given[name] = torch.cat([first.expand(*part.shape[:-1], -1), part + tokens], dim=-1)
        elif name in GROWING and isinstance(part, Tensor) and part.shape == shape:
            given[name] = _longer(part, tokens, GROWING[name])
        elif isinstance(part, Tensor) and part.shape[:2] == shape:
            raise ConfigurationError(
                f"`token` makes the sequence longer, but cannot extend `{name}` of shape "
                f"{tuple(part.shape)} to the new positions: use another conditioning"
            )
    return given


def _are_ids(part: object) -> bool:
    return isinstance(part, Tensor) and part.ndim == 2 and not part.is_floating_point()


def _longer(part: Tensor, tokens: int, value: int) -> Tensor:
    if part.ndim != 2 or part.is_complex():
        raise ConfigurationError(
            f"`token` stands before sequences of ids [batch, positions], found an input of shape "
            f"{tuple(part.shape)}: use another conditioning"
        )
    return torch.cat([part.new_full((part.shape[0], tokens), value), part], dim=1)


def position_axes(short: Any, long: Any, path: Path = ()) -> Axes:
    """The axes that are longer where the sequence is, of every tensor in what a network gives."""
    if isinstance(short, Tensor):
        pairs = zip(short.shape, long.shape, strict=True)
        return {path: tuple(axis for axis, (one, two) in enumerate(pairs) if one != two)}
    found: dict[Path, tuple[int, ...]] = {}
    others = dict(_parts(long))
    for name, part in _parts(short):
        found |= position_axes(part, others[name], (*path, name))
    return found


def cut(outputs: Any, tokens: int, axes: Axes, path: Path = ()) -> Any:
    """Outputs without the positions of the tokens; what is packed stays packed."""
    if isinstance(outputs, Tensor):
        usual = (1,) if path[:1] == (HIDDEN,) else ()
        for axis in axes.get(path, usual):
            outputs = outputs.narrow(axis, tokens, outputs.shape[axis] - tokens)
        return outputs
    parts = {name: cut(part, tokens, axes, (*path, name)) for name, part in _parts(outputs)}
    if isinstance(outputs, Mapping):
        return type(outputs)(**{str(name): part for name, part in parts.items()})
    if isinstance(outputs, list | tuple):
        return tuple(parts.values())
    if parts:
        return dataclasses.replace(outputs, **{str(name): part for name, part in parts.items()})
    return outputs


def _parts(outputs: Any) -> Sequence[tuple[str | int, Any]]:
    """What something a network gives is made of, by name or place."""
    if isinstance(outputs, Mapping):
        return list(outputs.items())
    if isinstance(outputs, list | tuple):
        return list(enumerate(outputs))
    plain = dataclasses.is_dataclass(outputs) and not isinstance(outputs, type)
    return list(vars(outputs).items()) if plain else []


def same(one: Any, two: Any) -> bool:
    """Whether two things that a network gave are equal, tensor by tensor."""
    if isinstance(one, Tensor):
        return torch.equal(one, two)
    pairs = zip(_parts(one), _parts(two), strict=True)
    return all(same(part, other) for (_, part), (_, other) in pairs)


def prompted(
    args: Sequence[Any], named: Mapping[str, Any], tokens: int, filler: int
) -> tuple[dict[str, Any], int]:
    """What `generate` is called with, and how many positions its prompt then has."""
    given = dict(named)
    names = [name for name in (IDS, "inputs") if given.get(name) is not None]
    prompt = args[0] if args else given.pop(names[0]) if names else None
    if len(args) > 1 or not isinstance(prompt, Tensor):
        raise ConfigurationError(
            "`generate` takes a prompt of token ids first and everything else by name, found "
            f"{len(args)} positional arguments: pass `input_ids`"
        )
    mask = given.pop("attention_mask", None)
    whole = {IDS: prompt, "attention_mask": torch.ones_like(prompt) if mask is None else mask}
    given |= grown(whole, tokens, filler)
    if given.get("max_length") is not None:
        given["max_length"] += tokens
    return given, prompt.shape[1] + tokens


def unprompted(generated: Any, tokens: int) -> Any:
    """What `generate` gave, without the positions of the tokens."""
    if isinstance(generated, Tensor):
        return generated[:, tokens:]
    generated.sequences = generated.sequences[:, tokens:]
    return generated
