"""Run folders that are whole, hashed, and still not what a training writes."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.strangers import change

from paretocosmos import fit, load_run
from paretocosmos.cli.train import print_run
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.nn.backbones import Tabular
from paretocosmos.runs import checkpoint


def test_a_stranger_need_not_say_how_much_is_dominated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit(
        "toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager"
    ).folder

    def edit(record: dict[str, Any]) -> None:
        for key in ("span", "dominated_share"):
            del record["metrics"]["test"][key]
        record["about"] = {"sensitive": "sex", "groups": 3}

    change(folder, edit)
    print_run(load_run(folder))
    assert "0% of 25 rays" in capsys.readouterr().out


def test_a_buffer_may_mask_with_infinity(tmp_path: Path) -> None:
    class Masked(torch.nn.Module):
        mask: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 2)
            self.register_buffer("mask", torch.tensor([0.0, float("-inf")]))

        def forward(self, inputs: torch.Tensor, ray: torch.Tensor) -> torch.Tensor:
            joined = torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1)
            return self.layer(joined) + self.mask.isfinite()

    given: dict[str, Any] = {"epochs": 1, "out": tmp_path / "run", "report": False}
    fit("toy_convex", preset="paper", model=Masked(), **given)
    assert load_run(tmp_path / "run", model=Masked()).front.names == ("first", "second")


# ---------------------------------------------------------------- paths that are no text


def test_a_folder_that_could_not_be_read_is_refused_before_training(tmp_path: Path) -> None:
    out = tmp_path / "b\udcff" / "run"
    with pytest.raises(ConfigurationError, match=r"UTF-8 text.*rename"):
        fit("toy_convex", epochs=1, out=out)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigurationError, match=r"UTF-8 text.*rename"):
        load_run(out)


def test_data_whose_path_could_not_be_recorded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"target": "a", "sensitive": "b"}
    with pytest.raises(ConfigurationError, match=r"UTF-8 text"):
        fit("b\udcff/people.csv", settings=settings, out="run")
    assert not Path("run").exists()


@pytest.mark.parametrize("handed_over", [False, True])
def test_weights_larger_than_the_network_are_refused_unread(
    handed_over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager")
    file = run.folder / "model.safetensors"
    more = {"more": torch.zeros(3_000_000)}
    save_file(load_file(file) | more, file, metadata={"paretocosmos": "{}"})
    change(run.folder, lambda record: None)
    monkeypatch.setattr(
        "paretocosmos.runs.record.hash_file", lambda _: pytest.fail("it was hashed")
    )
    monkeypatch.setattr(checkpoint, "_read_tensors", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(RunError, match="do not fit the network"):
        load_run(run.folder, model=run.model if handed_over else None)


def test_weights_of_another_network_are_refused_in_a_few_words(tmp_path: Path) -> None:
    run = fit("toy_convex", preset="paper", epochs=1, out=tmp_path / "run", engine="eager")
    file = run.folder / "model.safetensors"
    weights = load_file(file)
    first = weights.pop(next(iter(weights)))
    more = {f"{'long' * 50}.{number}": first.clone() for number in range(9)}
    save_file(weights | more, file, metadata={"paretocosmos": "{}"})
    change(run.folder, lambda record: None)
    with pytest.raises(RunError, match=r"1 missing .* and 9 that it does not have") as refused:
        load_run(run.folder)
    assert len(str(refused.value)) < 600


def test_a_wide_record_is_measured_without_memory() -> None:
    """A file says how wide a sample is, before anything tells whether there are such weights."""
    tracemalloc.start()
    try:
        with torch.device("meta"):
            network = Tabular((1 << 22,), 1, knots=((0.0, 1.0), (), (0.0, 2.0, 3.0)))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert network.embed.in_features == (1 << 22) - 2 + 1 + 2
