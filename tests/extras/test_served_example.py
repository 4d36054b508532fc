"""The example of a server starts one, and prints what the run itself predicts."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from examples.serve_and_ask import PERSON

from paretocosmos import load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_server_answers_as_the_run_does(tmp_path: Path) -> None:
    shown = _run("serve_and_ask.py", tmp_path)
    answers = re.findall(r"weight ([\d.]+) on equal rates: .* probability ([\d.]+)", shown)
    assert [weight for weight, _ in answers] == ["0.0", "0.5", "1.0"]
    run, person = load("adult"), pd.DataFrame([PERSON])
    for weight, chance in answers:
        (expected,) = run.predict(person, ray=[1 - float(weight), float(weight)])
        assert float(chance) == pytest.approx(expected, abs=0.006)
    assert "ended with exit code 0" in shown
