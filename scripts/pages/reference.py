"""docs/reference/: one page for each kind of building block, written from the docstrings."""

import inspect
import re
import textwrap
from collections.abc import Iterator

from pages.common import describe_source, load_result, write_table
from paretocosmos import registry
from paretocosmos.config.settings import describe_pair, get_pairs, get_paper_settings

__all__ = ["KINDS", "write_card", "write_reference_page"]

KINDS = {
    "problems": "A problem is data, objectives and a reference point. `paretocosmos train NAME` or `load_problem(NAME)` takes one.",
    "methods": "A method turns preferences and losses into weights of the losses. `--method NAME` chooses one, and `paretocosmos compare PROBLEM --methods A,B` trains several.",
    "conditioning": "A conditioning is how the preference enters a network. `fit(..., conditioning=NAME)` or [`condition`](../howto/own_network.md) takes one.",
    "backbones": "A backbone is a network without a preference. `--backbone NAME` takes one.",
    "objectives": "An objective is a loss to train on and a score to report. They live in `paretocosmos.objectives`.",
}
TITLES = {"conditioning": "Conditionings"}
Row = tuple[str, str, str]  # a setting's name, its default and its meaning


def write_reference_page(kind: str) -> str:
    """Return the page of a kind: what several of them share, then a card for each."""
    shared = _find_shared_settings(kind)
    parts = [f"# {TITLES.get(kind, kind.capitalize())}", "", KINDS[kind], ""]
    if kind == "methods":
        parts += [*_write_step_times(), ""]
    if shared:
        parts += ["## Settings that several share", "", *_write_settings(shared), ""]
    plain = []  # without a formula, advice or settings of their own
    first: dict[Row, str] = {}  # the card that describes a setting
    for name in registry.names(kind):
        card = list(write_card(kind, name, shared, first))
        if kind == "methods" or len(card) > 12 or any(re.match(r"- |```", line) for line in card):
            parts += [f"## {name}", "", *card]
        else:
            plain.append([f"`{name}`", " ".join(card[0].split())])
    if plain:
        parts += ["## Others", "", *write_table(["name", "what it is"], plain), ""]
    for name in get_pairs() if kind == "methods" else ():
        parts += [f"## {name}", "", *_write_pair_card(name)]
    return "\n".join(parts)


def write_card(
    kind: str, name: str, shared: list[Row] | None = None, first: dict[Row, str] | None = None
) -> Iterator[str]:
    """Yield the lines of a card: what it is, when to use it, and the settings of its own.

    Args:
        kind: of building block.
        name: of this one.
        shared: the settings that the page describes once, above the cards.
        first: settings that earlier cards described, with their names; those of this one are added.
    """
    text = inspect.getdoc(registry.find(kind, name)) or ""
    text = text.partition("\n>>> ")[0].partition("\nArgs:\n")[0].strip()
    yield from (_write_method_text(name, text) if kind == "methods" else _shorten(text))
    yield ""
    rows = _list_settings(kind, name)
    common = [row for row in rows if row in (shared or ())]
    particular = []
    for row in rows:
        earlier = name if first is None or len(row[2]) < 60 else first.setdefault(row, name)
        if row not in common:
            particular.append(row if earlier == name else (*row[:2], f"as for `{earlier}`"))
    if particular:
        yield from (*_write_settings(particular), "")
    if common:
        yield from (f"Shared: {', '.join(f'`{key}`' for key, *_ in common)}.", "")


def _shorten(text: str) -> Iterator[str]:
    """Yield the first lines of a docstring, its formula, and when to use it; `help` has the rest."""
    summary, *paragraphs = text.split("\n\n")
    yield _to_markdown(summary)
    formulas = [part for part in paragraphs if part.startswith(".. math::")]
    others = [part for part in paragraphs if part not in formulas]
    advice = [part for part in others[1:] if part.startswith(("Use ", "Paper: "))]
    for part in (*formulas[:1], *others[:1], *advice):
        yield from ("", _to_markdown(part))


def _find_shared_settings(kind: str) -> list[Row]:
    """Return the settings that three or more of a kind have with the same words."""
    rows = [row for name in registry.names(kind) for row in _list_settings(kind, name)]
    by_name = {row[0]: row for row in sorted(rows, key=rows.count)}  # the most frequent words win
    keys = dict.fromkeys(key for key, *_ in rows)  # in the order of the first card
    return [by_name[key] for key in keys if rows.count(by_name[key]) >= 3]


def _list_settings(kind: str, name: str) -> list[Row]:
    thing = registry.find(kind, name)
    meanings = _read_meanings(thing)
    return [
        (
            key,
            "required"
            if parameter.default is inspect.Parameter.empty
            else f"`{parameter.default!r}`",
            meanings.get(key, ""),
        )
        for key, parameter in registry.parameters(thing).items()
    ]


