"""A page of HTML as a browser would read it."""

from html.parser import HTMLParser

__all__ = ["Page"]

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, texts by the tag that they are in, and the rows of tables.

    Every tag is closed in its turn.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: dict[str, list[str]] = {}
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    @property
    def names(self) -> list[str]:
        """The tags without their attributes."""
        return [tag for tag, _ in self.tags]

    def get(self, *names: str) -> list[str]:
        """The values of these attributes, of all tags."""
        pairs = (pair for _, attributes in self.tags for pair in attributes.items())
        return [value or "" for name, value in pairs if name in names]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert not any(key.startswith("on") for key, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)
            self.inside.setdefault(tag, []).append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open:
            self.inside[self._open[-1]][-1] += data
        if self.rows and {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
