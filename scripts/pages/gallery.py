"""docs/gallery.md: the examples, what they print, and what they show.

An example NAME may have files in `docs/gallery/`:

- `NAME.png`, `NAME-dark.png` and `NAME.txt`: a picture for light and for dark pages, and in words
  what it shows, for those who cannot see it.
- `NAME.html`: a part of the page that is to be used, such as a slider. Only the site has it. Files
  that it shows lie in `docs/_static/`.
"""

from pathlib import Path

from pages.common import ROOT, write_picture

__all__ = ["show_example", "write_gallery"]

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


def write_gallery() -> str:
    """Return the page: the pictures as cards, then a section for every example."""
    examples = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
    assert set(examples) == set(TITLES), "scripts/pages/gallery.py needs a title for each example"
    parts = [
        "# Gallery",
        "",
        "Each example is one file that you can download and run; below it is what it printed. See also [the notebooks](notebooks.md) and [the results](results/applications.md).",
        "",
        "::::{grid} 1 2 2 2",
        ":gutter: 3",
        "",
    ]
    for name in TITLES:
        if (SHOWN / f"{name}.png").exists():
            parts += [
                f":::{{grid-item-card}} {TITLES[name]}",
                f":link: gallery.html#{_anchor(name)}",
                write_picture(f"{SHOWN.name}/{name}", ""),  # the title of the card says what it is
                ":::",
            ]
    parts += ["::::", ""]
    for name in TITLES:
        parts += _section(examples[name])
    return "\n".join(parts)


def _anchor(name: str) -> str:
    words = "".join(letter for letter in TITLES[name].lower() if letter.isalnum() or letter in " -")
    return words.replace(" ", "-")


def _section(path: Path) -> list[str]:
    """Return the lines of an example: its docstring, its picture, its code folded, its output."""
    docstring = path.read_text(encoding="utf-8").split('"""')[1].strip()
    if not (SHOWN / f"{path.stem}.png").exists():
        docstring = docstring.partition("\n")[0]  # its file, folded below, has the rest
    lines = [
        f"## {TITLES[path.stem]}",
        "",
        docstring,
        "",
        *show_example(path.stem, SHOWN),
        f":::{{dropdown}} {path.name}",
        *_include(f"examples/{path.name}", "python"),
        ":::",
        "",
    ]
    if (ROOT / "results" / f"{path.stem}.txt").exists():
        lines += [*_include(f"results/{path.stem}.txt", "text"), ""]
    return lines


def _include(path: str, language: str) -> list[str]:
    return [f"```{{literalinclude}} ../{path}", f":language: {language}", "```"]


def show_example(name: str, folder: Path) -> list[str]:
    """Return the picture of an example and its part of the page, where it has them.

    Args:
        name: of the example.
        folder: where the files are, beside the page.
    """
    lines = _show_picture(name, folder)
    if (folder / f"{name}.html").exists():
        lines += [f"<!-- on the site: {folder.name}/{name}.html -->", ""]
    return lines


def _show_picture(name: str, folder: Path) -> list[str]:
    if not (folder / f"{name}.png").exists():
        return []
    words = " ".join((folder / f"{name}.txt").read_text(encoding="utf-8").split())
    return [write_picture(f"{folder.name}/{name}", words), ""]
