"""What a training tells while it runs, and to whom."""

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

__all__ = ["Callback", "Evaluation", "Listeners", "Start"]


@dataclass(frozen=True)
class Start:
    """A training that begins, or goes on.

    Attributes:
        folder: the run folder.
        record: ``run.json`` as the training began: every setting, versions, seed, device.
        epoch: epochs done before, 0 unless it was resumed.
    """

    folder: Path
    record: Mapping[str, Any]
    epoch: int

    @property
    def name(self) -> str:
        """The problem, the method and the seed, as run folders are called.

        >>> told = {"name": "adult", "label": "cosmos", "seed": 1}
        >>> Start(Path("runs/mine"), told, 0).name
        'adult-cosmos-1'
        """
        return "-".join(str(self.record[key]) for key in ("name", "label", "seed"))


@dataclass(frozen=True)
class Evaluation:
    """A front on the validation data, in the middle of a training.

    Attributes:
        folder: the run folder.
        epoch: epochs done.
        front: what every ray reaches.
        hypervolume: of that front.
    """

    folder: Path
    epoch: int
    front: Front
    hypervolume: float


class Callback:
    """Called during training; derive from it and override the events you need.

    A training is known by its run folder. Of several seeds each is told by itself. Everything is
    told after the checkpoint of its epoch was written. A callback that raises is left out from then
    on, with a `CallbackWarning`, and the training goes on.

    >>> class Losses(Callback):
    ...     def epoch(self, at: Progress) -> None:
    ...         print(at.epoch, sorted(at.losses))
    >>> import tempfile
    >>> from paretocosmos import fit
    >>> _ = fit("toy_convex", epochs=2, out=tempfile.mkdtemp() + "/run", callbacks=[Losses()])
    1 ['first', 'second']
    2 ['first', 'second']
    """

    def started(self, start: Start) -> None:
        """A training begins: its folder and all its settings."""

    def epoch(self, at: Progress) -> None:
        """An epoch is done: losses, speed, time left."""

    def evaluated(self, found: Evaluation) -> None:
        """The validation front was evaluated."""

    def finished(self, run: "Run") -> None:
        """A training is done, and its folder complete."""

    def stopped(self, folder: Path, why: str) -> None:
        """A training ended before it was done, in one sentence why; it may be resumed."""


class Listeners:
    """Whoever hears of the trainings of one `fit`; when that ends, so does what they follow.

    Args:
        callbacks: told everything, each in its turn.
        progress: called after every epoch, with the means over all seeds that train together; an
            exception of its own stops the training. It may be set anew for other trainings.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        *,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        given: list[object] = list(callbacks)
        self._callbacks = [one for one in given if isinstance(one, Callback)]
        if len(self._callbacks) < len(given):
            other = next(one for one in given if not isinstance(one, Callback))
            raise ConfigurationError(
                f"`callbacks` must be a list, each a `Callback`, found {other!r:.80}: derive from "
                "`Callback`"
            )
        self.progress = progress
        self._open: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        why = "" if error is None else one_line(error) or type(error).__name__
        for folder in self._open:
            self._tell("stopped", folder, why)
        self._open = []

    def started(self, folder: Path, epoch: int) -> None:
        """Tell that a training begins, once: it may be begun anew where memory runs out."""
        if folder not in self._open:
            self._open.append(folder)
            self._tell("started", Start(folder, read_json(folder / "run.json"), epoch))

    def epoch(
        self, each: Sequence[Progress], found: Sequence[Evaluation], together: Progress
    ) -> None:
        """Tell of an epoch.

        Args:
            each: where every seed stands.
            found: the fronts that were evaluated after it.
            together: where all of them stand.
        """
        for at in each:
            self._tell("epoch", at)
        for evaluation in found:
            self._tell("evaluated", evaluation)
        if self.progress is not None:
            self.progress(together)

    def finished(self, run: "Run") -> None:
        """Tell that a training is done."""
        if run.folder in self._open:
            self._open.remove(run.folder)
            self._tell("finished", run)

    def _tell(self, what: str, *told: object) -> None:
        for callback in tuple(self._callbacks):
            try:
                getattr(callback, what)(*told)
            except Exception as error:
                self._callbacks.remove(callback)
                warnings.warn(
                    f"the callback `{type(callback).__name__}` failed at `{what}` "
                    f"({type(error).__name__}: {one_line(error)}) and is not called again; "
                    "training continues",
                    CallbackWarning,
                    stacklevel=3,
                )
