"""CelebA from files to tensors, in every layout."""

import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import accuracy_score, roc_auc_score
from torch import Tensor

from paretocosmos.config.settings import get_paper_settings
from paretocosmos.errors import BenchmarkWarning, DataError
from paretocosmos.problems import SPLITS, load_problem
from paretocosmos.problems.faces.problem import (
    celeba,
    celeba_easy,
    celeba_four,
    celeba_hard,
    celeba_ten,
    celeba_three,
)
from paretocosmos.problems.images import ImageProblem

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")

RAW = Path(__file__).parents[3] / "shared" / "data"
Load = Callable[..., ImageProblem]
LOCAL = [0, 1, 2, 0, 0, 1, 1, 0, 2, 2, 2, 0, 0]


def inputs(problem: ImageProblem) -> list[Tensor]:
    every = [problem.split(name).inputs for name in SPLITS]
    assert all(isinstance(part, Tensor) for part in every)
    return [torch.as_tensor(part) for part in every]


def targets(problem: ImageProblem, attribute: str) -> list[list[float]]:
    return [problem.split(name).targets[attribute].tolist() for name in SPLITS]


# Layouts: what to lay down below a data folder; each must give the same problem.


def _official(small: "SmallCeleba", data: Path) -> None:
    small.official(data)


def _below(small: "SmallCeleba", data: Path) -> None:
    small.official(data / "CelebA")


def _torchvision(small: "SmallCeleba", data: Path) -> None:
    small.folder(data / "celeba" / "img_align_celeba")
    small.zip(data / "celeba" / "img_align_celeba.zip")  # it leaves the zip it unpacked
    small.attributes(data / "celeba" / "list_attr_celeba.txt")
    small.partition(data / "celeba" / "list_eval_partition.txt")


def _kaggle(small: "SmallCeleba", data: Path) -> None:
    small.folder(data / "img_align_celeba" / "img_align_celeba")
    small.attributes(data / "list_attr_celeba.csv")
    small.partition(data / "list_eval_partition.csv")


def _zip(small: "SmallCeleba", data: Path) -> None:
    (data / "Img" / "img_align_celeba").mkdir(parents=True)  # empty: somebody gave up unpacking
    small.zip(data / "Img" / "img_align_celeba.zip")
    small.attributes(data / "Anno" / "list_attr_celeba.txt")


def _tar(small: "SmallCeleba", data: Path) -> None:
    small.tar(data / "celeba" / "img_align_celeba.tar", inner="")
    small.attributes(data / "celeba" / "list_attr_celeba.csv.gz")


def _packed_tar(small: "SmallCeleba", data: Path) -> None:
    small.tar(data / "img_align_celeba.tar.gz", inner="somewhere/else/")
    small.attributes(data / "list_attr_celeba.txt")
    small.partition(data / "list_eval_partition.csv.gz")


def _meta(small: "SmallCeleba", data: Path) -> None:
    small.tar(data / "celeba" / "img_align_celeba_64.tar.gz", inner="")
    small.meta(data / "celeba" / "celeba_meta.npz", [0] * 6 + [1] * 3 + [2] * 4)


