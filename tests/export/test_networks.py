"""Every conditioning in a file gives what it gives in PyTorch, for all sizes and preferences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.export import Exported, export
from paretocosmos.nn.backbones import LeNet, Mlp, Tabular
from paretocosmos.nn.conditioning import Concat, PerRayEnsemble
from paretocosmos.runs import Run

pytestmark = pytest.mark.system  # takes minutes

IMAGE = (1, 17, 19)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: Mlp((5,), 3, hidden=(7,)), (5,)),
    "tabular": (lambda: Tabular((5,), 3, hidden=(7,), members=2, knots=((-1.0, 0.0, 2.0),)), (5,)),
    "lenet": (lambda: LeNet(IMAGE, {"left": 3, "right": 2}), IMAGE),
}
SUITED = {"transposed_conv": ("lenet",), "concat": ("mlp", "tabular"), "token": ()}
MOVED = "film, rank 2"  # a setting that adds operations of its own; calibrated too
ENDS = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
PAIRS = [
    (conditioning, backbone)
    for conditioning in (*registry.names("conditioning"), MOVED)
    if conditioning != "fairness_adjustment"  # which tables have, see test_table
    for backbone in SUITED.get(conditioning, tuple(NETWORKS))
]


def model_of(conditioning: str, backbone: str, objectives: int = 2) -> nn.Module:
    network = NETWORKS[backbone][0]()
    spec = (
        registry.Spec(conditioning) if conditioning != MOVED else registry.Spec("film", {"rank": 2})
    )
    built: nn.Module = registry.build("conditioning", spec, backbone=network, objectives=objectives)
    for parameter in built.parameters():
        if not parameter.any():  # what starts at zero would do nothing
            nn.init.normal_(parameter, std=0.3)
    if conditioning == MOVED:
        built.calibrate(ENDS)
    return built


def in_onnx(path: Path, x: Tensor, preference: Tensor) -> dict[str, np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(str(path))
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {"x": x.numpy(), "preference": preference.numpy()})
    return dict(zip(names, found, strict=True))


def expected(run: Run, x: Tensor, preference: Tensor) -> dict[str, Tensor]:
    """Row by row, each with its own ray: the plainest way there is."""
    rays = preference.expand(len(x), -1)
    with torch.no_grad():
        rows = [run.model(x[at : at + 1], rays[at]) for at in range(len(x))]
    named = [row if isinstance(row, dict) else {"logits": row} for row in rows]
    return {name: torch.cat([row[name] for row in named]) for name in named[0]}


def agree(found: dict[str, np.ndarray[Any, Any]], wanted: dict[str, Tensor]) -> None:
    assert list(found) == list(wanted)
    for name, output in wanted.items():
        np.testing.assert_allclose(found[name], output.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("conditioning", "backbone"), PAIRS)
def test_onnx(conditioning: str, backbone: str, run_of: Callable[..., Run]) -> None:
    shape = NETWORKS[backbone][1]
    run = run_of(model_of(conditioning, backbone), input_shape=shape)
    made = export(run)
    assert 0 <= made.difference <= 1e-5
    one_only = conditioning == "hypernet" and backbone != "mlp"
    assert made.preference.startswith("one for all rows")
    assert ("[N, 2]" in made.preference) is not one_only
    session = onnxruntime.InferenceSession(str(made.path))
    sizes = {node.name: node.shape[0] for node in session.get_inputs()}
    assert sizes == {"x": "rows", "preference": 1 if one_only else "preferences"}
    assert {node.shape[0] for node in session.get_outputs()} == {"rows"}
    for rows, rays in ((1, 1), (6, 1), (6, 6), (4, 4)):
        if rays > 1 and one_only:
            continue
        x, preference = torch.randn(rows, *shape), torch.rand(rays, 2)
        agree(in_onnx(made.path, x, preference), expected(run, x, preference))


def test_three_objectives_and_float64(run_of: Callable[..., Run]) -> None:
    run = run_of(model_of("concat", "mlp", 3).double(), objectives=3)
    made = export(run)
    x, preference = torch.randn(6, 5), torch.rand(6, 3)
    found = in_onnx(made.path, x, preference)
    agree(found, expected(run, x.double(), preference.double()))
    assert found["logits"].dtype == np.float32
    assert next(run.model.parameters()).dtype == torch.float64  # the run's own is left alone


def test_groups_of_rows_may_share_preferences_and_no_rows_give_no_outputs(
    run_of: Callable[..., Run],
) -> None:
    run = run_of(model_of("concat", "mlp"))
    path = export(run).path
    x, preference = torch.randn(6, 5), torch.rand(3, 2)
    found = in_onnx(path, x, preference)
    agree(found, expected(run, x, preference.repeat_interleave(2, dim=0)))
    assert in_onnx(path, torch.randn(0, 5), torch.rand(1, 2))["logits"].shape == (0, 3)


class Own(nn.Module):
    """A network of one's own: a ray for the batch or one per sample, but no groups."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(7, 2)

    def forward(self, x: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([x, ray.expand(x.shape[0], -1)], dim=1)
        out: Tensor = self.layer(joined)
        return out[:, :1], out[:, 1:]


def test_a_network_of_ones_own(run_of: Callable[..., Run]) -> None:
    run = run_of(Own())
    made = export(run)
    for rays in (1, 6):
        x, preference = torch.randn(6, 5), torch.rand(rays, 2)
        with torch.no_grad():
            wanted = run.model(x, preference)
        agree(in_onnx(made.path, x, preference), {"0": wanted[0], "1": wanted[1]})


class Mapped(nn.Module):
    """A network that eats a mapping."""

    def forward(self, inputs: dict[str, Tensor], ray: Tensor) -> Tensor:
        return inputs["ids"] * ray[0]


class Undecided(nn.Module):
    """A network that looks at its numbers."""

    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        return x if float(x.sum()) > 0 else -x


class Rare(nn.Module):
    """A network with an operator that ONNX has not."""

    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        return torch.special.bessel_j0(x)


def test_networks_that_are_refused(run_of: Callable[..., Run], tmp_path: Path) -> None:
    several = PerRayEnsemble([Concat(nn.Linear(5, 1), 2)] * 3, torch.rand(3, 2))
    with pytest.raises(ConfigurationError, match="each of 3 rays"):
        export(run_of(several))
    with pytest.raises(ConfigurationError, match=r"tensor.*\[N, 5\]"):
        export(run_of(Mapped()))
    with pytest.raises(RunError, match=r"torch\.export cannot follow"):
        export(run_of(Undecided()))
    with pytest.raises(RunError, match=r"ONNX \(.*bessel.*torch\.export"):
        export(run_of(Rare()))
    assert not list(tmp_path.rglob("*model*"))


def test_a_file_that_differs_is_removed(
    run_of: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = run_of(model_of("concat", "mlp"))
    made: Exported = export(run)
    before = made.path.read_bytes()
    # as if a runtime were less precise than allowed
    monkeypatch.setattr("paretocosmos.export.formats.TOLERANCE", -1.0)
    with pytest.raises(RunError, match="differs from PyTorch"):
        export(run)
    with pytest.raises(RunError, match="so it was removed"):
        export(run, out=tmp_path / "other.onnx")
    assert made.path.read_bytes() == before  # the last good one stands
    assert sorted(path.name for path in made.path.parent.iterdir()) == [
        "model.onnx",
        "model.onnx.md",
    ]
    assert not (tmp_path / "other.onnx").exists()
