"""A little of `python -m faults --part files`, and that it notices what it is there for."""

from pathlib import Path

import pytest
from faults.files import inflict

from paretocosmos.training import seed_run as seed_run


@pytest.mark.system
def test_a_few_of_all_kinds_of_damages(tmp_path: Path) -> None:
    made = inflict(200, seed=3, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == made.answered.total() + len(made.broken) == 200
    kinds = {name.partition(":")[0] for name in made.done}
    assert {"run.json", "front.json", "table.json", "model.safetensors", "a recipe"} <= kinds
    assert made.answered["one sentence"] > 80
    assert made.answered["the right result"] > 10
