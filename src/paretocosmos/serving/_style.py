"""How the pages of a server look, and their frame: plain HTML, so that nothing is fetched."""

import base64
import hashlib
from html import escape
from importlib.resources import files

__all__ = ["framed", "policy"]

STYLE = files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def framed(title: str, body: str, *, script: str = "") -> str:
    """A whole page.

    Args:
        title: as text; so is whatever a run says, which is shown, never run.
        body: as HTML.
        script: of this package, which its policy allows by its hash.
    """
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head>'
    )
    run = f"<script>{script}</script>" if script else ""
    return f"{head}<body><main>{body}</main>{run}</body></html>"


def policy(script: str = "") -> str:
    """What a page may do: be styled, and run just this script, which may ask this server alone."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    rules += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules += [f"script-src 'sha256-{digest}'", "connect-src 'self'"]
    return "; ".join(rules)
