"""Preference tokens: a few learned tokens, set by the ray, before the sequence.

Sequences of ids are extended in front by any valid id, so that whatever the network derives from
them, positions above all, includes the tokens. The embedding then replaces these ids by the tokens,
and their positions are removed from the outputs.
"""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import one_line
from paretocosmos.nn.conditioning.injection import ConditionedLayer, InjectedConditioning
from paretocosmos.nn.conditioning.layer_search import check_is_called, find_input_layer
from paretocosmos.nn.conditioning.sample_layout import check_group_count, list_tensors
from paretocosmos.types import Inputs, Outputs

# Lengths of the sequences that the network is tried out with, beside the tokens.
SHORT, LONG = 3, 4

Path = tuple[str | int, ...]
Axes = Mapping[Path, tuple[int, ...]]
"""Which axes of each tensor that a network gives count positions."""

# Values at the new positions, by the names of `transformers`: they are attended to, and the loss
# ignores them (-100, torch's `ignore_index`).
IDS = "input_ids"
GROWING = {"attention_mask": 1, "token_type_ids": 0, "labels": -100}
# Returned only on request, so not among the outputs tried out; each of the tuple is [B, T, D].
HIDDEN = "hidden_states"


class Prefixed(ConditionedLayer):
    """An embedding whose first positions are tokens, ``[G, tokens * D]``, which are injected."""

    def __init__(self, layer: nn.Embedding, tokens: int) -> None:
        super().__init__(layer)
        self.tokens = tokens
        self.prompt_length = 0
        """Set while generating: a call with fewer ids continues a cached sequence."""

    def forward(self, ids: Tensor) -> Tensor:
        """``[B, tokens + T]`` to ``[B, tokens + T, D]``."""
        embedded: Tensor = self.layer(ids)
        if ids.ndim != 2:
            raise ConfigurationError(
                f"`token` stands before sequences of ids [batch, positions], found ids of shape "
                f"{tuple(ids.shape)}: use another conditioning"
            )
        if ids.shape[1] < self.prompt_length:  # the cache holds the tokens already
            return embedded
        tokens = self.current().term.unflatten(1, (self.tokens, -1)).to(embedded)
        samples, groups = ids.shape[0], tokens.shape[0]
        check_group_count(samples, groups)
        prefix = tokens.repeat_interleave(samples // groups, dim=0)
        return torch.cat([prefix, embedded[:, self.tokens :]], dim=1)


def extend_inputs(inputs: Inputs, tokens: int, filler: int) -> Inputs:
    """Return the inputs with room for tokens in front of the sequence."""
    if isinstance(inputs, Tensor):
        return _prepend_value(inputs, tokens, filler)
    arguments: dict[str, Any] = {name: entry for name, entry in inputs.items() if entry is not None}
    for name in ("inputs_embeds", "past_key_values"):  # they pass the embedding by
        if name in arguments:
            raise ConfigurationError(
                f"`token` puts its tokens before a whole sequence of ids, found `{name}`: pass "
                "`input_ids`, or use `model.at(ray).generate`"
            )
    if IDS not in arguments:
        candidates = [
            name
            for name, entry in arguments.items()
            if isinstance(entry, Tensor) and entry.ndim == 2 and not entry.is_floating_point()
            if name not in GROWING
        ]
        if len(candidates) != 1:
            raise ConfigurationError(
                f"`token` needs one input with ids, either `{IDS}` or the only input of whole "
                f"numbers [batch, positions], found {', '.join(arguments)}"
            )
    ids = IDS if IDS in arguments else candidates[0]
    shape = arguments[ids].shape
    for name, entry in arguments.items():
        if name == ids:
            arguments[name] = _prepend_value(entry, tokens, filler)
        elif name == "position_ids":
            # the tokens count from 0, and everything after them that much later
            new = torch.arange(tokens, device=entry.device, dtype=entry.dtype)
            arguments[name] = torch.cat([new.expand(*entry.shape[:-1], -1), entry + tokens], dim=-1)
        elif name in GROWING and isinstance(entry, Tensor) and entry.shape == shape:
            arguments[name] = _prepend_value(entry, tokens, GROWING[name])
        elif isinstance(entry, Tensor) and entry.shape[:2] == shape:  # it counts positions too
            raise ConfigurationError(
                f"`token` makes the sequence longer, but cannot extend `{name}` of shape "
                f"{tuple(entry.shape)} to the new positions: use another conditioning"
            )
    return arguments


def _prepend_value(entry: Tensor, tokens: int, value: int) -> Tensor:
    """Extend ``[B, T]`` in front by as many positions with one value."""
    if entry.ndim != 2 or entry.is_complex():
        raise ConfigurationError(
            f"`token` stands before sequences of ids [batch, positions], found an input of shape "
            f"{tuple(entry.shape)}: use another conditioning"
        )
    return torch.cat([entry.new_full((entry.shape[0], tokens), value), entry], dim=1)


def find_position_axes(short: Any, long: Any, path: Path = ()) -> Axes:
    """Return the axes of each output that are longer for a longer sequence."""
    if isinstance(short, Tensor):
        pairs = zip(short.shape, long.shape, strict=True)
        return {path: tuple(axis for axis, (size, longer) in enumerate(pairs) if size != longer)}
    axes: dict[Path, tuple[int, ...]] = {}
    long_children = dict(_list_children(long))
    for name, entry in _list_children(short):
        axes |= find_position_axes(entry, long_children[name], (*path, name))
    return axes


def remove_prefix(outputs: Any, tokens: int, axes: Axes, path: Path = ()) -> Any:
    """Return the outputs without the positions of the tokens, packed as they were."""
    if isinstance(outputs, Tensor):
        usual = (1,) if path[:1] == (HIDDEN,) else ()
        for axis in axes.get(path, usual):
            outputs = outputs.narrow(axis, tokens, outputs.shape[axis] - tokens)
        return outputs
    children = {
        str(name): remove_prefix(entry, tokens, axes, (*path, name))
        for name, entry in _list_children(outputs)
    }
    if isinstance(outputs, Mapping):  # a `ModelOutput` of transformers takes keywords only
        return type(outputs)(**children)
    if isinstance(outputs, list | tuple):
        return tuple(children.values())
    return dataclasses.replace(outputs, **children) if children else outputs


def _list_children(outputs: Any) -> Sequence[tuple[str | int, Any]]:
    """Return the entries of a packed output, by name or index."""
    if isinstance(outputs, Mapping):
        return list(outputs.items())
    if isinstance(outputs, list | tuple):
        return list(enumerate(outputs))
    plain = dataclasses.is_dataclass(outputs) and not isinstance(outputs, type)
    return list(vars(outputs).items()) if plain else []


def extend_prompt(
    args: Sequence[Any], named: Mapping[str, Any], tokens: int, filler: int
) -> tuple[dict[str, Any], int]:
    """Return the arguments of `generate` and the length of the extended prompt."""
    arguments = dict(named)
    names = [name for name in (IDS, "inputs") if arguments.get(name) is not None]
    prompt = args[0] if args else arguments.pop(names[0]) if names else None
    if len(args) > 1 or not isinstance(prompt, Tensor):
        raise ConfigurationError(
            "`generate` takes a prompt of token ids first and everything else by name, found "
            f"{len(args)} positional arguments: pass `input_ids`"
        )
    mask = arguments.pop("attention_mask", None)
    # `generate` would guess a mask from padding ids, which the filler may be
    mask = torch.ones_like(prompt) if mask is None else mask
    arguments |= extend_inputs({IDS: prompt, "attention_mask": mask}, tokens, filler)
    if arguments.get("max_length") is not None:  # it counts the prompt; `max_new_tokens` does not
        arguments["max_length"] += tokens
    return arguments, prompt.shape[1] + tokens


class Token(InjectedConditioning):
    """Learned tokens that the ray sets, before the sequence: a soft prompt (Lester et al. 2021).

    E(r) = E_0 + P(c) with c = J·r - 1: `tokens` vectors of the embedding's width, from one
    perceptron J-width-(tokens x D) that runs once per ray. E_0 starts at rows of the embedding, the
    last layer of P at zero. The attention mask grows with the sequence, and outputs at the new
    positions are taken off again. Unlike with other conditionings, the outputs do not start
    unchanged: tokens before a sequence change the outputs for it.

    The network takes token ids ``[B, T]`` that enter an `nn.Embedding`, and later positions must
    see earlier ones, by attention or recurrence. A short call while it is built shows both. Freeze
    the network first (``network.requires_grad_(False)``) to train nothing but the prompt.

    Use for language models where even adapters are too many parameters. Avoid for networks that
    read their output from the first position, as BERT's classifiers do: a token would take its
    place.

    Args:
        backbone: a network that reads token ids; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of the embedding that ids enter; found by itself if `None`.
        tokens: how many are put before the sequence.
        width: hidden units of the perceptron.

    >>> class Reader(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.words, self.gru = nn.Embedding(9, 4), nn.GRU(4, 3, batch_first=True)
    ...
    ...     def forward(self, ids):
    ...         return self.gru(self.words(ids))[0]
    >>> model = Token(Reader(), 2, tokens=2)
    >>> model(torch.zeros(5, 7, dtype=torch.long), torch.tensor([0.5, 0.5])).shape
    torch.Size([5, 7, 3])
    """

    def __init__(
        self,
        backbone: nn.Module,
        objectives: int,
        *,
        layer: str | None = None,
        tokens: int = 4,
        width: int = 32,
    ) -> None:
        super().__init__(backbone, objectives)
        for name, value in {"tokens": tokens, "width": width}.items():
            if value < 1:
                raise ConfigurationError(f"`{name}` must be at least 1, found {value}")
        self.tokens = tokens
        self._place, embedding = self._find_embedding(layer)
        check_is_called(self.backbone, self._place)
        # an id to extend sequences by: any but the one that means padding
        self._filler = 1 if embedding.padding_idx == 0 else 0
        # rows of the embedding, not noise: vectors that the network can read (Lester et al., 3.1)
        rows = torch.randint(embedding.num_embeddings, (tokens,), device=embedding.weight.device)
        self.start = nn.Parameter(embedding.weight.detach()[rows].flatten())
        self.perceptron = nn.Sequential(
            nn.Linear(objectives, width), nn.SiLU(), nn.Linear(width, self.start.numel())
        )
        for parameter in self.perceptron[2].parameters():
            nn.init.zeros_(parameter)
        self.perceptron.to(self.start)
        self._insert(Prefixed(embedding, tokens))
        self.places = (self._place,)
        # tried out once, here: outputs may be packed in any way
        self._axes = self._find_axes()

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        longer = extend_inputs(inputs, self.tokens, self._filler)
        outputs: Outputs = remove_prefix(super().forward(longer, ray), self.tokens, self._axes)
        return outputs

    def _terms(self, rays: Tensor) -> list[Tensor]:
        """Compute the tokens of rays, ``[G, tokens * D]``."""
        centred = (self.objectives * rays - 1).to(self.start)
        return [self.start + self.perceptron(centred)]

    def _call_method(
        self, name: str, ray: Tensor, args: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:
        if name != "generate":
            raise ConfigurationError(
                f"`{name}` would call the network without the learned tokens: call the model, or "
                f"`generate`; without a preference, use `model.backbone.{name}`"
            )
        arguments, prompt = extend_prompt(args, named, self.tokens, self._filler)
        prefixed: Any = self.backbone.get_submodule(self._place)

        def generate(network: Any) -> Any:
            # with a cache, every later call is of fewer positions, and the tokens are in it
            prefixed.prompt_length = prompt
            try:
                return network.generate(**arguments)
            finally:
                prefixed.prompt_length = 0

        generated = self.with_ray(ray, generate)
        if isinstance(generated, Tensor):
            return generated[:, self.tokens :]
        generated.sequences = generated.sequences[:, self.tokens :]
        return generated

    def _find_embedding(self, layer: str | None) -> tuple[str, nn.Embedding]:
        """Return the dotted name of the embedding that ids enter, and the embedding."""
        if getattr(getattr(self.backbone, "config", None), "is_encoder_decoder", False):
            raise ConfigurationError(
                "`token` works with one sequence, found an encoder and a decoder in "
                f'{type(self.backbone).__name__}: use how="lora" or how="film"'
            )
        names = {module: name for name, module in self.backbone.named_modules()}
        backbone: Any = self.backbone
        embedding: Any = None
        if layer is not None:
            embedding = dict(backbone.named_modules()).get(layer)
        elif callable(getattr(backbone, "get_input_embeddings", None)):  # of `transformers`
            embedding = backbone.get_input_embeddings()
        elif (first := find_input_layer(backbone)) is not None:
            embedding = first[1]
        # an embedding outside the network's own modules could not be replaced
        if not isinstance(embedding, nn.Embedding) or embedding not in names:
            embeddings = [name for m, name in names.items() if isinstance(m, nn.Embedding)]
            where = "what the input enters" if layer is None else f"`{layer}`"
            raise ConfigurationError(
                f"`token` puts tokens before a sequence of ids that enter an nn.Embedding, found "
                f"{type(embedding).__name__} at {where}: name the embedding with `layer` "
                f"(there are: {', '.join(embeddings) or 'none'}), or use another conditioning"
            )
        return names[embedding], embedding

    def _find_axes(self) -> Axes:
        """Find the axes of outputs that count positions, by short calls of the network."""
        size = (3, self.start.numel())  # a prefix for each of three calls
        drawn = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(self.start)
        modes = {module: module.training for module in self.backbone.modules()}
        try:
            with torch.no_grad():
                self.backbone.eval()
                short, other, long = (
                    self._call_with(self._make_example(count), [tokens.unsqueeze(0)])
                    for count, tokens in zip((SHORT, SHORT, LONG), drawn, strict=True)
                )
        except Exception as error:  # a user's network may fail in any way
            raise ConfigurationError(
                "`token` calls the network with a few token ids as a test, but "
                f"{type(self.backbone).__name__} raises {type(error).__name__} "
                f"({one_line(error)}): use another conditioning"
            ) from error
        finally:
            for module, training in modes.items():
                module.training = training
        axes = find_position_axes(short, long)
        # two different prefixes before the same ids; on `meta` there are no numbers to compare
        removed = (remove_prefix(outputs, self.tokens, axes) for outputs in (short, other))
        pairs = zip(*map(list_tensors, removed), strict=True)
        if self.start.device.type != "meta" and all(torch.equal(one, two) for one, two in pairs):
            raise ConfigurationError(
                "tokens before a sequence must change the outputs after them, but they change "
                f"nothing in {type(self.backbone).__name__}: ids must be [batch, "
                "positions], and later positions must see earlier ones; use another conditioning"
            )
        return axes

    def _make_example(self, count: int) -> Inputs:
        """Make ids of one short sequence, as the network takes them."""
        ids = torch.full((1, count), self._filler, device=self.start.device)
        takes = inspect.signature(self.backbone.forward).parameters
        arguments: dict[str, Any] = {"input_ids": ids}
        if ids.is_meta:  # some look at values: of a mask, or of positions where there is no cache
            arguments["use_cache"] = True
        else:  # without a mask they warn of padding
            arguments["attention_mask"] = torch.ones_like(ids)
        named = {name: entry for name, entry in arguments.items() if name in takes}
        return extend_inputs(named if "input_ids" in named else ids, self.tokens, self._filler)

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, tokens={self.tokens}, layer={self._place!r}"
