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
# Files in the order of the page, the simplest first, with their titles.
TITLES = {
    "quick_start": "Quick start",
    "fair_from_csv": "A fair model from a CSV",
    "own_table": "Your own table",
    "own_model": "Your own model",
    "own_network": "A network you already have",
    "all_quantiles": "All quantiles in one network",
    "rate_distortion": "Image compression with a quality slider",
    "robust_accuracy": "Clean against robust accuracy",
    "language_model": "A language model between code and prose",
    "hf_trainer": "The Hugging Face Trainer",
    "lightning_loop": "Lightning",
    "torchjd_loop": "TorchJD, both ways",
    "own_problem": "Your own problem",
    "own_objective": "Your own objective",
    "own_method": "Your own method",
    "segmentation": "Segmentation",
    "loader_per_task": "A loader for each task",
    "pictures_on_disk": "Pictures on disk",
    "drawn_faces": "CelebA's layout, with drawn faces",
    "serve_and_ask": "A server and its clients",
}


def gallery() -> str:
    """Return the page: the pictures as a table of links, then a section for every example."""
    examples = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
    assert set(examples) == set(TITLES), "scripts/gallery_page.py needs a title for each example"
    parts = [
        "# Gallery",
        "",
        "Each example is one file that you can download and run. The output below it is what it printed (`make examples`). See also",
        "[the notebooks](notebooks.md) and [the results](results.md).",
        "",
        *_link_pictures(),
        "",
    ]
    for name in TITLES:
        parts += _section(examples[name])
    return "\n".join(parts)


def _link_pictures() -> list[str]:
    pictured = [name for name in TITLES if (SHOWN / f"{name}.png").exists()]
    links = (f"[![{TITLES[name]}](gallery/{name}.png)](#{_anchor(name)})" for name in pictured)
    titles = (f"[{TITLES[name]}](#{_anchor(name)})" for name in pictured)
    return [
        f"| {' | '.join(titles)} |",
        "|---" * len(pictured) + "|",
        f"| {' | '.join(links)} |",
    ]


def _anchor(name: str) -> str:
    words = "".join(letter for letter in TITLES[name].lower() if letter.isalnum() or letter in " -")
    return words.replace(" ", "-")


def _section(path: Path) -> list[str]:
    """Return the lines of an example: its docstring, its picture, its code folded, its output."""
    docstring = path.read_text(encoding="utf-8").split('"""')[1]
    first, _, rest = docstring.partition("\n")
    kept = ROOT / "results" / f"{path.stem}.txt"
    shown = kept.read_text(encoding="utf-8").rstrip() if kept.exists() else ""
    return [
        f"## {TITLES[path.stem]}",
        "",
        first,
        *([rest.rstrip()] if rest.strip() else []),
        "",
        *shown_of(path.stem, SHOWN),
        f":::{{dropdown}} {path.name}",
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
