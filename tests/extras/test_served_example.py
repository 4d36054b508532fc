"""The example of a server starts one, and prints what the run itself predicts."""

import re
from pathlib import Path

import pandas as pd
import pytest
from examples.serve_and_ask import PERSON
from tests.processes import run_example

from paretocosmos import load


def test_a_server_answers_as_the_run_does(tmp_path: Path) -> None:
    shown = run_example("serve_and_ask.py", tmp_path)
    answers = re.findall(r"weight ([\d.]+) on equal rates: .* probability ([\d.]+)", shown)
    assert [weight for weight, _ in answers] == ["0.0", "0.5", "1.0"]
    run, person = load("adult"), pd.DataFrame([PERSON])
    for weight, chance in answers:
        (expected,) = run.predict(person, ray=[1 - float(weight), float(weight)])
        assert float(chance) == pytest.approx(expected, abs=0.006)
    assert "ended with exit code 0" in shown
