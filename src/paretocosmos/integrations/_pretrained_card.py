"""The card of a conditioned network in a folder."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paretocosmos.conditioning import Conditioning
from paretocosmos.pareto.front import Front


def card(model: Conditioning, about: Mapping[str, Any], front: Front | None) -> str:
    """Markdown: what the network is, how it is loaded, and what it reaches."""
    return "\n".join([*_opening(model, about), *_use(model, about), *_front(front)]) + "\n"


def _opening(model: Conditioning, about: Mapping[str, Any]) -> Iterator[str]:
    every = sum(p.numel() for p in model.parameters())
    own = dict(model.named_parameters())
    reads = sum(own[name].numel() for name in model.ray_parameters)
    yield from ("---", "library_name: paretocosmos", "tags:", "- multi-objective", "---", "")
    yield f"# {about['network']}, conditioned on a preference"
    yield ""
    yield (
        f"One network that takes a preference between {model.objectives} objectives as an input, "
        f"conditioned by `{about['conditioning']}`. It has {every:,} parameters; {reads:,} of them "
        "read the preference."
    )
    yield ""
    if about["settings"]:
        yield f"Settings: `{json.dumps(about['settings'])}`."
        yield ""


def _use(model: Conditioning, about: Mapping[str, Any]) -> Iterator[str]:
    ray = [1.0] + [0.0] * (model.objectives - 1)
    whole = about["left_out"] is None
    yield "## How to use it"
    yield ""
    yield "```python"
    yield "from paretocosmos.integrations.pretrained import from_pretrained"
    yield ""
    yield f"network = ...  # a {about['network']}" + ("" if whole else ", with its own weights")
    yield "model = from_pretrained(FOLDER, network)"
    yield f"at_one = model.at({ray})  # all weight on the first objective"
    yield "```"
    yield ""
    yield (
        "The entries of a preference are at least 0 and sum to 1; more weight on an objective asks "
        "for a smaller value of it."
    )
    if not whole:
        yield ""
        yield "The frozen weights of the network are not in this folder."


def _front(front: Front | None) -> Iterator[str]:
    if front is None:
        return
    names = [" ".join(name.replace("|", "/").split()) for name in front.names]
    yield ""
    yield f"## What it reaches on `{front.split}`"
    yield ""
    yield f"| {' | '.join([f'weight of {name}' for name in names] + names)} |"
    yield "|" + "---|" * (2 * len(names))
    for ray, values in zip(front.rays, front.values, strict=True):
        numbers = [f"{weight:.2f}" for weight in ray] + [f"{value:.4g}" for value in values]
        yield f"| {' | '.join(numbers)} |"
