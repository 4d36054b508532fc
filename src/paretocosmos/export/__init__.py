"""Export: a run or an estimator as one file, `x` and `preference` in, and a card beside it."""

from dataclasses import dataclass
from pathlib import Path

from paretocosmos.errors import RunError
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import check_threshold
from paretocosmos.export.card import describe_fairness, render_run_card
from paretocosmos.export.formats import FramePredictor, compare_file, require_onnx, write_onnx
from paretocosmos.export.network import (
    TAKES,
    Preprocessing,
    describe_file,
    has_threshold,
    plan_export,
)
from paretocosmos.io.files import make_folder, path_exists, replace_file, user_path
from paretocosmos.pareto.rays import Rays
from paretocosmos.runs.frozen import freeze_run
from paretocosmos.runs.run import Run, SupportsToRun, predicts_at, to_run

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
    at: Choice | Rays | None = None,
    out: str | Path | None = None,
    threshold: float | None = None,
) -> Exported:
    """Write a run's network as one ONNX file that needs no paretocosmos, and a card beside it.

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
    sizes; one that differs by more than 1e-5 is removed. It holds no pickles.

    Args:
        run: what `fit` or `load_run` gave, a fitted estimator, or a pipeline that ends in one. It
            must have one network, not one for each ray, unless `at` chooses one.
        at: freeze the file at one preference, which it then does not take: what `run.choose`
            returned, with its threshold, or a ray (`freeze_run`). The card and the metadata say
            what is reached there.
        out: the file, ``.onnx``; it must not exist. By default ``export/model.onnx`` in the run
            folder, where an older one is replaced; for an estimator, ``model.onnx`` in the current
            folder.
        threshold: the probability above which decisions between two classes are positive, such as
            `Choice.threshold`; the card and the metadata of the file record it. `None` is the
            `threshold_` of an estimator, or 0.5.

    Returns:
        The file, its card (the same name and ``.md``), and the difference.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", epochs=1, out=tempfile.mkdtemp() + "/run", report=False)
    >>> done = export(run)
    >>> done.path.name, done.card.name, done.preference
    ('model.onnx', 'model.onnx.md', 'one for all rows, [1, 2], or one for each, [N, 2]')
    >>> done.difference <= 1e-5
    True
    """
    run = to_run(run)
    if at is not None:
        run, threshold = freeze_run(run, at, threshold), None
    threshold = predicts_at(run).threshold if threshold is None else threshold
    check_threshold(threshold, decided=has_threshold(run), name=run.record["name"])
    # only a file in the run's own folder is replaced
    default = run.folder / "export" / "model.onnx" if run.saved else None
    path = (default or Path("model.onnx")) if out is None else user_path(out)
    if path.suffix != ".onnx":
        raise RunError(f"`out` must name a file that ends in .onnx, found `{path}`")
    existing = [p for p in (path, path.with_name(f"{path.name}.md")) if path_exists(p)]
    if existing and path != default:
        raise RunError(f"`{existing[0]}` exists; choose another `out`, or remove it")
    with make_folder(path.parent):  # first: a folder that cannot be written costs no work
        require_onnx()  # before tracing, which takes seconds
        plan = plan_export(run, threshold)
        content, takes = write_onnx(plan, lambda takes: describe_file(run, plan, takes, threshold))
        # an error in the comparison below removes the temporary file and keeps an older one
        with replace_file(path, way_out=WAY_OUT) as temporary:
            temporary.write_bytes(content)
            difference = compare_file(plan, temporary, path, takes, run.table)
    preference = TAKES[takes].format(j=plan.objectives)
    result = Exported(path, path.with_name(f"{path.name}.md"), difference, preference)
    with replace_file(result.card, way_out=WAY_OUT) as temporary:
        card = render_run_card(run, plan, path.name, takes, difference, threshold)
        temporary.write_bytes(card.encode())
    return result
