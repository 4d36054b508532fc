"""`python scripts/build_site.py`: the site in `site/VERSION/`, which opens from the file system.

Warnings are errors. Afterwards every local link and every picture of every page must exist, and
`site/index.html` leads to the newest version.
"""

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from paretocosmos import __version__

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"


class Links(HTMLParser):
    """The places a page names, and those others may name in it.

    Args:
        text: the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.named: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.named.append(value)
            elif key == "id" and value:
                self.anchors.add(value)


def dead_links(folder: Path) -> list[str]:
    """What pages of a folder name that is not there, as ``PAGE: LINK``.

    Args:
        folder: where the pages are; links that leave it are dead too.
    """
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    return [
        f"{path.relative_to(folder)}: {link}"
        for path, page in sorted(pages.items())
        for link in page.named
        if not _leads(path, link, pages)
    ]


def _leads(path: Path, link: str, pages: dict[Path, Links]) -> bool:
    """Whether a link is of another machine, or of something that is there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    anchor = unquote(parts.fragment)
    if place in pages:
        return not anchor or anchor in pages[place].anchors
    return place.is_file()


def write_live_page(path: Path) -> None:
    """Write the page of the network for Adult that comes with the package, for the landing page."""
    from paretocosmos import load
    from paretocosmos.explorer import build_page_model, write_report

    write_report(path, build_page_model([load("adult")]))


def main() -> int:
    """Build the pages, check their links, and lead from `site/index.html` to the first one."""
    from sphinx.cmd.build import main as sphinx  # of the group `docs`

    folder = SITE / __version__
    shutil.rmtree(folder, ignore_errors=True)
    built = sphinx(
        [
            "-W",
            "-E",  # pages made of other files are not seen to change
            "--keep-going",
            "-q",
            "-b",
            "html",
            "-d",
            str(SITE / ".doctrees"),
            str(ROOT / "docs"),
            str(folder),
        ]
    )
    if built:
        return int(built)
    write_live_page(folder / "adult.html")
    if dead := dead_links(folder):
        print(*dead, sep="\n", file=sys.stderr)
        return 1
    start = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={__version__}/index.html">'
    (SITE / "index.html").write_text(f"{start}<title>paretocosmos</title>\n", encoding="utf-8")
    print(f"{folder.relative_to(ROOT)}/index.html: {sum(1 for _ in folder.rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
