"""`make docs`: write what a program can write, from the code and from results/.

That is the marked regions of README.md and of docs/, the pages that consist of nothing else, and the
pictures. A test calls `write_texts` and compares with what is committed.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))  # for those who import this file

from pages import fairness, figures, gallery_figures, measured, readme, reproduction, results  # noqa: E402
from pages.commands import write_commands  # noqa: E402
from pages.common import fill_regions  # noqa: E402
from pages.gallery import write_gallery  # noqa: E402
from pages.guarantees import write_guarantees  # noqa: E402
from pages.logo import write_logo, write_social_card  # noqa: E402
from pages.reference import KINDS, write_reference_page  # noqa: E402

REGIONS = (
    readme.REGIONS | results.REGIONS | fairness.REGIONS | measured.REGIONS | reproduction.REGIONS
)


def write_texts() -> dict[str, str]:
    """Return every written file by its path."""
    texts = {
        "docs/cli.md": write_commands(),
        **{f"docs/reference/{kind}.md": write_reference_page(kind) for kind in KINDS},
        "docs/gallery.md": write_gallery(),
        "docs/gallery/rate_distortion.html": gallery_figures.write_slider(),
        "docs/guarantees.md": write_guarantees(),
        "docs/_static/logo.svg": write_logo(),
        "docs/_static/social_card.svg": write_social_card(),
        **reproduction.write_figure_pages(),
    }
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        if name not in texts and "<!-- written: " in (text := path.read_text(encoding="utf-8")):
            texts[name] = fill_regions(text, REGIONS)
    return texts


def main() -> None:
    """Write everything."""
    for path, text in write_texts().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    if "--texts" not in sys.argv:
        figures.draw_figures()
        reproduction.draw_reproduction()


if __name__ == "__main__":
    main()
