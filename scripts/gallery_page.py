"""docs/gallery.md: the examples, what they print, and the notebooks."""

from pathlib import Path

__all__ = ["gallery"]

ROOT = Path(__file__).resolve().parents[1]
FIRST = ("quick_start", "fair_from_csv", "own_table", "own_model", "own_network")


def gallery() -> str:
    """A section for every file in examples/, the simplest first."""
    there = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
    parts = [
        "# Gallery",
        "",
        "Each example is one file that you can download and run. The output below it is what it printed (`make examples`). See also",
        "[the notebooks](notebooks.md) and [the results](results.md).",
        "",
    ]
    for name in sorted(
        there, key=lambda name: (name not in FIRST, FIRST.index(name) if name in FIRST else 0)
    ):
        parts += _section(there[name])
    return "\n".join(parts)


def _section(path: Path) -> list[str]:
    """Its docstring, its code folded, its output."""
    docstring = path.read_text(encoding="utf-8").split('"""')[1]
    first, _, rest = docstring.partition("\n")
    kept = ROOT / "results" / f"{path.stem}.txt"
    shown = kept.read_text(encoding="utf-8").rstrip() if kept.exists() else ""
    return [
        f"## {path.name}",
        "",
        first,
        *([rest.rstrip()] if rest.strip() else []),
        "",
        f":::{{dropdown}} The code of {path.name}",
        f"```{{literalinclude}} ../examples/{path.name}",
        ":language: python",
        "```",
        ":::",
        "",
        *([] if not shown else ["```text", shown, "```", ""]),
    ]
