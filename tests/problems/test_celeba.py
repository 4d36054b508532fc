"""CelebA from files to tensors: layouts, tasks, refusals, and the cache of decoded pictures."""

import importlib.util
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from sklearn.metrics import accuracy_score, roc_auc_score
from torch import Tensor

from paretocosmos.config.settings import get_paper_settings
from paretocosmos.errors import ConfigurationError, DataError, MissingExtraError
from paretocosmos.problems import SPLITS, load_problem
from paretocosmos.problems.images.celeba_files import ATTRIBUTES, decode_picture, load_pictures
from paretocosmos.problems.images.problem import ImageProblem

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")

ROOT = Path(__file__).parents[2]
RAW = ROOT.parent / "shared" / "data" / "celeba"


def load(data: Path | None, name: str = "celeba_easy", **settings: Any) -> ImageProblem:
    place = None if data is None else str(data)
    problem = load_problem(name, data=place, settings={"size": 16} | settings)
    assert isinstance(problem, ImageProblem)
    return problem


def pixels_of(problem: ImageProblem) -> Tensor:
    return torch.cat([torch.as_tensor(problem.split(name).inputs) for name in SPLITS])


def labels_of(problem: ImageProblem, attribute: str) -> list[float]:
    parts = [problem.split(name).targets[attribute] for name in SPLITS]
    return [float(label) for label in torch.cat(parts)]


def counts_of(problem: ImageProblem) -> list[int]:
    return [len(problem.split(name)) for name in SPLITS]


@pytest.mark.parametrize("layout", ["published", "torchvision", "without a partition"])
def test_layouts(
    layout: str, small: "SmallCeleba", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    if layout == "published":
        small.write_published(data / "CelebA")
    else:
        small.write_pictures(data / "celeba" / "img_align_celeba")
        small.write_labels(data / "celeba" / "list_attr_celeba.txt")
    if layout == "torchvision":
        small.write_partition(data / "celeba" / "list_eval_partition.txt")
    problem = load(data)
    assert problem.input_shape == (3, 16, 16)
    assert problem.outputs == {"Goatee": 1, "Mustache": 1}
    assert counts_of(problem) == [6, 3, 4]
    for attribute, column in (("Goatee", 16), ("Mustache", 22)):
        assert labels_of(problem, attribute) == small.labels[:, column].tolist()
    # the pictures by hand: 45 x 55 becomes 16 x 19, of which rows 2 to 17 stay
    for pixels, content in zip(pixels_of(problem), small.pictures.values(), strict=True):
        image = Image.open(io.BytesIO(content))
        expected = np.asarray(image.resize((16, 19), Image.Resampling.BILINEAR))[2:18]
        np.testing.assert_array_equal(pixels.permute(1, 2, 0), expected)
    # the variable's folder, then the cache
    monkeypatch.setenv("PARETOCOSMOS_DATA", str(data))
    assert load(None).sha256 == problem.sha256
    monkeypatch.delenv("PARETOCOSMOS_DATA")
    small.write_published(tmp_path / "cache" / "paretocosmos" / "celeba")
    assert load(None).sha256 == problem.sha256


def test_a_partition_of_ones_own(small: "SmallCeleba", tmp_path: Path) -> None:
    """Parts come first, then numbers; pictures it does not list are none, and need not exist."""
    for number in (10, 170_000):
        del small.pictures[number]
    data = small.write_published(tmp_path / "data")
    with pytest.raises(DataError, match=r"2 missing, 000010\.jpg the first.*list_eval_partition"):
        load(data)
    partition = data / "Eval" / "list_eval_partition.txt"
    small.write_partition(partition, {77: 1, 1: 2, 3: 0, 202_599: 0, 2: 0, 999: 1})
    problem = load(data)
    assert counts_of(problem) == [3, 1, 1]
    numbers = list(small.labels[[1, 2, 12, 4, 0], 16])
    assert labels_of(problem, "Goatee") == numbers
    assert problem.caveats[0].startswith(
        "5 of CelebA's 202,599 pictures, by the partition of list_eval_partition.txt"
    )
    small.write_partition(partition, {1: 0, 2: 0})
    with pytest.raises(DataError, match=r"none for val and test among 2.*000001\.jpg 0"):
        load(data)
    small.write_partition(partition, {1: 0, 2: 3})
    with pytest.raises(DataError, match=r"list_eval_partition\.txt` must say 0, 1 or 2"):
        load(data)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("13", "14", "as its first line says, found 13"),
        ("Goatee", "Goat", "40 attributes"),
        ("000002.jpg", "two.jpg", "names such as 000001.jpg"),
        ("000077.jpg", "", "names such as 000001.jpg"),
    ],
)
def test_a_damaged_list(
    old: str, new: str, says: str, small: "SmallCeleba", tmp_path: Path
) -> None:
    path = small.write_published(tmp_path) / "Anno" / "list_attr_celeba.txt"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=rf"list_attr_celeba\.txt` .*{says}.*fresh copy"):
        load(tmp_path)