def _write_settings(rows: list[Row]) -> Iterator[str]:
    for key, default, meaning in rows:
        yield f"- `{key}` ({default}): {meaning}"


def _read_meanings(thing: object) -> dict[str, str]:
    """Return what docstrings say of arguments, those of base classes included."""
    meanings: dict[str, str] = {}
    for owner in reversed(thing.__mro__ if inspect.isclass(thing) else (thing,)):
        meanings |= parse_arguments(inspect.cleandoc(owner.__doc__ or ""))
    return meanings


def parse_arguments(docstring: str) -> dict[str, str]:
    r"""Return the arguments of a Google-style docstring and their meanings.

    >>> parse_arguments("Sum.\n\nArgs:\n    a: first,\n        and more.\n    b: second.\n")
    {'a': 'first, and more.', 'b': 'second.'}
    """
    section = docstring.partition("\nArgs:\n")[2].partition("\n\n")[0]
    pairs = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", section, re.MULTILINE)
    return {name: _to_markdown(" ".join(text.split())) for name, text in pairs}


def _write_method_text(name: str, text: str) -> Iterator[str]:
    """Yield a method's formula and text, and its cost and use as a table."""
    summary, _, rest = text.partition("\n\n")
    formula = re.search(r"\.\. math:: (.+?)\n\n", rest, re.DOTALL)
    assert formula is not None
    rest = " ".join(rest.replace(formula[0], "").split())
    cost = re.search(r"Cost: (.+?)\. (?=Use )", rest)
    use = re.search(r"Use (.+?); avoid (.+?)\.(?= |$)", rest)
    paper = re.search(r"Paper: (.+)\.$", rest)
    assert cost is not None
    assert use is not None
    assert paper is not None
    for match in (cost, use, paper):
        rest = rest.replace(match[0], "")
    yield from (summary, "", "```math", " ".join(formula[1].split()), "```", "")
    if rest.split():
        yield from (*textwrap.wrap(" ".join(rest.split()), 110, break_on_hyphens=False), "")
    yield from _write_facts(name, cost[1], use[1], use[2], paper[1])


def _write_pair_card(name: str) -> Iterator[str]:
    """Yield the card of a method together with a conditioning, such as PHN-LS."""
    facts = describe_pair(name)
    method, conditioning = get_pairs()[name]
    values = get_paper_settings("", name)
    settings = {
        key: values.get(key, default.strip("`"))
        for kind, part in (("methods", method), ("conditioning", conditioning))
        for key, default, _ in _list_settings(kind, part)
    }
    settings["learning_rate"] = values["learning_rate"]
    yield from (facts["summary"], "")
    yield from (f"The method `{method}` with the conditioning `{conditioning}`.", "")
    yield from _write_facts(name, *(facts[key] for key in ("cost", "use", "avoid", "paper")))
    listed = ", ".join(f"`{key}={value}`" for key, value in settings.items())
    yield from (f"**Settings:** {listed}.", "")


def _write_facts(name: str, cost: str, use: str, avoid: str, paper: str) -> Iterator[str]:
    yield f"**Use** {use}. **Avoid** {avoid}. **A step:** {cost}{_describe_measured_step(name)}. **Paper:** {paper}."


def _describe_measured_step(name: str) -> str:
    """Say how long a step takes beside COSMOS's, where it was measured."""
    step = load_result("methods")["steps"].get(name)
    if step is None or name == "cosmos":
        return ""
    networks = f" for all {step['networks']} networks together" if step["networks"] > 1 else ""
    return f"; {step['ratio']:.1f} times the time of COSMOS's{networks}"


def _write_step_times() -> Iterator[str]:
    """Yield a table with the time of a step of each method."""
    yield from write_table(
        ["Multi-MNIST", "networks", "parameters", "a step", "times COSMOS's"],
        (
            [name, step["networks"], f"{step['parameters']:,}", f"{1e6 * step['step']:.0f} µs", f"{step['ratio']:.2f}"]
            for name, step in load_result("methods")["steps"].items()
        ),
    )  # fmt: skip
    yield from ("", describe_source("methods"))


def _to_markdown(text: str) -> str:
    """Turn two backticks into one, and a formula into a block.

    >>> _to_markdown("a ``b`` c")
    'a `b` c'
    """
    text = re.sub(
        r"\.\. math:: (.+?)(?=\n\n|\Z)",
        lambda match: f"```math\n{' '.join(match[1].split())}\n```",
        text,
        flags=re.DOTALL,
    )
    return text.replace("``", "`") if "```" not in text else re.sub(r"(?<!`)``(?!`)", "`", text)
