"""From what was collected of a recipe to a section: its claims, tables, pictures and notes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paretocosmos.paper._sets import set_title
from paretocosmos.paper.report._parts import Claim, Picture, Section, Table
from paretocosmos.paper.report._table_1 import table_1
from paretocosmos.paper.report._table_faces import tables_of_faces
from paretocosmos.paper.report._table_others import (
    table_of_ablation,
    table_of_convergence,
    table_of_fronts,
    table_of_intuition,
)
from paretocosmos.paper.report._texts import about, duration, undone

__all__ = ["section", "trained"]

TABLES: dict[str, Callable[[Sequence[Mapping[str, Any]]], list[Table]]] = {
    "table": table_1,
    "fronts": table_of_fronts,
    "convergence": table_of_convergence,
    "ablation": table_of_ablation,
    "celeba": tables_of_faces,
    "intuition": table_of_intuition,
}


def section(
    content: Mapping[str, Any],
    pictures: Sequence[Picture] = (),
    known: Mapping[str, str] | None = None,
) -> Section:
    """A recipe in words, tables and pictures.

    Args:
        content: what `collect` gave.
        pictures: its figures.
        known: cells of which another recipe has told the time, and its name.
    """
    cells, epochs = content["cells"], content["rehearsal"]
    mark, warning = "", ""
    if epochs is not None:
        many = f"{epochs} epoch{'s' * (epochs > 1)}"
        mark = f" (rehearsal, {many})"
        warning = f"Rehearsal: {many} instead of the paper's. The numbers say nothing of a method."
    return Section(
        name=content["recipe"],
        title=content["title"],
        source=content["section"],
        warning=warning,
        claims=tuple(_claims(content)),
        tables=tuple(replace(t, title=t.title + mark) for t in TABLES[content["shows"]](cells)),
        pictures=tuple(pictures),
        notes=(*undone(cells), _time(content, known or {}), about(cells), *_caveats(cells)),
    )


def trained(content: Mapping[str, Any]) -> list[str]:
    """The names of the cells that have runs."""
    return [cell["name"] for cell in content["cells"] if cell["seeds"]]


def _claims(content: Mapping[str, Any]) -> list[Claim]:
    """What the paper says and what is found; a rehearsal has nothing to say of it."""
    return [
        Claim(
            claim["claim"],
            claim["sentence"],
            tuple(
                f"{set_title(row)}: {row['sentence']}."
                for row in claim["rows"]
                if "sentence" in row
            ),
        )
        for claim in (content["claims"] if content["rehearsal"] is None else ())
    ]


def _time(content: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """What its runs took, unless they are all those of other recipes."""
    done = trained(content)
    if all(name in known for name in done):
        others = " and ".join(f"`{name}`" for name in dict.fromkeys(known[one] for one in done))
        return f"Time: in that of {others}, whose runs these are."
    parts = ("training", "preparing", "evaluating")
    told = ", ".join(f"{duration(content['seconds'][part])} {part}" for part in parts)
    return f"Time: {told}."


def _caveats(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """What images are, and what is to be known of a set, each once."""
    done = [cell for cell in cells if cell["seeds"]]
    images = [
        f"{set_title(c, protocol=False)}: {one}." for c in done for one in c["made"]["images"]
    ]
    return list(dict.fromkeys([*images, *(one for c in done for one in c["made"]["caveats"])]))
