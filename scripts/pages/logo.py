"""The logo and the social card as SVG: five trade-offs on one front."""

__all__ = ["write_logo", "write_social_card"]

COLOURS = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151")
LINES = ("One network, trained once.", "Choose the trade-off afterwards.")


def write_logo() -> str:
    """Return the logo."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">\n{_draw_front()}\n</svg>\n'
    )


def write_social_card() -> str:
    """Return the picture that links to the repository show, 1280 x 640."""
    texts = "\n".join(
        f'<text x="560" y="{350 + 60 * row}" font-size="40" fill="#495057">{line}</text>'
        for row, line in enumerate(LINES)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 640" font-family="sans-serif">\n'
        '<rect width="1280" height="640" fill="#ffffff"/>\n'
        f'<g transform="translate(80 128) scale(6)">\n{_draw_front()}\n</g>\n'
        '<text x="560" y="260" font-size="84" font-weight="bold" fill="#212529">paretocosmos</text>\n'
        f"{texts}\n</svg>\n"
    )


def _draw_front() -> str:
    """Draw axes and the points x y = 1, from much of one objective to much of the other."""
    dots = "\n".join(
        f'<circle cx="{8 + 22 * x:.1f}" cy="{56 - 22 / x:.1f}" r="5" fill="{colour}"/>'
        for x, colour in zip((0.5, 0.7, 1.0, 1.43, 2.0), COLOURS, strict=True)
    )
    axes = '<path d="M8 4V56H60" fill="none" stroke="#868e96" stroke-width="3" stroke-linecap="round"/>'
    return f"{axes}\n{dots}"
