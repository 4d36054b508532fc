"""Write the explorer's page, and show it in a browser or a notebook."""

import html
import tempfile
import warnings
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paretocosmos.errors import DataWarning
from paretocosmos.explorer.evaluate_page import build_page_model
from paretocosmos.explorer.serialize import write_report
from paretocosmos.io.files import user_path
from paretocosmos.io.progress import status
from paretocosmos.runs.run import Run, SupportsToRun, to_run

# Enough for the plot and the slider, which are used together.
HEIGHT = 820


@dataclass(frozen=True)
class Page:
    """Page that was written; a notebook shows it below the cell.

    Attributes:
        path: the file, which opens in any browser, without Python.
        height: the height in a notebook, in pixels.
        reason: the reason why it has no counted answers; empty if it has.
    """

    path: Path
    height: int = HEIGHT
    reason: str = ""

    def open(self) -> bool:
        """Open the page in a browser; return False if there is none."""
        return webbrowser.open(self.path.absolute().as_uri())

    def _repr_html_(self) -> str:
        # the whole page as an attribute: a notebook cannot load a local file into a frame
        content = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        # without allow-same-origin, the page's script cannot reach the notebook
        permissions = "allow-scripts allow-downloads allow-popups allow-modals"
        return (
            f'<iframe title="Explorer" sandbox="{permissions}" srcdoc="{content}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def write_page(
    runs: Sequence[Run],
    path: Path,
    *,
    data: str | None = None,
    samples: bool = False,
    threshold: float | None = None,
    network: bool = True,
    height: int = HEIGHT,
) -> Page:
    """Write and return the page of runs on one problem.

    Args:
        runs: the runs; the first is selected when the page opens.
        path: the file to write.
        data: the new location of the problem's data, if it has moved.
        samples: whether to show a dozen samples.
        threshold: the probability above which a binary prediction is positive.
        network: whether a page about a table has the weights, and so answers for new rows.
        height: the height in a notebook, in pixels.
    """
    with status("writing the page"):
        # everything is computed before the file is touched
        model = build_page_model(
            runs, data=data, samples=samples, threshold=threshold, network=network
        )
        write_report(path, model)
    return Page(path, height, model.reason)


def explore(
    *runs: Run | SupportsToRun,
    out: str | Path | None = None,
    samples: bool = False,
    threshold: float | None = None,
    network: bool = True,
    show: bool = True,
) -> Page:
    """Write a page about runs on one problem, or about an estimator, and open it in the browser.

    Args:
        runs: runs from `fit` or `load_run`, a fitted estimator, or a pipeline that ends in one.
        out: the ``.html`` file to write; one in a new temporary folder if `None`.
        samples: whether to show a dozen rows. Whoever gets the page then gets these rows.
        threshold: the probability above which a binary prediction is positive; if `None`, that of
            the estimator, and 0.5 for a run.
        network: whether a page about a table has the weights, and so answers for new rows.
        show: whether to open the page in a browser.

    Returns:
        The page, which a notebook shows below the cell; its `path` is the file.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from paretocosmos.estimators import ParetoClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = ParetoClassifier(random_state=0, epochs=1).fit(X[:, :5], y)
    >>> page = explore(classifier, out=tempfile.mkdtemp() + "/front.html", show=False)
    >>> page.path.name, page.path.read_text()[:15]
    ('front.html', '<!doctype html>')
    """
    # a folder of its own, so that two pages of one session do not replace each other
    path = Path(tempfile.mkdtemp(prefix="paretocosmos-"), "explore.html") if out is None else out
    page = write_page(
        [to_run(run) for run in runs],
        user_path(path),
        samples=samples,
        threshold=threshold,
        network=network,
    )
    if page.reason:
        # warned of here, since the page leaves out the reason
        message = f"the page has no counted answers: {page.reason}"
        warnings.warn(message, DataWarning, stacklevel=2)
    if show:
        # no browser is no error: the path is returned all the same
        page.open()
    return page
