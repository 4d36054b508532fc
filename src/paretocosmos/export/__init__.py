"""Export: a run or an estimator as one file, `x` and `preference` in, and a card beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from paretocosmos.errors import ParetoCosmosError, RunError, unknown
from paretocosmos.evaluation.threshold import check_threshold
from paretocosmos.export._card import card
from paretocosmos.export._check import LIMIT, difference
from paretocosmos.export._deployed import Call, Shared, deployed
from paretocosmos.export._onnx import loaded_onnx, need_onnx, onnx_bytes
from paretocosmos.export._program import loaded_program, program_bytes
from paretocosmos.export.metadata import TAKES, Takes, about, decides_by_one
from paretocosmos.io.files import exists, made, one_line, replacing
from paretocosmos.io.paths import user_path
from paretocosmos.runs.like import RunLike, as_run, predicts_at
from paretocosmos.runs.run import Run

__all__ = ["Exported", "export"]

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


class _Way(NamedTuple):
    """How a format is written and read."""

    ending: str
    write: Callable[[Shared, Callable[[bool], str]], tuple[bytes, bool]]
    load: Callable[[Path], Call]
    takes: dict[bool, Takes]


_WAYS: dict[str, _Way] = {
    "onnx": _Way(".onnx", onnx_bytes, loaded_onnx, {True: "any", False: "one"}),
    "torch": _Way(".pt2", program_bytes, loaded_program, {True: "each", False: "one"}),
}


def export(
    run: Run | RunLike,
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
    if format not in _WAYS:
        raise unknown("format", format, _WAYS)
    run = as_run(run)
    threshold = predicts_at(run).threshold if threshold is None else threshold
    check_threshold(threshold, decided=decides_by_one(run), what=run.record["name"])
    way = _WAYS[format]
    path = _place(run, way.ending, out)
    with made(path.parent):  # before the work is done
        if format == "onnx":
            need_onnx()
        shared = deployed(run, threshold)
        content, several = way.write(
            shared, lambda free: about(run, shared, way.takes[free], threshold)
        )
        takes = way.takes[several]
        with replacing(path, way_out=WAY_OUT) as temporary:
            temporary.write_bytes(content)
            found = _compared(run, shared, temporary, path, way, takes)
    said = TAKES[takes].format(j=shared.objectives)
    result = Exported(path, path.with_name(f"{path.name}.md"), found, said)
    with replacing(result.card, way_out=WAY_OUT) as temporary:
        temporary.write_bytes(card(run, shared, path.name, takes, found, threshold).encode())
    return result


def _place(run: Run, ending: str, out: str | Path | None) -> Path:
    """Where the file goes; nothing that is not the run's own is replaced."""
    own = run.folder / "export" / f"model{ending}" if run.saved else None
    path = (own or Path(f"model{ending}")) if out is None else user_path(out)
    if path.suffix != ending:
        raise RunError(f"`out` must name a file that ends in {ending}, found `{path}`")
    taken = [p for p in (path, path.with_name(f"{path.name}.md")) if exists(p)]
    if taken and path != own:
        raise RunError(f"`{taken[0]}` exists; choose another `out`, or remove it").by({"out": None})
    return path


def _compared(
    run: Run, shared: Shared, written: Path, path: Path, way: _Way, takes: Takes
) -> float:
    """The difference between a written file and PyTorch; too large a one is refused."""
    try:
        found = difference(shared, way.load(written), takes=takes, table=run.table)
    except ParetoCosmosError:
        raise
    except Exception as error:  # runtimes have no family of errors in common
        raise RunError(
            f"the file for `{path}` cannot be run ({one_line(error)[:300]}), so it was removed: "
            "try another format, or other versions of torch and the runtime"
        ) from error
    if found > LIMIT:
        raise RunError(
            f"the file for `{path}` differs from PyTorch by up to {found:.2g} where at most "
            f"{LIMIT:g} is allowed, so it was removed: try another format, or other "
            "versions of torch and the runtime"
        )
    return found
