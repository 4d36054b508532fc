"""Published weights: found in folders, loaded into the network they belong to, or refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from paretocosmos.errors import DataError
from paretocosmos.nn.backbones.efficientnet import (
    FILES,
    find_published,
    load_published,
    locate_weights,
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The data folder and the cache."""
    monkeypatch.setenv("PARETOCOSMOS_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "mine" / "tiny", tmp_path / "cache" / "paretocosmos" / "tiny"


def _network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))


def _save(folder: Path, tensors: dict[str, Tensor], name: str = FILES[0]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    if file.suffix == ".safetensors":
        save_file(tensors, file)
    else:
        torch.save(tensors, file)
    return file


def test_the_data_folder_comes_before_the_cache(places: tuple[Path, Path]) -> None:
    for place in reversed(places):
        file = _save(place, _network().state_dict())
        assert find_published("owner/tiny") == (str(place), file)


def test_safetensors_come_before_a_pickle(tmp_path: Path) -> None:
    for name in reversed(FILES):
        file = _save(tmp_path, _network().state_dict(), name)
        assert locate_weights(str(tmp_path)) == file


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("prefix", ["", "inner."])
def test_weights_and_statistics_are_loaded_and_a_classifier_left_out(
    name: str, prefix: str, tmp_path: Path
) -> None:
    source, network = _network(), _network()
    source(torch.randn(8, 3, 5, 5))  # so that its statistics are its own
    kept = {f"{prefix}{key}": value for key, value in source.state_dict().items()}
    if prefix:
        kept["classifier.weight"] = torch.zeros(2, 4)
    load_published(network, _save(tmp_path, kept, name), prefix="inner.")
    for key, value in source.state_dict().items():
        assert torch.equal(network.state_dict()[key], value)


# Mistakes


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"`pytorch_model\.bin`.*neither"):
        locate_weights(str(tmp_path))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(b"not what it says")
    with pytest.raises(DataError, match=r"cannot be read \(.*damaged") as refused:
        load_published(_network(), file, prefix="")
    assert "\n" not in str(refused.value)


def test_a_pickle_that_holds_more_than_tensors_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / FILES[1]
    torch.save({"0.weight": Path("anything")}, file)
    with pytest.raises(DataError, match="cannot be read"):
        load_published(_network(), file, prefix="")


@pytest.mark.parametrize("change", ["other shape", "one missing"])
def test_weights_of_another_network_are_refused(change: str, tmp_path: Path) -> None:
    kept = _network().state_dict()
    if change == "one missing":
        del kept["1.running_var"]
    else:
        kept["0.weight"] = torch.zeros(5, 3, 3, 3)
    with pytest.raises(DataError, match="do not fit this network") as refused:
        load_published(_network(), _save(tmp_path, dict(kept)), prefix="")
    assert "\n" not in str(refused.value)
