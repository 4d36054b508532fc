"""How speed, memory and time are written."""


def rate(per_second: float, unit: str) -> str:
    """Samples a second.

    >>> rate(12345.6, "images"), rate(3.21, "images")
    ('12,346 images/s', '3.2 images/s')
    """
    return f"{per_second:,.0f} {unit}/s" if per_second >= 10 else f"{per_second:.1f} {unit}/s"


def amount(size: int) -> str:
    """Bytes.

    >>> amount(3_140_000_000), amount(84_000_000)
    ('3.1 GB', '84 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def share(part: float) -> str:
    """A share; a little is not nothing.

    >>> share(0.0), share(0.001), share(0.034)
    ('0 %', '<1 %', '3 %')
    """
    return "<1 %" if 0 < part < 0.005 else f"{part:.0%}".replace("%", " %")


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.4), clock(-1)
    ('1:02:05', '0:00:00')
    """
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
