"""`reproduce`: every cell of a recipe, those that are done but once."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from paretocosmos.errors import ConfigurationError, ParetoCosmosError, cannot_use
from paretocosmos.io.files import user_path
from paretocosmos.io.schema import MOST_WORKERS
from paretocosmos.io.trust import check_trust
from paretocosmos.paper._cell import Job, Outcome, ReproduceOptions, Tell, packages_of, tidy, train
from paretocosmos.paper._cluster import need_ray, on_ray
from paretocosmos.paper._done import finished
from paretocosmos.paper._reproduction import CellStatus, Reproduction
from paretocosmos.paper._workers import on_workers
from paretocosmos.paper.recipe import Cell, Recipe, load_recipe
from paretocosmos.runtime.device import check_precision, device_of
from paretocosmos.runtime.distributed import join
from paretocosmos.training.fit import Progress, check_seeds

__all__ = ["CellStatus", "Reproduction", "reproduce"]


def reproduce(
    recipe: str | Path | Recipe,
    *,
    out: str | Path = "reproduction",
    only: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    epochs: int | None = None,
    data: str | Path | None = None,
    trust: Collection[str] = (),
    device: str = "auto",
    precision: str = "tf32",
    workers: int = 0,
    cluster: str | None = None,
    progress: Callable[[Reproduction], None] | None = None,
) -> Reproduction:
    """Train the cells of a recipe that are not done, each in a folder of its own.

    What is done stays, also from another recipe that has the same cell; what was interrupted goes
    on. A cell that fails does not stop the others: it is in `failures`.

    Args:
        recipe: its name, a TOML file, or a recipe.
        out: the folder of all recipes; cells are in ``cells/PROBLEM/METHOD/seed-SEED``.
        only: problems, methods and protocols to train; all if none is named.
        seeds: others than the recipe's.
        epochs: as many instead of the paper's, for a rehearsal; it has a folder of its own in
            `out`, and is marked in all that comes from it.
        data: a folder to look for data in, before the cache; as ``$PARETOCOSMOS_DATA``.
        trust: packages and modules whose code the recipe's file, and the runs in `out`, may name.
        device: as for `fit`; with ``"auto"``, what was done on another device counts as well.
        precision: as for `fit`.
        workers: processes on this machine that train the cells, each of them one; a cell that
            kills its process costs no other. 0 trains in this process.
        cluster: the address of a Ray cluster whose workers train the cells; ``"local"`` starts one
            on this machine.
        progress: called after every epoch and whenever a cell begins or ends.

    >>> import tempfile
    >>> done = reproduce("intuition", out=tempfile.mkdtemp(), only=["linear"], epochs=1)
    >>> [(one.cell.problem, one.state) for one in done.having("done")]
    [('toy_convex', 'done'), ('toy_concave', 'done')]
    """
    _check_place(device, data, workers, cluster)
    made = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, trust=trust)
    made = made.with_seeds(None if seeds is None else check_seeds(seeds)).rehearsal(epochs)
    asked = {cell.name for cell in made.only(only)}
    exact = check_precision(precision)
    where = None if data is None else str(user_path(data).absolute())
    how = ReproduceOptions(_folder(out), device, exact, where, check_trust(trust))
    reproduction = Reproduction(made, how.out)
    reproduction.sweep()
    images: dict[str, str] = {}
    jobs = _left(reproduction, asked, how, images)
    reproduction.save()
    show = progress or (lambda _: None)
    show(reproduction)

    def tell(cell: Cell, what: Progress | Outcome | None) -> None:
        if isinstance(what, Outcome) and what.error is None:
            what = _confirmed(cell, what, how, images)
        reproduction.note(cell, what)
        if isinstance(what, Outcome):
            reproduction.save()
        show(reproduction)

    try:
        if jobs and cluster is not None:
            on_ray(jobs, how, tell, address=cluster)
        elif jobs and workers:
            on_workers(jobs, how, tell, count=workers)
        else:
            _here(jobs, how, tell)
    finally:
        reproduction.stop()
    return reproduction


def _check_place(device: str, data: str | Path | None, workers: int, cluster: str | None) -> None:
    """Refuse what cannot be started where it was asked for."""
    if join(device)[0].count > 1:
        raise ConfigurationError(
            "`reproduce` must run in one process, found several: start it without torchrun, and "
            "use `workers` or `cluster`"
        ).by({"workers": None, "cluster": None})
    if not 0 <= workers <= MOST_WORKERS:
        raise ConfigurationError(f"`workers` must be from 0 to {MOST_WORKERS}, found {workers}")
    if workers and cluster is not None:
        raise ConfigurationError(
            "`workers` trains on this machine and `cluster` on others, found both: give one"
        )
    if cluster is not None:
        need_ray()
        return
    device_of(device)
    if data is not None and not user_path(data).is_dir():
        raise ConfigurationError(f"`data` must be a folder, found `{data}`: check the path")


def _left(
    reproduction: Reproduction,
    asked: Collection[str],
    how: ReproduceOptions,
    images: dict[str, str],
) -> list[Job]:
    """The cells that were asked for and are not done, with their seeds; all are made known."""
    jobs: list[Job] = []
    for cell in reproduction.recipe.cells:
        wanted = cell.name in asked
        try:
            left = set(cell.seeds) - set(finished(cell, how, images, asked=wanted))
        except ParetoCosmosError as error:
            reproduction.know(cell, "failed", error, asked=wanted)
            continue
        reproduction.know(cell, "waiting" if left else "done", asked=wanted)
        if left and wanted:
            jobs.append((cell, [seed for seed in cell.seeds if seed in left]))
        elif wanted:
            tidy(cell, how)
    return jobs


def _here(jobs: Sequence[Job], how: ReproduceOptions, tell: Tell) -> None:
    """One cell after the other, in this process."""
    for cell, seeds in jobs:
        tell(cell, None)
        tell(cell, train(cell, how, seeds, partial(tell, cell)))


def _confirmed(
    cell: Cell, outcome: Outcome, how: ReproduceOptions, images: dict[str, str]
) -> Outcome:
    """A cell has succeeded when it is found as it was asked for, on the images of the others."""
    try:
        finished(cell, how, images)
    except ParetoCosmosError as error:
        return dataclasses.replace(outcome, error=str(error), packages=packages_of(error))
    return outcome


def _folder(out: str | Path) -> Path:
    folder = user_path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_use(folder, error) from error
    return folder
