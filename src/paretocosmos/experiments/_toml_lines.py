"""Where things stand in a TOML text: `tomllib` reads it, but does not say in which line."""

import re

__all__ = ["Lines"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\-]+)\s*\]")
_KEY = re.compile(r"\s*[\"']?([\w.\-]+)[\"']?\s*=")


class Lines:
    r"""The line of every key and header.

    Written for files such as recipes: a key and its ``=`` begin a line, and no text in triple
    quotes looks like one. For what it does not find, it gives the line of what that belongs to.

    >>> lines = Lines('a = 1\n[[grid]]\nb = [\n "x",\n "y",\n]\n[grid.c]\nd = 2')
    >>> lines.of(("a",)), lines.of(("grid", 0, "b"), "y"), lines.of(("grid", 0, "c", "d"))
    (1, 5, 8)
    """

    def __init__(self, text: str) -> None:
        self._text = text.splitlines()
        self._starts: dict[tuple[str | int, ...], int] = {}
        counts: dict[str, int] = {}
        table: tuple[str | int, ...] = ()
        for number, line in enumerate(self._text, start=1):
            header, key = _HEADER.match(line), _KEY.match(line)
            if header is not None:
                first, *rest = header[2].split(".")
                if header[1] == "[[":
                    counts[first] = counts.get(first, -1) + 1
                at = (counts[first],) if first in counts else ()
                table = (first, *at, *rest)
                self._starts.setdefault(table, number)
            elif key is not None:
                self._starts.setdefault((*table, *key[1].split(".")), number)

    def of(self, place: tuple[str | int, ...], value: str | None = None) -> int:
        """The line of a key or table, or that of a text in its value; 1 for the whole file."""
        start = next(
            (
                self._starts[place[:n]]
                for n in range(len(place), 0, -1)
                if place[:n] in self._starts
            ),
            1,
        )
        if value is None:
            return start
        end = min((n for n in self._starts.values() if n > start), default=len(self._text) + 1)
        quoted = re.compile(rf"[\"']{re.escape(value)}[\"']")
        found = (n for n in range(start, end) if quoted.search(self._text[n - 1].partition("#")[0]))
        return next(found, start)
