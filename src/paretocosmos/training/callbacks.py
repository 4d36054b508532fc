"""Callbacks: events of a training for loggers, trackers and the caller's own code."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from paretocosmos.errors import CallbackWarning, ConfigurationError
from paretocosmos.io.files import one_line, read_json
from paretocosmos.pareto.front import Front
from paretocosmos.training.progress import Progress

if TYPE_CHECKING:
    from paretocosmos.runs.run import Run


@dataclass(frozen=True)
class Start:
    """The beginning of a training, or its continuation.

    Attributes:
        folder: the run folder.
        record: ``run.json`` as the training began: every setting, versions, seed, device.
        epoch: epochs done before; 0 unless it was resumed.
    """

    folder: Path
    record: Mapping[str, Any]
    epoch: int

    @property
    def name(self) -> str:
        """The problem, the method and the seed, in the form of a run folder's name.

        >>> record = {"name": "adult", "label": "cosmos", "seed": 1}
        >>> Start(Path("runs/mine"), record, 0).name
        'adult-cosmos-1'
        """
        return "-".join(str(self.record[key]) for key in ("name", "label", "seed"))


@dataclass(frozen=True)
class Evaluation:
    """A front on the validation data, in the middle of a training.

    Attributes:
        folder: the run folder.
        epoch: epochs done.
        front: the scores at every ray.
        hypervolume: the hypervolume of the front.
    """

    folder: Path
    epoch: int
    front: Front
    hypervolume: float


class Callback:
    """Base class of callbacks: derive from it and override the events you need.

    A training is identified by its run folder; with several seeds, each has events of its own. The
    events of an epoch follow its checkpoint. A callback that raises is not called again: there is a
    `CallbackWarning`, and the training goes on.

    >>> class Losses(Callback):
    ...     def epoch(self, progress: Progress) -> None:
    ...         print(progress.epoch, sorted(progress.losses))
    >>> import tempfile
    >>> from paretocosmos import fit
    >>> _ = fit("toy_convex", epochs=2, out=tempfile.mkdtemp() + "/run", callbacks=[Losses()])
    1 ['first', 'second']
    2 ['first', 'second']
    """

    def started(self, start: Start) -> None:
        """Handle the beginning of a training: its folder and all its settings."""

    def epoch(self, progress: Progress) -> None:
        """Handle the end of an epoch: losses, speed, time left."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Handle a new validation front."""

    def finished(self, run: "Run") -> None:
        """Handle the end of a training; its folder is complete."""

    def stopped(self, folder: Path, reason: str) -> None:
        """Handle a training that ended early, for a reason in one sentence; it may be resumed."""


class Listeners:
    """The callbacks of one `fit`; on exit, trainings that are not finished have been stopped.

    Args:
        callbacks: called in order for every event.
        progress: called after every epoch with the means over all seeds that train together; an
            exception in it stops the training. It may be replaced for other trainings.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        *,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._callbacks = list(callbacks)  # a copy: one that fails is removed from it
        for callback in self._callbacks:
            if not isinstance(callback, Callback):
                raise ConfigurationError(
                    f"`callbacks` must be a list, each a `Callback`, found {callback!r:.80}: "
                    "derive from `Callback`"
                )
        self.progress = progress
        self._open: list[Path] = []  # the run folders of trainings that are not finished

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        reason = "" if error is None else one_line(error) or type(error).__name__
        # whatever is still open here was interrupted or has failed
        for folder in self._open:
            self._call("stopped", folder, reason)
        self._open = []

    def started(self, folder: Path, epoch: int) -> None:
        """Report the beginning of a training, once, though one that lacks memory begins again."""
        if folder not in self._open:
            self._open.append(folder)
            self._call("started", Start(folder, read_json(folder / "run.json"), epoch))

    def epoch(
        self, by_seed: Sequence[Progress], evaluations: Sequence[Evaluation], overall: Progress
    ) -> None:
        """Report an epoch.

        Args:
            by_seed: the progress of every seed.
            evaluations: the fronts that were evaluated after it.
            overall: the progress of all seeds together.
        """
        for progress in by_seed:
            self._call("epoch", progress)
        for evaluation in evaluations:
            self._call("evaluated", evaluation)
        # not through `_call`: an exception is how a caller's own function stops a training
        if self.progress is not None:
            self.progress(overall)

    def finished(self, run: "Run") -> None:
        """Report the end of a training."""
        if run.folder in self._open:
            self._open.remove(run.folder)
            self._call("finished", run)

    def _call(self, event: str, *arguments: object) -> None:
        for callback in tuple(self._callbacks):  # a copy, since one that fails is removed meanwhile
            try:
                getattr(callback, event)(*arguments)
            except Exception as error:  # hours of training are worth more than a log
                self._callbacks.remove(callback)
                warnings.warn(
                    f"the callback `{type(callback).__name__}` failed at `{event}` "
                    f"({type(error).__name__}: {one_line(error)}) and is not called again; "
                    "training continues",
                    CallbackWarning,
                    stacklevel=3,
                )
