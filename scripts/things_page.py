"""docs/things.md and the cards in docs/cards/: everything that has a name, from the docstrings."""

import inspect
import re
from collections.abc import Iterator

from paretocosmos import registry
from paretocosmos.cli.listing import KINDS
from paretocosmos.config.settings import describe_pair, get_pairs

__all__ = ["CARDS", "cards_of", "things"]

CARDS = {
    "problems": "A problem is data, objectives and a reference point. `paretocosmos train NAME` or `load_problem(NAME)` takes one.",
    "conditioning": "A conditioning is how the preference enters a network. `fit(..., conditioning=NAME)` or [`condition`](../howto/own_network.md) takes one.",
    "backbones": "A backbone is a network without a preference. `--backbone NAME` takes one.",
    "objectives": "An objective is a loss to train on and a score to report. They live in `paretocosmos.objectives`.",
}


def things() -> str:
    """docs/things.md: one line for each, with its settings."""
    parts = [
        "# Names and settings",
        "",
        "Problems, methods, conditionings, backbones and objectives, each with its settings for `--set`.",
        "Written by `make docs` from the files themselves.",
        "",
    ]
    for kind in KINDS:
        parts += [f"## {kind}", "", "| name | what it is | settings |", "|---|---|---|"]
        page = "methods.md" if kind == "methods" else f"cards/{kind}.md"
        for name in registry.names(kind):
            settings = ", ".join(
                f"`{key}`" for key in registry.parameters(registry.find(kind, name))
            )
            summary = _markdown(registry.summary(kind, name))
            link = f"[`{name}`]({page}#{name})" if kind in (*CARDS, "methods") else f"`{name}`"
            parts.append(f"| {link} | {summary} | {settings} |")
        for name, (method, conditioning) in get_pairs().items() if kind == "methods" else ():
            parts.append(
                f"| [`{name}`]({page}#{name}) | {describe_pair(name)['summary']} | those of `{method}` and `{conditioning}` |"
            )
        parts.append("")
    return "\n".join(parts)


def cards_of(kind: str) -> str:
    """A page with a card for everything in a kind."""
    title = "Conditionings" if kind == "conditioning" else kind.capitalize()
    parts = [f"# {title}", "", f"{CARDS[kind]} Written by `make docs` from the docstrings.", ""]
    for name in registry.names(kind):
        parts += [f"## {name}", "", *card(kind, name)]
    return "\n".join(parts)


def card(kind: str, name: str) -> Iterator[str]:
    """What its docstring says, its settings as a table, and its example."""
    thing = registry.find(kind, name)
    text = inspect.getdoc(thing) or ""
    text, _, example = text.partition("\n>>> ")
    text = text.partition("\nArgs:\n")[0]
    meanings = _meanings(thing)
    yield from (_markdown(text.strip()), "")
    if every := registry.parameters(thing):
        yield from ("| setting | default | meaning |", "|---|---|---|")
        for key, one in every.items():
            default = "required" if one.default is inspect.Parameter.empty else f"`{one.default!r}`"
            yield f"| `{key}` | {default} | {meanings.get(key, '')} |"
        yield ""
    if example:
        yield from ("```pycon", f">>> {example.rstrip()}", "```", "")


def _meanings(thing: object) -> dict[str, str]:
    """What docstrings say of arguments, those of the classes it derives from too."""
    found: dict[str, str] = {}
    for one in reversed(thing.__mro__ if inspect.isclass(thing) else (thing,)):
        found |= arguments_of(inspect.cleandoc(one.__doc__ or ""))
    return found


def arguments_of(docstring: str) -> dict[str, str]:
    r"""Google's section of arguments, by name.

    >>> arguments_of("What.\n\nArgs:\n    a: first,\n        and more.\n    b: second.\n")
    {'a': 'first, and more.', 'b': 'second.'}
    """
    section = docstring.partition("\nArgs:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", section, re.MULTILINE)
    return {name: _markdown(" ".join(text.split())).replace("|", "\\|") for name, text in found}


def _markdown(text: str) -> str:
    """Two backticks become one, and a formula a block.

    >>> _markdown("a ``b`` c")
    'a `b` c'
    """
    text = re.sub(
        r"\.\. math:: (.+?)(?=\n\n|\Z)",
        lambda found: f"```math\n{' '.join(found[1].split())}\n```",
        text,
        flags=re.DOTALL,
    )
    return text.replace("``", "`") if "```" not in text else re.sub(r"(?<!`)``(?!`)", "`", text)
