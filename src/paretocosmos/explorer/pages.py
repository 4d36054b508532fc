"""The explorer's page, written and shown: in a browser, or below a notebook's cell."""

import html
import tempfile
import warnings
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paretocosmos.errors import DataWarning
from paretocosmos.explorer.evaluate_page import look_at
from paretocosmos.explorer.serialize import write_report
from paretocosmos.io.files import user_path
from paretocosmos.io.progress import status
from paretocosmos.runs.run import Run, SupportsToRun, to_run

HEIGHT = 820


@dataclass(frozen=True)
class Page:
    """A page that was written; a notebook shows it below the cell.

    Attributes:
        path: the file, which opens in any browser, without Python.
        height: of the frame in a notebook, in pixels.
        why: it holds no samples and no counted answers, where it does not.
    """

    path: Path
    height: int = HEIGHT
    why: str = ""

    def open(self) -> bool:
        """Open it in a browser of its own; whether one was found."""
        return webbrowser.open(self.path.absolute().as_uri())

    def _repr_html_(self) -> str:
        inside = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        # no origin of its own, so nothing of the notebook can be reached from it
        allowed = "allow-scripts allow-downloads allow-popups allow-modals"
        return (
            f'<iframe title="Explorer" sandbox="{allowed}" srcdoc="{inside}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def write_page(
    runs: Sequence[Run],
    path: Path,
    *,
    data: str | None = None,
    samples: bool = True,
    threshold: float | None = None,
    height: int = HEIGHT,
) -> Page:
    """Write the page of runs on one problem, and give it.

    Args:
        runs: the first is chosen from at first.
        path: where it goes.
        data: where the problem's data lies now, if it has moved.
        samples: whether to show a dozen of the data.
        threshold: as `look_at` takes it.
        height: of the frame in a notebook, in pixels.
    """
    with status("writing the page"):
        view = look_at(runs, data=data, samples=samples, threshold=threshold)
        write_report(path, view)
    return Page(path, height, view.why)


def explore(
    *runs: Run | SupportsToRun,
    out: str | Path | None = None,
    samples: bool = True,
    threshold: float | None = None,
    show: bool = True,
) -> Page:
    """Write a page on runs of one problem, or on an estimator, and open it in the browser.

    Args:
        runs: what `fit` or `load_run` gave, a fitted estimator, or a pipeline that ends in one.
        out: the ``.html`` file to write; one in a new temporary folder if `None`.
        samples: whether to show a dozen rows. Whoever gets the page then gets these rows.
        threshold: the probability above which an answer counts as a yes; if `None`, that of the
            estimator, and 0.5 for a run.
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
    path = Path(tempfile.mkdtemp(prefix="paretocosmos-"), "explore.html") if out is None else out
    page = write_page(
        [to_run(run) for run in runs], user_path(path), samples=samples, threshold=threshold
    )
    if page.why:
        message = f"no samples and no counted answers: {page.why}"
        warnings.warn(message, DataWarning, stacklevel=2)
    if show:
        page.open()
    return page