@pytest.mark.parametrize("how", ["cut", "empty", "no picture"])
def test_a_damaged_picture(how: str, small: "SmallCeleba", tmp_path: Path) -> None:
    content = small.pictures[170_000]
    small.pictures[170_000] = {"cut": content[:-400], "empty": b""}.get(how, b"GIF?" * 99)
    data = small.write_published(tmp_path / "data")
    reason = "truncated" if how == "cut" else "no picture"
    for _ in range(2):
        with pytest.raises(DataError, match=rf"170000\.jpg` cannot be decoded \(.*{reason}"):
            load(data)
    assert not list((tmp_path / "cache").rglob("*.*"))


def test_nowhere(small: "SmallCeleba", tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        load(None)
    cache = tmp_path / "cache" / "paretocosmos"
    for part in ("Img/", "Anno/", "mmlab.ie.cuhk.edu.hk", f"`{cache / 'celeba'}`", "is not set"):
        assert part in str(refused.value)
    small.write_pictures(tmp_path / "other" / "img_align_celeba")
    with pytest.raises(DataError, match=f"`{tmp_path / 'other' / 'CelebA'}`"):
        load(tmp_path / "other")
    with pytest.raises(DataError, match="which does not exist"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="which is no folder"):
        load(tmp_path / "file")


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (("Goatee", "Moustache"), "`Moustache`; did you mean `Mustache`"),
        (("Goatee",), "40, each once"),
        (("Goatee", "goatee"), "each once"),
    ],
)
def test_attributes(attributes: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load(None, "celeba", attributes=attributes)


def test_prepare(small: "SmallCeleba", tmp_path: Path) -> None:
    problem = load(small.write_published(tmp_path))
    stored = torch.arange(256, dtype=torch.uint8)
    # the paper's words: scaled to [0, 1], mean 0.5 taken away, divided by 0.5
    expected = (np.arange(256) / 255 - 0.5) / 0.5
    for dtype, slack in ((torch.float64, 1e-15), (torch.float32, 2e-7)):
        ready = torch.as_tensor(problem.prepare(stored, dtype))
        assert ready.dtype == dtype
        np.testing.assert_allclose(ready.numpy(), expected, atol=slack)


def test_metrics(small: "SmallCeleba", tmp_path: Path) -> None:
    problem = load(small.write_published(tmp_path))
    truth = problem.split("train").targets
    outputs = {head: torch.randn(6, 1) for head in problem.names}
    wrong = []
    for head in problem.names:
        score = outputs[head][:, 0]
        wrong.append(1 - accuracy_score(truth[head], score > 0))
        accuracy = problem.metrics[f"accuracy_{head}"](outputs, truth)
        assert float(accuracy) == pytest.approx(1 - wrong[-1])
        area = problem.metrics[f"roc_auc_{head}"](outputs, truth)
        assert float(area) == pytest.approx(roc_auc_score(truth[head], score))
    mean = problem.metrics["misclassification"](outputs, truth)
    assert float(mean) == pytest.approx(sum(wrong) / 2)
    # over batches of 256 an area would often lack a class
    assert not [name for name in load(tmp_path, protocol="paper").metrics if "roc" in name]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        # FACTS.md, section 2
        ("easy", (16, 22)),
        ("hard", (25, 27)),
        ("three", (16, 22, 24)),
        ("four", (16, 22, 24, 26)),
        ("ten", (8, 36, 4, 16, 7, 31, 28, 30, 24, 13)),
    ],
)
def test_the_papers_tasks(
    name: str, columns: tuple[int, ...], small: "SmallCeleba", tmp_path: Path
) -> None:
    problem = load(small.write_published(tmp_path), f"celeba_{name}")
    labels = [labels_of(problem, attribute) for attribute in problem.names]
    assert labels == [small.labels[:, column].tolist() for column in columns]
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
    cosmos = get_paper_settings(problem.name, "cosmos")
    assert (cosmos["penalty"], cosmos["alpha"]) == (3.0, 1.0)


