"""A little of `python -m faults --part files`, and that it notices what it is there for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from faults.files import inflict

from paretocosmos.pareto import Front
from paretocosmos.runs import TrainingState, checkpoint, folders, load_checkpoint, load_tensors
from paretocosmos.runs import load as loading
from paretocosmos.training import seed_run as seed_run

# Refuses names that do not exist. Never undone: it acts in a process that ends with the test.
PATCH = pytest.MonkeyPatch()


@pytest.mark.system
def test_a_few_of_all_kinds_of_damages(tmp_path: Path) -> None:
    made = inflict(200, seed=3, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == made.answered.total() + len(made.broken) == 200
    kinds = {name.partition(":")[0] for name in made.done}
    assert {"run.json", "front.json", "table.json", "model.safetensors", "a recipe"} <= kinds
    assert made.answered["one sentence"] > 80
    assert made.answered["the right result"] > 10


def without_hashes() -> None:
    """A run is opened whatever its files hold."""
    PATCH.setattr(loading, "check_files", lambda folder, record, names=None: None)


def with_a_traceback() -> None:
    """A front that cannot be read is a `KeyError`."""

    def from_dict(content: Mapping[str, Any]) -> Front:
        return Front(**{key: content[key] for key in ("rays", "values", "names", "reference")})

    PATCH.setattr(Front, "from_dict", from_dict)


def without_a_second_checkpoint() -> None:
    """The newest is taken, and refused if it is damaged."""
    PATCH.setattr(checkpoint, "find_flaw", lambda path, epoch: None)


def without_the_hash_of_a_checkpoint() -> None:
    """What a damaged one holds is taken for what was written."""
    PATCH.setattr(checkpoint, "_compute_hash", lambda tensors, header: torch.zeros(32).byte())
    PATCH.setattr(torch, "equal", lambda one, two: True)


def without_a_run_of_its_own() -> None:
    """A training goes on with whatever checkpoint and data there are."""

    def load(path: Path, state: TrainingState) -> None:
        _, numbers = load_tensors(path)
        state.numbers["run"] = numbers["run"]
        load_checkpoint(path, state)

    PATCH.setattr(seed_run, "load_checkpoint", load)
    folders.refuse_other = lambda folder, record, plan: None


@pytest.mark.system
@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (without_a_run_of_its_own, "a checkpoint of another run", "a wrong result"),
        (without_a_run_of_its_own, "data of a run", "a wrong result"),
        (without_hashes, "front.json", "a wrong result"),
        (with_a_traceback, "front.json alone", "Error: "),
        (without_a_second_checkpoint, "the last checkpoint", "refused"),
        (without_the_hash_of_a_checkpoint, "the last checkpoint", "a wrong result"),
    ],
)
def test_it_notices(tmp_path: Path, spoil: object, kind: str, said: str) -> None:
    made = inflict(40, seed=2, folder=tmp_path, only=kind, spoil=spoil)  # type: ignore[arg-type]
    assert any(said in sentence for sentence in made.broken)
