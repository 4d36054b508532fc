"""Write the folders and files that later versions must read: `python -m tests.compatibility.write`.

Those in the repository were written by 0.2. Write them anew only where reading them was given up on
purpose: what today's version writes, it reads anyway.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from safetensors.torch import save_file
from tests.compatibility.cases import (
    BEGUN,
    EXPORTED,
    FEATURES,
    FOLDER,
    RUNS,
    course_of,
    draw_people,
    few_inputs,
    load,
    outputs_at,
    problem_of,
    train,
)
from tests.resumed import stop_at

from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.export import export


def main() -> None:
    """Replace every fixture."""
    torch.set_num_threads(1)
    for name in ("runs", "begun", "onnx", "estimators", "expected"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    for name, case in RUNS.items():
        train(case, FOLDER / "runs" / name)
        shutil.rmtree(FOLDER / "runs" / name / "checkpoint")  # larger than all the rest
        inputs = few_inputs(problem_of(case))
        _expect(name, {"inputs": inputs, **outputs_at(load(name).model, inputs)})
    for name in EXPORTED:
        export(load(name), out=FOLDER / "onnx" / f"{name}.onnx").card.unlink()
    for name, case in BEGUN.items():
        with suppress(InterruptedError):
            train(case, FOLDER / "begun" / name, epochs=4, progress=stop_at(2))
        _expect(f"begun-{name}", course_of(train(case, FOLDER / "whole", epochs=4)))
        shutil.rmtree(FOLDER / "whole")
    _write_estimators()


def _write_estimators() -> None:
    people, strangers = draw_people(), draw_people(20, seed=1)
    classifier = ParetoClassifier(hidden=(4,), epochs=20, random_state=0, progress=False)
    classifier.fit(people[FEATURES], people["rich"], sensitive=people["sex"])
    classifier.save(FOLDER / "estimators" / "classifier")
    found = classifier.predict_proba(strangers[FEATURES])[:, 1]
    _expect("estimator-classifier", {"predicted": found})
    regressor = ParetoRegressor(hidden=(4,), epochs=20, random_state=0, progress=False)
    regressor.fit(people[["work", "sex"]], people["age"].fillna(40))
    regressor.save(FOLDER / "estimators" / "regressor")
    found = regressor.predict(strangers[["work", "sex"]])
    _expect("estimator-regressor", {"predicted": found})


def _expect(name: str, expected: Mapping[str, Any]) -> None:
    tensors = {key: torch.as_tensor(value).clone().contiguous() for key, value in expected.items()}
    path = FOLDER / "expected" / f"{name}.safetensors"
    path.parent.mkdir(exist_ok=True)
    save_file(tensors, path)


if __name__ == "__main__":
    main()