class TestCache:
    def test_decoded_once(
        self, small: "SmallCeleba", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = small.write_published(tmp_path / "data")
        first = load(data)
        with monkeypatch.context() as patch:  # what is decoded needs no Pillow
            patch.setattr(importlib.util, "find_spec", lambda name: None)
            again, other = load(data), load(data, "celeba_hard")
            with pytest.raises(MissingExtraError, match=r"needs `pillow`.*paretocosmos\[images"):
                load(data, size=17)
        assert torch.equal(pixels_of(first), pixels_of(again))
        assert torch.equal(pixels_of(first), pixels_of(other))
        # views of one mapping; changes stay in memory
        train = torch.as_tensor(first.split("train").inputs)
        test = torch.as_tensor(first.split("test").inputs)
        assert train.untyped_storage().data_ptr() == test.untyped_storage().data_ptr()
        train.zero_()
        assert torch.equal(pixels_of(load(data)), pixels_of(again))
        # a changed file is decoded anew
        (data / "Img" / "img_align_celeba" / "000077.jpg").write_bytes(small.pictures[1] + b"\0")
        changed = pixels_of(load(data))
        assert torch.equal(changed[4], changed[0])

    @pytest.mark.parametrize("damage", ["cut", "no record", "torn record", "other rows"])
    def test_an_incomplete_cache_is_made_anew(
        self, damage: str, small: "SmallCeleba", tmp_path: Path
    ) -> None:
        data = small.write_published(tmp_path / "data")
        before = pixels_of(load(data))
        (pixels,), (record,) = ((tmp_path / "cache").rglob(f"*.{end}") for end in ("npy", "json"))
        if damage == "cut":
            pixels.write_bytes(pixels.read_bytes()[:-1])
        elif damage == "no record":
            record.unlink()
        elif damage == "torn record":
            record.write_bytes(record.read_bytes()[:-5])
        else:
            np.save(pixels, before[1:].numpy())
        assert torch.equal(pixels_of(load(data)), before)

    def test_rows_come_in_the_order_asked_for(self, small: "SmallCeleba", tmp_path: Path) -> None:
        small.write_pictures(tmp_path / "pictures")
        # more than two threads read ahead
        numbers = [202_599, 1, 162_770, 3] * 200
        pixels, _ = load_pictures(tmp_path / "pictures", numbers, 8)
        for number, row in zip(numbers[-5:], pixels[-5:], strict=True):
            np.testing.assert_array_equal(row, decode_picture(small.pictures[number], 8))


def _png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Without loss, so that every grey level can be followed."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG")
    return stream.getvalue()


# The published pictures, wider than high, square, already small, to be enlarged.
@pytest.mark.parametrize("shape", [(218, 178), (90, 131), (70, 70), (64, 64), (31, 40)])
@pytest.mark.parametrize("size", [64, 48])
def test_shorter_edge_then_centre(shape: tuple[int, int], size: int) -> None:
    """Against torch's antialiased interpolation, rounded, and a crop by hand."""
    height, width = shape
    pixels = np.random.default_rng(height * width).integers(0, 256, (*shape, 3), np.uint8)
    decoded = decode_picture(_png(pixels), size)
    scale = size / min(shape)
    new = (size, int(width * scale + 1e-9)) if height <= width else (int(height * scale), size)
    original = torch.from_numpy(pixels).permute(2, 0, 1)[None].double()
    scaled = F.interpolate(original, new, mode="bilinear", antialias=True)[0]
    top, left = (round((length - size) / 2) for length in new)
    expected = scaled[:, top : top + size, left : left + size].numpy()
    # Pillow rounds after each of its two passes: half a grey level each
    assert np.abs(decoded - expected).max() <= 1.01


def test_grey_pictures_become_colour() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (80, 64), np.uint8)
    decoded = decode_picture(_png(grey), 64)
    np.testing.assert_array_equal(decoded, np.stack([grey[8:72]] * 3))


@pytest.mark.system
@pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")
def test_the_subset_of_the_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packed subset, unpacked into the published layout, is what results/celeba.json has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "celeba" / "img_align_celeba"
    with tarfile.open(RAW / "img_align_celeba_64.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    with np.load(RAW / "celeba_meta.npz") as meta:
        names = [f"{number:06d}.jpg" for number in meta["image_id"]]
        signs, parts = 2 * meta["attributes"].astype(int) - 1, meta["split_local"]
    rows = [f"{name} {' '.join(map(str, row))}" for name, row in zip(names, signs, strict=True)]
    lines = [str(len(rows)), " ".join(ATTRIBUTES), *rows]
    (tmp_path / "celeba" / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    lines = [f"{name} {part}\n" for name, part in zip(names, parts, strict=True)]
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text("".join(lines))
    problem = load(tmp_path, size=64)
    assert counts_of(problem) == [11_002, 1_574, 3_147]
    cells = json.loads((ROOT / "results" / "celeba.json").read_text())["cells"]
    assert problem.sha256 == next(c["sha256"] for c in cells if c["problem"] == "celeba_easy")
    shutil.rmtree(tmp_path)  # 300 MB that nobody would read again
