"""`fit`: a problem and a method give a run."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from paretocosmos.engine import choose, make_step
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.loop import Progress, Trainer
from paretocosmos.methods import Method
from paretocosmos.plan import Plan, make_plan
from paretocosmos.problems import Problem
from paretocosmos.run import Run, load_run, read_record

__all__ = ["Progress", "fit"]


def fit(
    problem: str | Problem,
    *,
    method: str | Method = "cosmos",
    model: nn.Module | None = None,
    conditioning: str | None = None,
    backbone: str | nn.Module | None = None,
    protocol: str | None = None,
    epochs: int | None = None,
    seed: int = 1,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    engine: str = "auto",
    deterministic: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Train one network for the whole front.

    Args:
        problem: a problem, its name, or the path of a CSV file.
        method: a method or its name.
        model: a network of one's own, ``forward(inputs, ray) -> outputs``; a copy is trained.
        conditioning: how the ray enters the backbone, by name; by the input's shape if `None`.
        backbone: a network that knows no rays, or a backbone's name; likewise.
        protocol: ``"clean"`` or ``"paper"``; the problem's default if `None`.
        epochs: passes over the data; the paper's for a problem it has, else 50.
        seed: of the weights, the shuffling and the rays.
        settings: any further constructor argument by its name, as `--set` on the command line.
        out: the run folder, new; ``runs/PROBLEM-METHOD-SEED`` if `None`.
        resume: continue the run in `out` if it was begun there.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
        engine: how steps are run; never changes the result.
        deterministic: only reproducible kernels, for a GPU; a CPU is always reproducible.
        progress: called after every epoch.

    Returns:
        The run: `.front`, `.model`, `.folder`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> run = fit("toy_convex", epochs=2, out=folder)
    >>> run.front.names
    ('first', 'second')
    """
    plan = make_plan(
        problem,
        method=method,
        model=model,
        conditioning=conditioning,
        backbone=backbone,
        protocol=protocol,
        settings=dict(settings or {}) | ({} if epochs is None else {"epochs": epochs}),
        seed=seed,
        device=device,
        deterministic=deterministic,
    )
    step = choose(
        engine,
        make_step(plan.model, plan.problem.objectives, plan.method),
        plan.model,
        traceable=plan.traceable,
    )
    folder = _folder(out, plan, resume=resume)
    if resume and (folder / "run.json").exists():
        record = read_record(folder)
        _refuse_other(folder, record, plan)
        if record["status"] == "finished":
            return load_run(
                folder, model=None if plan.rebuildable else plan.model, device=str(plan.device)
            )
    return Trainer(plan, folder, step, progress).run()


def _folder(out: str | Path | None, plan: Plan, *, resume: bool) -> Path:
    if out is not None:
        folder = Path(out)
        try:
            there = folder.exists()
        except OSError as error:  # a name too long, a parent we may not look into
            raise RunError(f"cannot use `{folder}`: {error.strerror}; choose another --out") from (
                error
            )
        if there and not resume:
            raise RunError(
                f"`{folder}` exists; choose another --out, or continue the run in it with --resume"
            )
        if there and not folder.is_dir():
            raise RunError(f"`{folder}` is a file; choose another --out")
        return folder
    if resume:
        raise ConfigurationError("--resume needs --out, the folder of the run to continue")
    name = f"{plan.problem.name}-{plan.configuration.method.name}-{plan.seed}"
    base = Path("runs") / re.sub(r"[^\w.-]+", "-", name)
    for number in range(1, 1_000_000):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"there is no free name like `{base}`; choose one with --out")


def _refuse_other(folder: Path, record: Mapping[str, Any], plan: Plan) -> None:
    """A resumed run must be the same run."""
    differences = [
        f"{name}: {before!r} there, {now!r} now"
        for name, before, now in _differences(record, plan.configuration.to_dict())
    ]
    if differences:
        raise RunError(
            f"`{folder}` holds a run with other settings ({'; '.join(differences)}); repeat them, "
            "or choose another --out"
        )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    # the record holds more than the configuration, but inside of it every key counts
    for key in now if not prefix else dict.fromkeys([*now, *before]):
        old, value = before.get(key), now.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            yield from _differences(old, value, f"{prefix}{key}.")
        elif old != value:
            yield f"{prefix}{key}", old, value
