"""Runs: one training and its folder, written, read back and resumed."""

from importlib import import_module
from typing import TYPE_CHECKING

# Type checkers do not follow `__getattr__`, so they see plain imports.
if TYPE_CHECKING:
    from paretocosmos.runs.checkpoint import (
        TrainingState,
        checkpoint_path,
        clean_run_folder,
        find_common_epoch,
        find_flaw,
        find_newest_checkpoint,
        group_by_epoch,
        list_checkpoints,
        load_checkpoint,
        load_tensors,
        remove_other_checkpoints,
        save_checkpoint,
        save_tensors,
    )
    from paretocosmos.runs.folders import choose_folder, refuse_other, split_runs
    from paretocosmos.runs.load import load_run, problem_from_rows
    from paretocosmos.runs.provenance import get_provenance
    from paretocosmos.runs.record import begin_record, list_validation_fronts
    from paretocosmos.runs.run import Run

__all__ = [
    "Run",
    "TrainingState",
    "begin_record",
    "checkpoint_path",
    "choose_folder",
    "clean_run_folder",
    "find_common_epoch",
    "find_flaw",
    "find_newest_checkpoint",
    "get_provenance",
    "group_by_epoch",
    "list_checkpoints",
    "list_validation_fronts",
    "load_checkpoint",
    "load_run",
    "load_tensors",
    "problem_from_rows",
    "refuse_other",
    "remove_other_checkpoints",
    "save_checkpoint",
    "save_tensors",
    "split_runs",
]

# The names of each module, which `__getattr__` looks through, since the modules import torch and
# pandas, and higher ones such as `evaluation`.
_NAMES = {
    "checkpoint": (
        "TrainingState",
        "checkpoint_path",
        "clean_run_folder",
        "find_common_epoch",
        "find_flaw",
        "find_newest_checkpoint",
        "group_by_epoch",
        "list_checkpoints",
        "load_checkpoint",
        "load_tensors",
        "remove_other_checkpoints",
        "save_checkpoint",
        "save_tensors",
    ),
    "folders": ("choose_folder", "refuse_other", "split_runs"),
    "load": ("load_run", "problem_from_rows"),
    "provenance": ("get_provenance",),
    "record": ("begin_record", "list_validation_fronts"),
    "run": ("Run",),
}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: importing the package stays cheap."""
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    # the error that `hasattr` and `from ... import` expect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
