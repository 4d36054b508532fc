"""How Sphinx builds the site; `make site` runs it with warnings as errors."""

import re
import sys
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

from pages.notebook import page_of  # noqa: E402

from paretocosmos import __version__  # noqa: E402

project = "paretocosmos"
author = "the paretocosmos developers"
copyright = author  # noqa: A001
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
# The notes are one page of the site, which `join_notes` writes.
NOTES = sorted(
    path for path in Path(__file__).parent.glob("decisions/*.md") if path.stem != "index"
)
exclude_patterns = [f"decisions/{path.name}" for path in NOTES]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

# Docstrings: Google's sections, and a name in single backticks is code.
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
# What an extra brings need not be there to describe what uses it.
EXTRAS = ("lightning", "mlflow", "onnx", "onnxruntime", "tensorboard", "transformers", "wandb")
autodoc_mock_imports = [name for name in EXTRAS if find_spec(name) is None]

html_theme = "furo"
html_title = f"paretocosmos {release}"
html_static_path = ["_static"]
html_logo = html_favicon = "_static/logo.svg"
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ff", "color-brand-content": "#7cc0ff"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

PICTURE = re.compile(
    r'<picture><source [^>]*srcset="(?P<dark>[^"]+)">'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)"></picture>'
)


SMALL = re.compile(r'<img src="([^"]+)" width="(\d+)" alt="([^"]*)">')
PART = re.compile(r"^<!-- on the site: (\S+) -->$", flags=re.MULTILINE)
# Pages of the repository's root, which are pages of the site too.
ROOTED = {"changelog": "CHANGELOG", "contributing": "CONTRIBUTING", "security": "SECURITY"}
AT_ROOT = re.compile(rf"\]\((?:\.\./)*({'|'.join(ROOTED.values())})\.md")
TO_NOTE = re.compile(r"\]\(((?:\.\./)*(?:docs/)?)(decisions/)?(\w+)\.md(?:#[\w-]+)?\)")


def rewrite_for_site(app: Any, page: str, source: list[str]) -> None:
    """Change what GitHub shows differently or not at all: pictures, notes, pages of the root."""
    text = source[0]
    if page in ROOTED:
        text = (ROOT / f"{ROOTED[page]}.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\((results|examples)/", r"](../\1/", text).replace("](docs/", "](")
    if page == "changelog":  # it has every word, and would be found first
        text = f"---\nnosearch: true\n---\n\n{text}"
    if page.startswith("notebooks/"):
        text = page_of(text)
    text = join_notes(text) if page == "decisions/index" else link_notes(text, "decisions/")
    text = AT_ROOT.sub(lambda found: f"](/{found[1].lower()}.md", text)
    text = SMALL.sub(r"![\3](\1){width=\2px}", text)
    text = PART.sub(r"```{raw} html\n:file: \1\n```", text)
    source[0] = PICTURE.sub(
        r"![\g<alt>](\g<light>){.only-light}\n![\g<alt>](\g<dark>){.only-dark}", text
    )


def link_notes(text: str, folder: str) -> str:
    """Lead links to a note to its section, from pages that name the folder or from the notes."""
    titles = {path.stem: path.read_text(encoding="utf-8").partition("\n")[0] for path in NOTES}

    def lead(match: re.Match[str]) -> str:
        if (match[2] or "") != folder or match[3] not in titles:
            return match[0]
        anchor = re.sub(r"[^\w\- ]", "", titles[match[3]].lower()).strip().replace(" ", "-")
        return f"](/decisions/index.md#{anchor})" if folder else f"](#{anchor})"

    return TO_NOTE.sub(lead, text)


def join_notes(text: str) -> str:
    """Put all notes onto their page, which the site's search leaves out."""
    notes = (path.read_text(encoding="utf-8") for path in NOTES)
    parts = [link_notes(re.sub(r"^#", "##", note, flags=re.MULTILINE), "") for note in notes]
    return "\n\n".join(["---\nnosearch: true\n---", text, *parts])


ACCESSIBLE = (  # Furo's, pandas' and rich's HTML, and what axe-core asks for in its place
    (r'role="heading"(?! aria-level)', 'role="heading" aria-level="2"'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="All pages">'),
    (r'<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    (r'<div class="math">', '<div class="math" tabindex="0">'),
    (r"<pre(?! tabindex)", '<pre tabindex="0"'),
    (r"<th[^>]*>(<p></p>)?</th>", "<td></td>"),
    (r"color: #\w{6}; text-decoration-color: #\w{6}", ""),
    (
        r'(?<=<article role="main" id="furo-main-content">)\s*<noscript>',
        "<h1>Search</h1><noscript>",
    ),
)


def make_accessible(app: Any, exception: Exception | None) -> None:
    """Name regions and headings, and let what is wider than the page be scrolled by keyboard."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for pattern, accessible in ACCESSIBLE:
            text = re.sub(pattern, accessible, text)
        number = count(1)
        scroll = '<div tabindex="0" role="region" aria-label="Table {}" class="table-wrapper'
        text = re.sub(r'<div class="table-wrapper', lambda _: scroll.format(next(number)), text)  # noqa: B023
        path.write_text(text, encoding="utf-8")


def _write_mathml(formula: str, block: bool) -> str:
    return str(tex2mathml(formula, as_block=block))


def as_mathml(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula that needs no script and no network."""
    block = isinstance(node, nodes.math_block)
    formula = re.sub(r"\\[Bb]ig+[lr]?(?![a-z])", "", node.astext())  # MathML stretches by itself
    for name, known in ((r"\texttt", r"\text"), (r"\dots", r"\ldots")):
        formula = formula.replace(name, known)
    shown = re.sub(
        r"<mo>([{}|()])</mo>", r'<mo stretchy="false">\1</mo>', _write_mathml(formula, block)
    )
    writer.body.append(f'<div class="math">{shown}</div>' if block else shown)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect them."""
    app.connect("source-read", rewrite_for_site)
    app.connect("build-finished", make_accessible)
    app.add_html_math_renderer("mathml", (as_mathml, None), (as_mathml, None))
