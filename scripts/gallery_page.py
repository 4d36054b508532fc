"""docs/gallery.md: the examples, what they print, and what they show.

An example NAME may have files in `docs/gallery/`:

- `NAME.png`, `NAME-dark.png` and `NAME.txt`: a picture for light and for dark pages, and in words
  what it shows, for those who cannot see it.
- `NAME.html`: a part of the page that is to be used, such as a slider. Only the site has it. Files
  that it shows lie in `docs/_static/`.
"""

from pathlib import Path

__all__ = ["gallery"]

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ROOT / "docs" / "gallery"
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
    """Its docstring, its picture, its code folded, its output."""
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
        *shown_of(path.stem, SHOWN),
        f":::{{dropdown}} The code of {path.name}",
        f"```{{literalinclude}} ../examples/{path.name}",
        ":language: python",
        "```",
        ":::",
        "",
        *([] if not shown else ["```text", shown, "```", ""]),
    ]


def shown_of(name: str, folder: Path) -> list[str]:
    """The picture of an example and its part of the page, where it has them.

    Args:
        name: of the example.
        folder: where the files are, beside the page.
    """
    lines = []
    if (folder / f"{name}.png").exists():
        words = " ".join((folder / f"{name}.txt").read_text(encoding="utf-8").split())
        place = f"{folder.name}/{name}"
        dark = f'<source media="(prefers-color-scheme: dark)" srcset="{place}-dark.png">'
        lines += [f'<picture>{dark}<img src="{place}.png" alt="{words}"></picture>', ""]
    if (folder / f"{name}.html").exists():
        lines += [f"<!-- on the site: {folder.name}/{name}.html -->", ""]
    return lines
