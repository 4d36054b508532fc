"""The colours and the type that pages and pictures share."""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "paper": "#fbfbfa",
    "raised": "#f1f2f2",
    "ink": "#22262b",
    "quiet": "#5b626c",
    "line": "#d9dce1",
    "grid": "#e9ebee",
    "muted": "#9aa1ab",
    "accent": "#00609a",
    "accent-soft": "#00609a1c",
    "on-accent": "#ffffff",
    "amiss": "#a83a00",
}
DARK: Mapping[str, str] = {
    "paper": "#16181a",
    "raised": "#1f2225",
    "ink": "#e8eaed",
    "quiet": "#a6acb5",
    "line": "#363b41",
    "grid": "#272b2f",
    "muted": "#737a84",
    "accent": "#6cbcf0",
    "accent-soft": "#6cbcf026",
    "on-accent": "#0d1b26",
    "amiss": "#ff9a5c",
}
# Okabe and Ito's colours (2008) stay apart for every common kind of colour blindness, and all of
# them can be told from white and from black. The last two are for the seventh and eighth.
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
RUNS: Mapping[str, tuple[str, ...]] = {
    "light": (*OKABE_ITO, LIGHT["ink"], "#7a6651"),
    "dark": ("#2f95d6", *OKABE_ITO[1:], DARK["ink"], "#c9b497"),
}
TYPE: Mapping[str, str] = {
    "sans": '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif',
    "serif": '"Iowan Old Style", Palatino, "Palatino Linotype", Georgia, "DejaVu Serif", serif',
    "mono": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
}


def css() -> str:
    """Return CSS custom properties: light, dark by the system, or by a page's own switch.

    >>> css().splitlines()[0]
    ':root {'
    """
    # `color-scheme` makes the browser's own controls match
    light, dark = (
        f"color-scheme: {name}; "
        + " ".join(f"--{key}: {value};" for key, value in colours.items())
        + " "
        + " ".join(f"--run-{index}: {colour};" for index, colour in enumerate(RUNS[name]))
        for name, colours in (("light", LIGHT), ("dark", DARK))
    )
    fonts = " ".join(f"--{name}: {stack};" for name, stack in TYPE.items())
    return (
        f":root {{\n  {light}\n  {fonts}\n}}\n"
        "@media (prefers-color-scheme: dark) {\n"
        # a page's own switch overrules the system
        f'  :root:not([data-theme="light"]) {{ {dark} }}\n}}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
    )
