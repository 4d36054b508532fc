"""Texts that others wrote, as a terminal and a sentence can take them."""

import re

__all__ = ["plain", "printable"]

# What would steer a terminal, turn the direction of reading, or is half a character.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keep: str = "") -> str:
    r"""A text whose control characters are written as escapes.

    Args:
        text: any text, such as one from a file.
        keep: control characters that stay, such as line breaks.

    >>> print(printable("a\n\x1b[2J"))
    a\n\x1b[2J
    """
    return STEERING.sub(lambda one: one[0] if one[0] in keep else ascii(one[0])[1:-1], text)


def plain(text: str) -> str:
    r"""A text as one line without control characters.

    >>> print(plain("a\n\x1b[2J"))
    a \x1b[2J
    """
    return printable(" ".join(text.split()))
