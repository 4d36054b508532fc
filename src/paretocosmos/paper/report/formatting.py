"""Numbers as the text of a report."""

import math
from collections.abc import Mapping

from paretocosmos.paper.results import Spread

NONE = "–"
"""Stands where there is no number."""


def format_spread(number: Spread | None, digits: int = 3, scale: float = 1.0) -> str:
    """Format a mean over seeds and its deviation.

    >>> format_spread(Spread(3.3456, 0.0031, [3.3, 3.4]))
    '3.346 ± 0.003'
    """
    if number is None:
        return NONE
    tail = "" if number.std is None else f" ± {scale * number.std:.{digits}f}"
    return f"{scale * number.mean:.{digits}f}{tail}"


def format_difference(value: float | None, digits: int = 3, scale: float = 1.0) -> str:
    """Format a difference with its sign.

    >>> format_difference(-0.0123), format_difference(0.0001), format_difference(None)
    ('−0.012', '+0.000', '–')
    """
    # a true minus sign is as wide as the plus above and below it
    return NONE if value is None else f"{scale * value:+.{digits}f}".replace("-", "−")


def format_printed(paper: Mapping[str, float], *, deviation: bool = False) -> str:
    """Format a hypervolume of the paper, with as many digits as in print; faces have no deviation.

    >>> paper = {"hypervolume": 3.34, "std": 0.01}
    >>> format_printed(paper), format_printed(paper, deviation=True)
    ('3.34', '3.34 ± 0.01')
    """
    if "hypervolume" not in paper:
        return NONE
    # the table of CelebA has three digits and no deviation, Table 1 two and one
    if "std" not in paper:
        return f"{paper['hypervolume']:.3f}"
    return f"{paper['hypervolume']:.2f}" + (f" ± {paper['std']:.2f}" if deviation else "")


def format_ratio(ratio: float | None) -> str:
    """Format how many times as fast, with at least two digits.

    >>> [format_ratio(ratio) for ratio in (0.4429, 7.0, 56.6, 1202.4, None)]
    ['0.44', '7.0', '57', '1,202', '–']
    """
    if ratio is None:
        return NONE
    # rounded to two digits first, or 9.96 would have three
    digits = 1 - math.floor(math.log10(float(f"{ratio:.1e}"))) if ratio else 0
    return f"{ratio:,.{max(digits, 0)}f}"


def format_duration(seconds: float | None) -> str:
    """Format seconds, or hours where they are many.

    >>> format_duration(0.123), format_duration(31), format_duration(1554), format_duration(11880)
    ('0.12 s', '31 s', '1,554 s', '3.30 h')
    """
    if seconds is None:
        return NONE
    if seconds >= 7200:
        return f"{seconds / 3600:.2f} h"
    # fractions of a second matter only to short trainings
    no_digits = seconds >= 10 or float(seconds).is_integer()
    return f"{seconds:,.0f} s" if no_digits else f"{seconds:.2f} s"


def format_thousands(count: float | None) -> str:
    """Format a number of parameters as the paper prints it.

    >>> format_thousands(7011), format_thousands(3_243_410)
    ('7k', '3,243k')
    """
    return NONE if count is None else f"{count / 1000:,.0f}k"


def format_rate(rate: float | None) -> str:
    """Format a rate of misclassification in percent, as the paper prints it.

    >>> format_rate(0.0307)
    '3.07'
    """
    return NONE if rate is None else f"{100 * rate:.2f}"