LAYOUTS = [_official, _below, _torchvision, _kaggle, _zip, _tar, _packed_tar, _meta]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__[1:])
def test_every_layout(
    layout: Callable[..., None],
    small: "SmallCeleba",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = tmp_path / "data"
    layout(small, data)
    problem = celeba_easy(data=str(data), size=16)
    assert problem.input_shape == (3, 16, 16)
    assert problem.outputs == {"Goatee": 1, "Mustache": 1}
    assert problem.names == ("Goatee", "Mustache")
    assert problem.reference == (2.0, 2.0)
    assert [len(problem.split(name)) for name in SPLITS] == [6, 3, 4]
    for attribute, column in (("Goatee", 16), ("Mustache", 22)):
        found = [value for part in targets(problem, attribute) for value in part]
        assert found == small.labels[:, column].tolist()
    # the pictures by hand: 45 x 55 becomes 16 x 19, of which rows 2 to 17 stay
    for pixels, number in zip(torch.cat(inputs(problem)), small.numbers, strict=True):
        image = Image.open(io.BytesIO(small.pictures[number]))
        expected = np.asarray(image.resize((16, 19), Image.Resampling.BILINEAR))[2:18]
        np.testing.assert_array_equal(pixels.permute(1, 2, 0), expected)
    monkeypatch.setenv("PARETOCOSMOS_DATA", str(data))
    reference = small.official(tmp_path / "reference")
    assert celeba_easy(size=16).sha256 == celeba_easy(data=str(reference), size=16).sha256


def test_the_cache_is_looked_into_as_well(small: "SmallCeleba", tmp_path: Path) -> None:
    small.official(tmp_path / "cache" / "paretocosmos" / "celeba")
    assert len(celeba_hard(size=8).split("train")) == 6


def test_meta_goes_with_its_own_pictures(small: "SmallCeleba", tmp_path: Path) -> None:
    """As in a folder with both: the list of all, and the small pictures with their own list."""
    data = tmp_path / "data"
    small.tar(data / "img_align_celeba_64.tar.gz")
    small.meta(data / "celeba_meta.npz", LOCAL)
    lists = type(small)(numbers=(*small.numbers, 4, 5))
    lists.attributes(data / "list_attr_celeba.csv.gz")
    assert [len(celeba_easy(data=str(data), size=8).split(name)) for name in SPLITS] == [6, 3, 4]
    assert "by the local partition of celeba_meta.npz" in celeba_easy(data=str(data)).images
    official = celeba_easy(data=str(data), size=8, partition="official")
    assert targets(official, "Goatee") != targets(celeba_easy(data=str(data), size=8), "Goatee")
    # beside the published pictures it is of no use
    lists.folder(data / "img_align_celeba")
    assert len(celeba_easy(data=str(data), size=8).split("train")) == 8


def test_prepare(small: "SmallCeleba", tmp_path: Path) -> None:
    problem = celeba_easy(data=str(small.official(tmp_path / "data")), size=16)
    kept = torch.arange(256, dtype=torch.uint8)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        ready = problem.prepare(kept, dtype)
        assert isinstance(ready, Tensor)
        assert ready.dtype == dtype
        assert (float(ready[0]), float(ready[-1])) == (-1, 1)
    # the paper's words: scaled to [0, 1], mean 0.5 taken away, divided by 0.5
    expected = (np.arange(256) / 255 - 0.5) / 0.5
    for dtype, slack in ((torch.float64, 1e-15), (torch.float32, 2e-7)):
        ready = torch.as_tensor(problem.prepare(kept, dtype))
        np.testing.assert_allclose(ready.numpy(), expected, atol=slack)


def test_views_of_one_mapping(small: "SmallCeleba", tmp_path: Path) -> None:
    data = str(small.official(tmp_path / "data"))
    parts = inputs(celeba_easy(data=data, size=16))
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    before = parts[0].clone()
    parts[0].zero_()  # nobody should, but it stays in memory
    assert torch.equal(inputs(celeba_easy(data=data, size=16))[0], before)


def test_metrics(small: "SmallCeleba", tmp_path: Path) -> None:
    data = str(small.official(tmp_path / "data"))
    problem = celeba_easy(data=data, size=8)
    assert list(problem.metrics) == [
        "misclassification",
        "accuracy_Goatee",
        "roc_auc_Goatee",
        "accuracy_Mustache",
        "roc_auc_Mustache",
    ]
    truth = problem.split("train").targets
    outputs = {head: torch.randn(6, 1) for head in problem.names}
    wrong = []
    for head in problem.names:
        chosen, score = outputs[head][:, 0] > 0, outputs[head][:, 0]
        wrong.append(1 - accuracy_score(truth[head], chosen))
        accuracy = problem.metrics[f"accuracy_{head}"](outputs, truth)
        assert float(accuracy) == pytest.approx(1 - wrong[-1])
        area = problem.metrics[f"roc_auc_{head}"](outputs, truth)
        assert float(area) == pytest.approx(roc_auc_score(truth[head], score))
    mean = problem.metrics["misclassification"](outputs, truth)
    assert float(mean) == pytest.approx(sum(wrong) / 2)
    # over batches of 256 an area would often lack a class
    paper = celeba_easy(data=data, size=8, protocol="paper")
    assert not [name for name in paper.metrics if "roc" in name]


def test_what_is_said_of_it(small: "SmallCeleba", tmp_path: Path) -> None:
    data = str(small.official(tmp_path / "data"))
    with pytest.warns(BenchmarkWarning) as said:
        problem = load_problem(
            "celeba", data=data, settings={"attributes": "oval face, SMILING,5-o-clock_shadow"}
        )
    assert [str(one.message) for one in said] == [f"`celeba`: {problem.caveats[0]}"]
    assert isinstance(problem, ImageProblem)
    assert problem.names == ("Oval_Face", "Smiling", "5_o_Clock_Shadow")
    assert problem.reference == (2.0, 2.0, 2.0)
    assert problem.about["images"] == (
        "13 of CelebA's 202,599 faces at 64 x 64 by the official partition (6, 3, 4)"
    )
    (caveat,) = problem.caveats
    assert caveat.startswith("13 of CelebA's 202,599 pictures, by the official partition: compare")
    assert json.loads(json.dumps(dict(problem.about)))["sha256"] == problem.sha256
    sums = {
        celeba(data=data, **changes).sha256
        for changes in ({}, {"size": 16}, {"attributes": ("Mustache", "Goatee")})
    }
    assert len(sums) == 3


@pytest.mark.parametrize(
    ("load", "columns"),
    [
        # FACTS.md, section 2
        (celeba_easy, (16, 22)),
        (celeba_hard, (25, 27)),
        (celeba_three, (16, 22, 24)),
        (celeba_four, (16, 22, 24, 26)),
        (celeba_ten, (8, 36, 4, 16, 7, 31, 28, 30, 24, 13)),
    ],
)
def test_the_papers_tasks(
    load: Load, columns: tuple[int, ...], small: "SmallCeleba", tmp_path: Path
) -> None:
    problem = load(data=str(small.official(tmp_path / "data")), size=8)
    found = [[value for part in targets(problem, name) for value in part] for name in problem.names]
    assert found == [small.labels[:, column].tolist() for column in columns]
    assert problem.reference == (2.0,) * len(columns)
    # FACTS.md: lr 5e-4, batch 32, 25 epochs (ten tasks: 30), no schedule, 25 rays, λ 3, alpha 1
    assert get_paper_settings(problem.name, "linear") == {
        "epochs": 30 if len(columns) == 10 else 25,
        "batch_size": 32,
        "learning_rate": 5e-4,
        "milestones": [],
        "evaluate_every": 5,
        "rays": 25,
        "reference": [2.0] * len(columns),
    }
    own = get_paper_settings(problem.name, "cosmos")
    assert (own["penalty"], own["alpha"]) == (3.0, 1.0)


@pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")
class TestReal:
    @pytest.fixture(autouse=True)
    def _cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield
        shutil.rmtree(tmp_path / "cache")  # 200 MB that nobody would read again

    @pytest.mark.system
    def test_the_subset_and_the_originals(self, tmp_path: Path) -> None:
        problem = celeba_easy(data=str(RAW))
        # its README's counts
        assert [len(problem.split(name)) for name in SPLITS] == [11_002, 1_574, 3_147]
        positives = [[sum(part) for part in targets(problem, h)] for h in ("Goatee", "Mustache")]
        assert positives == [[702, 82, 152], [491, 74, 141]]
        assert problem.caveats[0].startswith("15,723 of CelebA's 202,599 pictures, by the local")
        # 120 of them as published, at 178 x 218, with the list of all
        data = tmp_path / "data"
        data.mkdir()
        published = RAW / "celeba" / "img_align_celeba_sample.tar"
        (data / "img_align_celeba.tar").symlink_to(published)
        (data / "list_attr_celeba.csv.gz").symlink_to(RAW / "celeba" / "list_attr_celeba.csv.gz")
        with pytest.raises(DataError, match=r"202,479 missing, 000001.jpg the first"):
            celeba_easy(data=str(data))
        with np.load(RAW / "celeba" / "celeba_meta.npz") as meta:
            numbers, local = meta["image_id"], meta["split_local"]
        numbers = numbers[np.lexsort((numbers, local))]  # train, val, test, each by number
        sample = _members(published)
        parts = {number: place % 3 for place, number in enumerate(sample)}
        lines = [f"{number:06d}.jpg {part}\n" for number, part in parts.items()]
        (data / "list_eval_partition.txt").write_text("".join(lines))
        originals = celeba_easy(data=str(data))
        assert [len(originals.split(name)) for name in SPLITS] == [40, 40, 40]
        assert originals.input_shape == (3, 64, 64)
        big = torch.cat(inputs(originals)).int()
        wanted = sorted(sample, key=lambda number: (parts[number], number))
        rows = [int(np.flatnonzero(numbers == number)[0]) for number in wanted]
        small = torch.cat(inputs(problem))[rows].int()
        # the small ones were once more packed as JPEG: two grey levels apart, not a shift of pixels
        apart = (big - small).abs().double().mean((1, 2, 3))
        assert float(apart.max()) < 3
        shifted = (big[..., 1:] - small[..., :-1]).abs().double().mean((1, 2, 3))
        assert bool((apart < shifted / 1.5).all())
        for head in originals.names:
            labels = torch.cat([problem.split(name).targets[head] for name in SPLITS])[rows]
            found = torch.cat([originals.split(name).targets[head] for name in SPLITS])
            assert torch.equal(found, labels)


def _members(path: Path) -> list[int]:
    with tarfile.open(path) as archive:
        return [int(name.removesuffix(".jpg")) for name in archive.getnames()]
