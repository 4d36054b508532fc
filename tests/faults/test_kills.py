"""A little of `python -m faults --part kills`, and that it notices what it is there for."""

from pathlib import Path

import pytest
from faults.kills import inflict

from paretocosmos.training import seed_run as seed_run


@pytest.mark.system
def test_a_few_of_all_kinds_of_kills(tmp_path: Path) -> None:
    made = inflict(14, seed=5, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == made.answered["the same bits"] == 14
    kinds = {name.partition(":")[0] for name in made.done}
    assert kinds == {"one seed", "a table", "a stack of seeds", "compare", "reproduce"}
