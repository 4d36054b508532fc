"""Preference tokens: a few learned tokens, set by the ray, before the sequence."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import Act
from paretocosmos.conditioning._layers import check_called, enters
from paretocosmos.conditioning._listening import ListeningConditioning
from paretocosmos.conditioning._prefix import (
    Axes,
    Prefixed,
    cut,
    filler_of,
    grown,
    position_axes,
    prompted,
    same,
    unprompted,
)
from paretocosmos.conditioning._sweep import ray_by_ray
from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import one_line
from paretocosmos.types import Inputs, Outputs

__all__ = ["Token"]

# Positions that a network is probed with, beside the tokens.
SHORT, LONG = 3, 4


class Token(ListeningConditioning):
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
        self._place, embedding = self._embedding(layer)
        check_called(self.backbone, self._place)
        self._filler = filler_of(embedding)
        rows = torch.randint(embedding.num_embeddings, (tokens,), device=embedding.weight.device)
        self.start = nn.Parameter(embedding.weight.detach()[rows].flatten())
        self.perceptron = nn.Sequential(
            nn.Linear(objectives, width), nn.SiLU(), nn.Linear(width, self.start.numel())
        )
        for last in self.perceptron[2].parameters():
            nn.init.zeros_(last)
        self.perceptron.to(self.start)
        self._put(Prefixed(embedding, tokens))
        self._axes = self._probed()

    @property
    def places(self) -> tuple[str, ...]:
        return (self._place,)

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        longer = grown(inputs, self.tokens, self._filler)
        outputs: Outputs = cut(self._tell(longer, [self._told(ray)]), self.tokens, self._axes)
        return outputs

    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        return ray_by_ray(self, inputs, rays)

    def hearing(self, ray: Tensor, act: Callable[[nn.Module], Any]) -> Any:
        return self._tell(Act(act), [self._told(ray)])

    def asked(self, name: str, ray: Tensor, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What a method of the network gives at a ray: `generate`, which knows the tokens."""
        if name != "generate":
            raise ConfigurationError(
                f"`{name}` would call the network without the learned tokens: call the model, or "
                f"`generate`; without a preference, use `model.backbone.{name}`"
            )
        given, prompt = prompted(args, named, self.tokens, self._filler)
        prefixed: Any = self.backbone.get_submodule(self._place)

        def generate(network: Any) -> Any:
            # with a cache, every later call is of fewer positions, and the tokens are in it
            prefixed.least = prompt
            try:
                return network.generate(**given)
            finally:
                prefixed.least = 0

        return unprompted(self.hearing(ray, generate), self.tokens)

    def _told(self, ray: Tensor) -> Tensor:
        """The tokens of rays, ``[G, tokens * D]``."""
        centred = (self.objectives * self.rays_for(ray) - 1).to(self.start)
        told: Tensor = self.start + self.perceptron(centred)
        return told

    def _embedding(self, layer: str | None) -> tuple[str, nn.Embedding]:
        """The embedding that ids enter, and its dotted name."""
        if getattr(getattr(self.backbone, "config", None), "is_encoder_decoder", False):
            raise ConfigurationError(
                "`token` works with one sequence, found an encoder and a decoder in "
                f'{type(self.backbone).__name__}: use how="lora" or how="film"'
            )
        names = {part: name for name, part in self.backbone.named_modules()}
        found: Any = None
        if layer is not None:
            found = dict(self.backbone.named_modules()).get(layer)
        elif callable(getattr(self.backbone, "get_input_embeddings", None)):
            theirs: Any = self.backbone
            found = theirs.get_input_embeddings()
        elif (first := enters(self.backbone)) is not None:
            found = first[1]
        if not isinstance(found, nn.Embedding) or found not in names:
            there = [name for part, name in names.items() if isinstance(part, nn.Embedding)]
            at = "what the input enters" if layer is None else f"`{layer}`"
            raise ConfigurationError(
                f"`token` puts tokens before a sequence of ids that enter an nn.Embedding, found "
                f"{type(found).__name__} at {at}: name the embedding with `layer` "
                f"(there are: {', '.join(there) or 'none'}), or use another conditioning"
            )
        return names[found], found

    def _probed(self) -> Axes:
        """Where positions are counted in what the network gives, by short calls of it."""
        size = (3, self.start.numel())
        drawn = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(self.start)
        modes = {part: part.training for part in self.backbone.modules()}
        try:
            with torch.no_grad():
                self.backbone.eval()
                short, other, long = (
                    self._tell(self._example(count), [tokens.unsqueeze(0)])
                    for count, tokens in zip((SHORT, SHORT, LONG), drawn, strict=True)
                )
        except Exception as error:
            raise ConfigurationError(
                "`token` calls the network with a few token ids as a test, but "
                f"{type(self.backbone).__name__} raises {type(error).__name__} "
                f"({one_line(error)}): use another conditioning"
            ) from error
        finally:
            for part, training in modes.items():
                part.training = training
        axes = position_axes(short, long)
        if self.start.device.type != "meta" and same(
            cut(short, self.tokens, axes), cut(other, self.tokens, axes)
        ):
            raise ConfigurationError(
                "tokens before a sequence must change the outputs after them, but they change "
                f"nothing in {type(self.backbone).__name__}: ids must be [batch, "
                "positions], and later positions must see earlier ones; use another conditioning"
            )
        return axes

    def _example(self, count: int) -> Inputs:
        """Ids of one short sequence, as the network takes them."""
        ids = torch.full((1, count), self._filler, device=self.start.device)
        takes = inspect.signature(self.backbone.forward).parameters
        given: dict[str, Any] = {"input_ids": ids}
        if ids.is_meta:  # some look at values: of a mask, or of positions where there is no cache
            given["use_cache"] = True
        else:  # without a mask they warn of padding
            given["attention_mask"] = torch.ones_like(ids)
        named = {name: part for name, part in given.items() if name in takes}
        return grown(named if "input_ids" in named else ids, self.tokens, self._filler)

    def extra_repr(self) -> str:
        return f"objectives={self.objectives}, tokens={self.tokens}, layer={self._place!r}"
