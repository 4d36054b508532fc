"""Runs: one training and its folder, written, read back and resumed."""

from paretocosmos.runs.checkpoint import (
    TrainingState,
    checkpoint_path,
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
from paretocosmos.runs.load import FOLDER, MODELS, load_run, problem_from_rows
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.runs.record import (
    FORMAT,
    begin_record,
    list_validation_fronts,
    load_record,
    read_record,
)
from paretocosmos.runs.run import Run, predicts_at, to_run
