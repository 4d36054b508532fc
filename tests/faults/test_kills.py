"""A little of `python -m faults --part kills`, and that it notices what it is there for."""

from pathlib import Path

import pytest
from faults.kills import inflict

from paretocosmos.runs import TrainingState, load_checkpoint
from paretocosmos.runs import folders as resuming
from paretocosmos.training import seed_run as seed_run

# Refuses names that do not exist. Never undone: it acts in a process that ends with the test.
PATCH = pytest.MonkeyPatch()


@pytest.mark.system
def test_a_few_of_all_kinds_of_kills(tmp_path: Path) -> None:
    made = inflict(14, seed=5, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == made.answered["the same bits"] == 14
    kinds = {name.partition(":")[0] for name in made.done}
    assert kinds == {"one seed", "a table", "a stack of seeds", "compare", "reproduce"}


def from_another_seed() -> None:
    """What is continued draws other rays from there on."""

    def load(path: Path, state: TrainingState) -> None:
        load_checkpoint(path, state)
        state.generator.manual_seed(99)

    PATCH.setattr(seed_run, "load_checkpoint", load)


def without_sweeping() -> None:
    """What killed processes left stays."""
    PATCH.setattr(resuming, "clean_run_folder", lambda folder: None)


def going_on_apart() -> None:
    """Every seed of a stack goes on by itself."""
    PATCH.setattr(resuming, "group_by_epoch", lambda folders: [[at] for at in range(len(folders))])


@pytest.mark.system
@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (from_another_seed, "one seed", "other results: "),
        (without_sweeping, "one seed", "left behind: "),
        (going_on_apart, "a stack of seeds", "other results: "),
    ],
)
def test_it_notices(tmp_path: Path, spoil: object, kind: str, said: str) -> None:
    made = inflict(12, seed=2, folder=tmp_path, only=kind, spoil=spoil)  # type: ignore[arg-type]
    assert any(said in sentence for sentence in made.broken)
