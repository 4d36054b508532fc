"""What is refused of CelebA, what is skipped, and what the errors say."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, DataError, MissingExtraError
from paretocosmos.problems import SPLITS, Problem, load_problem
from paretocosmos.problems.faces.problem import celeba, celeba_easy

if TYPE_CHECKING:
    from tests.problems.conftest import SmallCeleba

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")


def pixels(problem: Problem) -> Tensor:
    return torch.cat([torch.as_tensor(problem.split(name).inputs) for name in SPLITS])


def labels(problem: Problem, attribute: str) -> list[float]:
    every: list[float] = []
    for name in SPLITS:
        every += problem.split(name).targets[attribute].tolist()
    return every


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (("Goatee", "Moustache"), "`Moustache`; did you mean `Mustache`"),
        (("Goatee", "oval faces"), "mean `Oval_Face`"),
        (("Goatee",), "40, each once"),
        (("Goatee", "goatee"), "each once"),
        ((), "two or more"),
    ],
)
def test_attributes(attributes: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        celeba(attributes=attributes)
    assert says in str(refused.value)


def test_settings() -> None:
    with pytest.raises(ConfigurationError, match=r"`size`.*found 0"):
        celeba_easy(size=0)
    with pytest.raises(ConfigurationError, match="unknown protocol `published`"):
        load_problem("celeba_easy", protocol="published")


def test_nowhere(small: "SmallCeleba", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(**given: str) -> str:
        with pytest.raises(DataError) as refused:
            celeba_easy(**given)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    ways = [
        *("list_attr_celeba.txt", "Img/", ".tar.gz", "mmlab.ie.cuhk.edu.hk", "`data`"),
        *("`img_align_celeba_64.tar.gz`", "`celeba_meta.npz`"),
    ]
    cache = tmp_path / "cache" / "paretocosmos"
    everywhere = said()
    for part in (*ways, f"`{cache}`", f"`{cache / 'celeba'}`", "$PARETOCOSMOS_DATA is not set"):
        assert part in everywhere
    monkeypatch.setenv("PARETOCOSMOS_DATA", str(tmp_path / "mine"))
    for part in (*ways, f"`{tmp_path / 'mine'}`", f"`{cache}`"):
        assert part in said()
    assert f"found `{tmp_path / 'other'}`, which does not exist" in said(data=f"{tmp_path}/other")
    (tmp_path / "file").touch()
    assert f"found `{tmp_path / 'file'}`, which is no folder" in said(data=f"{tmp_path}/file")
    (tmp_path / "other").mkdir()
    named = said(data=str(tmp_path / "other"))
    assert f"`{tmp_path / 'other' / 'CelebA'}`" in named
    assert str(cache) not in named
    small.folder(tmp_path / "other" / "img_align_celeba")
    assert "but no list beside it" in said(data=str(tmp_path / "other"))
    small.attributes(tmp_path / "third" / "list_attr_celeba.txt")
    assert "but no pictures beside it" in said(data=str(tmp_path / "third"))


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_missing(kind: str, small: "SmallCeleba", tmp_path: Path) -> None:
    data = tmp_path / "data"
    small.attributes(data / "list_attr_celeba.txt")
    for number in (3, 162_771, 202_599):
        del small.pictures[number]
    ending = {"folder": "", "zip": ".zip", "tar": ".tar"}[kind]
    getattr(small, kind)(data / f"img_align_celeba{ending}")
    with pytest.raises(DataError) as refused:
        celeba_easy(data=str(data), size=8)
    for part in ("3 missing, 000003.jpg the first", "list_attr_celeba.txt", "skip=True"):
        assert part in str(refused.value)
    with pytest.warns(BenchmarkWarning, match="3 .*missing and 0 damaged"):
        problem = load_problem("celeba_easy", data=str(data), settings={"skip": "true", "size": 8})
    assert [len(problem.split(name)) for name in SPLITS] == [5, 2, 3]
    assert labels(problem, "Goatee")[:5] == small.labels[[0, 1, 3, 4, 5], 16].tolist()
    assert problem.caveats[0].startswith("10 of CelebA's 202,599")
    assert problem.caveats[1] == (
        "3 of the listed pictures are missing and 0 damaged: they are left out."
    )


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize("how", ["cut", "empty", "no picture"])
def test_damaged(kind: str, how: str, small: "SmallCeleba", tmp_path: Path) -> None:
    data = tmp_path / "data"
    small.attributes(data / "list_attr_celeba.txt")
    whole = dict(small.pictures)
    for number in (2, 170_000):
        content = small.pictures[number]
        small.pictures[number] = {"cut": content[:-400], "empty": b""}.get(how, b"GIF?" * 99)
    ending = {"folder": "", "zip": ".zip", "tar": ".tar"}[kind]
    getattr(small, kind)(data / f"img_align_celeba{ending}")
    reason = {"cut": "truncated", "empty": "no bytes"}.get(how, "no picture")
    for _ in range(2):  # decoded, then from the cache
        with pytest.raises(DataError, match=rf"2 damaged, 000002\.jpg .*{reason}"):
            celeba_easy(data=str(data), size=16)
    problem = celeba_easy(data=str(data), size=16, skip=True)
    assert [len(problem.split(name)) for name in SPLITS] == [5, 2, 4]
    assert "missing and 2 damaged" in problem.caveats[1]
    # the others stay what they are, under their own labels
    small.pictures = whole
    full = celeba_easy(data=str(small.official(tmp_path / "whole")), size=16)
    keep = [n not in (2, 170_000) for n in small.numbers]
    assert torch.equal(pixels(problem), pixels(full)[keep])
    assert labels(problem, "Goatee") == small.labels[keep, 16].tolist()


def test_a_part_without_pictures(small: "SmallCeleba", tmp_path: Path) -> None:
    few = type(small)(numbers=(1, 2, 3, 4, 5))
    data = tmp_path / "data"
    few.zip(data / "img_align_celeba.zip")
    small.attributes(data / "list_attr_celeba.txt")
    with pytest.raises(DataError, match="none for val and test among 3"):
        celeba_easy(data=str(data), size=8, skip=True)
    # the way out it names, for whoever has the first pictures alone
    few.attributes(data / "list_attr_celeba.txt")
    few.partition(data / "list_eval_partition.txt", {1: 0, 2: 0, 3: 1, 4: 2})
    problem = celeba_easy(data=str(data), size=8)
    assert [len(problem.split(name)) for name in SPLITS] == [2, 1, 1]
    assert "by the partition of list_eval_partition.txt" in problem.caveats[0]


def test_none_of_the_listed(small: "SmallCeleba", tmp_path: Path) -> None:
    type(small)(numbers=(4, 5)).tar(tmp_path / "img_align_celeba.tar")
    small.attributes(tmp_path / "list_attr_celeba.txt")
    with pytest.raises(DataError, match=r"000001\.jpg, found none"):
        celeba_easy(data=str(tmp_path), size=8, skip=True)


def test_without_pillow(
    small: "SmallCeleba", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(small.official(tmp_path / "data"))
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"needs `pillow`.*paretocosmos\[images"):
            celeba_easy(data=data)
    celeba_easy(data=data)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    celeba_easy(data=data)  # what is decoded needs none
