"""Export: a run or an estimator as one file, `x` and `preference` in, and a card beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paretocosmos.errors import RunError, unknown
from paretocosmos.evaluation.threshold import check_threshold
from paretocosmos.export.card import describe_fairness, render_run_card
from paretocosmos.export.formats import FORMATS, compare_file, load_program, require_onnx
from paretocosmos.export.frames import FramePredictor
from paretocosmos.export.network import (
    TAKES,
    Preprocessing,
    describe_file,
    has_threshold,
    plan_export,
)
from paretocosmos.io.files import make_folder, path_exists, replace_file, user_path
from paretocosmos.runs.run import Run, SupportsToRun, predicts_at, to_run

__all__ = [
    "Exported",
    "FramePredictor",
    "Preprocessing",
    "describe_fairness",
    "export",
    "load_program",
    "plan_export",
]

Format = Literal["onnx", "torch"]

WAY_OUT = "make room, or choose another `out`"


@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes:
        path: the file.
        card: the model card beside it, Markdown.
        difference: the largest difference to PyTorch on random rows and preferences; relative to
            the largest output where that is above 1.
        preference: how many preferences the file takes, in words.

    >>> done = Exported(Path("model.onnx"), Path("model.onnx.md"), 6e-8, "one for all rows, [1, 2]")
    >>> import os
    >>> os.fspath(done)  # so that `open(done)` and runtimes take it as a file name
    'model.onnx'
    """

    path: Path
    card: Path
    difference: float
    preference: str

    def __fspath__(self) -> str:
        return str(self.path)


def export(
    run: Run | SupportsToRun,
    *,
    format: Format = "onnx",  # noqa: A002
    out: str | Path | None = None,
    threshold: float | None = None,
) -> Exported:
    """Write a run's network as one file that needs no paretocosmos, and a card beside it.

    The file has two inputs: `x`, float32, any number of rows; and `preference`, float32, on the
    simplex, ``[1, J]`` for all rows or ``[N, J]`` with one for each. A network that cannot be
    traced so, such as a hypernetwork of convolutions, takes ``[1, J]`` only; `Exported` and the
    card say so.

    For a table, `x` is what ``run.table.encode(frame)`` or ``estimator.encode(frame)`` gives, and
    the preprocessing is in the file. Its outputs are `probability` ``[N]``, as `run.predict` gives
    it, and `decision` ``[N]``: 1 above the threshold, else 0. For several classes they are
    `probability` ``[N, K]`` and the position of the most probable class; for a number, `prediction`
    ``[N]``. For anything else, `x` is what the network takes, and the outputs are its logits, one
    tensor per head. Runs in float64 are exported in float32.

    The file is loaded again and compared with PyTorch on random rows and preferences, at several
    sizes; one that differs by more than 1e-5 is removed. Nothing is unpickled: an ONNX file holds
    no pickles. A program of torch.export is written without its example inputs, which are the one
    thing that torch would pickle, and searched for other pickles before torch loads it.

    Args:
        run: what `fit` or `load_run` gave, a fitted estimator, or a pipeline that ends in one. It
            must have one network, not one for each ray.
        format: ``"onnx"`` for any runtime, or ``"torch"`` for a program of torch.export, which
            takes one preference for each row.
        out: the file, ``.onnx`` or ``.pt2``; it must not exist. By default ``export/model.onnx`` or
            ``export/model.pt2`` in the run folder, where an older one is replaced; for an
            estimator, ``model.onnx`` or ``model.pt2`` in the current folder.
        threshold: the probability above which decisions between two classes are positive, such as
            `Choice.threshold`; the card and the metadata of the file record it. `None` is the
            `threshold_` of an estimator, or 0.5.

    Returns:
        The file, its card (the same name and ``.md``), and the difference.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", epochs=1, out=tempfile.mkdtemp() + "/run", report=False)
    >>> done = export(run, format="torch")
    >>> done.path.name, done.card.name, done.preference
    ('model.pt2', 'model.pt2.md', 'one for each row, [N, 2]')
    >>> done.difference <= 1e-5
    True
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    run = to_run(run)
    threshold = predicts_at(run).threshold if threshold is None else threshold
    check_threshold(threshold, decided=has_threshold(run), name=run.record["name"])
    file_format = FORMATS[format]
    path = _find_path(run, file_format.ending, out)
    with make_folder(path.parent):  # first: a folder that cannot be written costs no work
        if format == "onnx":
            require_onnx()  # before tracing, which takes seconds
        plan = plan_export(run, threshold)
        content, several = file_format.write(
            plan, lambda free: describe_file(run, plan, file_format.takes[free], threshold)
        )
        takes = file_format.takes[several]
        # an error in the comparison below removes the temporary file and keeps an older one
        with replace_file(path, way_out=WAY_OUT) as temporary:
            temporary.write_bytes(content)
            difference = compare_file(plan, temporary, path, file_format.load, takes, run.table)
    preference = TAKES[takes].format(j=plan.objectives)
    result = Exported(path, path.with_name(f"{path.name}.md"), difference, preference)
    with replace_file(result.card, way_out=WAY_OUT) as temporary:
        card = render_run_card(run, plan, path.name, takes, difference, threshold)
        temporary.write_bytes(card.encode())
    return result


def _find_path(run: Run, ending: str, out: str | Path | None) -> Path:
    """Return the path of the file; only a file in the run's own folder is replaced."""
    default = run.folder / "export" / f"model{ending}" if run.saved else None
    path = (default or Path(f"model{ending}")) if out is None else user_path(out)
    if path.suffix != ending:
        raise RunError(f"`out` must name a file that ends in {ending}, found `{path}`")
    existing = [p for p in (path, path.with_name(f"{path.name}.md")) if path_exists(p)]
    if existing and path != default:
        raise RunError(f"`{existing[0]}` exists; choose another `out`, or remove it").with_hint(
            {"out": None}
        )
    return path
