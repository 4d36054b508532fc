"""What every problem promises, over every registered problem."""

import math
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.func import vmap

from paretocosmos.errors import BenchmarkWarning, ConfigurationError
from paretocosmos.problems import SPLITS, Problem, load_problem
from paretocosmos.problems.images.celeba_files import ATTRIBUTES
from paretocosmos.registry import find as find_thing
from paretocosmos.registry import names, parameters, summary
from paretocosmos.types import Outputs, first, map_tensors

NEEDS_FILES = {"multi_mnist", "multi_fashion", "fashion_and_mnist"} | {
    name for name in names("problems") if name.startswith("celeba")
}
ROWS = "".join(f"{at % 17},{'abc'[at % 3]},{['no', 'yes'][at * 7 % 11 > 5]}\n" for at in range(300))


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.delenv("PARETOCOSMOS_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small stand-ins for MNIST, Fashion-MNIST and CelebA; `tests/problems` reads the real ones."""
    folder = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(0)
    for name in ("mnist", "fashion_mnist"):
        (folder / name).mkdir()
        for part, count in (("train", 400), ("t10k", 100)):
            images = draw.integers(0, 256, (count, 28, 28), dtype=np.uint8)
            labels = draw.integers(0, 10, count, dtype=np.uint8)
            for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
                head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
                (folder / name / f"{part}-{kind}-ubyte").write_bytes(head + array.tobytes())
    _generated_faces(folder / "celeba")
    return folder


def _generated_faces(folder: Path) -> None:
    """Noise for CelebA's faces, ten in each part of its own partition."""
    draw = np.random.default_rng(1)
    numbers = [first + at for first in (1, 170_000, 200_000) for at in range(10)]
    (folder / "img_align_celeba").mkdir(parents=True)
    lines = [str(len(numbers)), " ".join(ATTRIBUTES)]
    signs = draw.choice([-1, 1], 40)
    for number in numbers:
        noise = Image.fromarray(draw.integers(0, 256, (80, 70, 3), dtype=np.uint8))
        noise.save(folder / "img_align_celeba" / f"{number:06d}.jpg")
        signs = -signs  # so that every attribute is there and not, in every part
        lines.append(f"{number:06d}.jpg " + " ".join(map(str, signs)))
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module", params=names("problems"))
def load(
    request: pytest.FixtureRequest, generated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Problem]:
    settings: dict[str, Any] = {}
    if request.param in NEEDS_FILES:
        settings = {"data": str(generated)}
    if request.param == "table":
        path: Path = tmp_path_factory.mktemp("csv") / "mine.csv"
        path.write_text("age,group,paid\n" + ROWS)
        settings = {"data": str(path), "target": "paid", "sensitive": "group"}

    def again(**changes: Any) -> Problem:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BenchmarkWarning)
            return load_problem(request.param, settings=settings | changes)

    return again


@pytest.fixture(scope="module")
def problem(load: Callable[[], Problem]) -> Problem:
    return load()


def random_outputs(problem: Problem, count: int, groups: int = 1) -> Outputs:
    """What a network might give ``groups`` times: a tensor, or one per head."""
    generator = torch.Generator().manual_seed(1)
    if isinstance(problem.outputs, int):
        return torch.randn(groups, count, problem.outputs, generator=generator)
    return {
        head: torch.randn(groups, count, width, generator=generator)
        for head, width in problem.outputs.items()
    }


def test_splits(problem: Problem) -> None:
    for name in SPLITS:
        batch = problem.split(name)
        assert len(batch) > 0
        assert isinstance(batch.inputs, Tensor)
        assert batch.inputs.shape == (len(batch), *problem.input_shape)
        assert batch.inputs.device.type == "cpu"
        assert bool(torch.isfinite(batch.inputs).all())
        assert all(len(target) == len(batch) for target in batch.targets.values())
    with pytest.raises(ConfigurationError, match="unknown split"):
        problem.split("all")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_a_network_eats(problem: Problem, dtype: torch.dtype) -> None:
    for name in SPLITS:
        kept = map_tensors(lambda part: part[:300], problem.split(name).inputs)
        before = map_tensors(torch.clone, kept)
        ready = first(problem.prepare(kept, dtype))
        assert ready.dtype == dtype
        assert ready.shape == (min(300, len(problem.split(name))), *problem.input_shape)
        assert bool(torch.isfinite(ready).all())
        assert float(ready.abs().mean()) < 10  # scaled: bytes as they are would not train
        assert torch.equal(first(kept), first(before))


def test_names(problem: Problem) -> None:
    # a table is called like its file
    assert problem.name == ("mine" if problem.spec.name == "table" else problem.spec.name)
    every = [*problem.names, *problem.metrics]
    assert len(set(every)) == len(every)
    assert len(problem.names) >= 2
    assert len(problem.reference) == len(problem.objectives)
    assert problem.protocol == "clean"


def test_losses_scores_and_metrics_are_numbers(problem: Problem) -> None:
    for name in SPLITS:
        batch = problem.split(name)
        outputs = map_tensors(lambda out: out[0], random_outputs(problem, len(batch)))
        scored = [o.score for o in problem.objectives] + list(problem.metrics.values())
        for function in [o.loss for o in problem.objectives] + scored:
            value = function(outputs, batch.targets)
            assert value.shape == ()
            assert math.isfinite(value)


def test_losses_are_differentiable_and_vmappable(problem: Problem) -> None:
    targets = problem.split("val").targets
    many = random_outputs(problem, len(problem.split("val")), groups=3)
    outputs = map_tensors(lambda out: out.requires_grad_(), many)
    groups = [map_tensors(lambda out, g=g: out[g], outputs) for g in range(3)]
    for objective in problem.objectives:
        together = vmap(lambda one, o=objective: o.loss(one, targets))(outputs)
        alone = torch.stack([objective.loss(one, targets) for one in groups])
        torch.testing.assert_close(together, alone)
        leaf = outputs if isinstance(outputs, Tensor) else outputs[objective.output]
        (slope,) = torch.autograd.grad(together.sum(), leaf)
        assert bool(torch.isfinite(slope).all())
        assert bool(slope.any())
    for metric in [o.score for o in problem.objectives] + list(problem.metrics.values()):
        together = vmap(lambda one, m=metric: m(one, targets))(outputs)
        alone = torch.stack([metric(one, targets) for one in groups])
        torch.testing.assert_close(together, alone)


def test_loading_again_gives_the_same(problem: Problem, load: Callable[[], Problem]) -> None:
    again = load()
    assert again.spec == problem.spec
    for name in SPLITS:
        one, two = problem.split(name), again.split(name)
        assert torch.equal(torch.as_tensor(one.inputs), torch.as_tensor(two.inputs))
        assert one.targets.keys() == two.targets.keys()
        assert all(torch.equal(one.targets[key], two.targets[key]) for key in one.targets)


def test_the_paper_protocol(load: Callable[..., Problem]) -> None:
    paper = load(protocol="paper")
    assert (paper.protocol, paper.score_batch) == ("paper", 256)


def test_settings_are_keyword_only_and_said_in_one_line(problem: Problem) -> None:
    thing = find_thing("problems", problem.spec.name)
    assert set(parameters(thing)) == set(problem.spec.settings)
    assert 20 < len(summary("problems", problem.spec.name)) < 100
