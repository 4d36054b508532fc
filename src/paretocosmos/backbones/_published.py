"""Published weights: where they may be, and how they get into a network."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.io.paths import folders, user_path
from paretocosmos.runtime.weights import describe_misfit

FILES = ("model.safetensors", "pytorch_model.bin")
PATIENCE = 4.0  # seconds for the hub to answer; its own client would try for half a minute


def find_published(hub: str) -> tuple[str, Path]:
    """Where weights are, and their file: a data folder, the hub's cache, or downloaded from it.

    Args:
        hub: their name there, ``owner/name``; a data folder has them below ``name``.

    Raises:
        DataError: where they are not, without a way out: the caller may do without them.
    """
    places = [folder / hub.rpartition("/")[2] for folder in folders()]
    for place in places:
        file = _in_folder(place)
        if file is not None:
            return str(place), file
    try:
        return hub, _from_hub(hub)
    except DataError as error:
        looked = ", ".join(f"`{place}`" for place in places)
        raise DataError(f"not in {looked}; {error}") from error


def named(weights: str) -> Path:
    """The file of weights that are named: a folder, or ``owner/name`` on the hub."""
    place = user_path(weights)
    file = _in_folder(place)
    if file is not None:
        return file
    if place.is_dir():
        raise DataError(f"`weights` must be a folder with {_files()}, found neither in `{place}`")
    try:
        return _from_hub(weights)
    except DataError as error:
        raise DataError(
            f"`weights` must be auto, random, a folder with {_files()}, or a name on the hub, "
            f"found `{weights}`, which is not a folder and {error}"
        ) from error


def load_published(network: nn.Module, file: Path, *, prefix: str) -> None:
    """Load a file into the network it was made for.

    Args:
        network: all of its weights and statistics must be there.
        file: one of `FILES`.
        prefix: what the names start with where the file is of a whole classifier; the rest of the
            classifier is left out.
    """
    try:
        found = _read(file)
    except Exception as error:  # whatever its reader says of a damaged file
        raise DataError(
            f"`{file}` cannot be read ({one_line(error)}): the file is damaged, or does not "
            "contain weights"
        ) from error
    inside = {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}
    weights = inside or found
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"the weights in `{file}` do not fit this network: "
            f"{describe_misfit(network, weights, error)}; choose other weights, or another "
            "`variant`"
        ) from error


def _read(file: Path) -> Mapping[str, Tensor]:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        tensors: Mapping[str, Tensor] = load_file(file)
        return tensors
    # tensors only: what else a pickle may hold is refused
    loaded: Mapping[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    return loaded


def _in_folder(place: Path) -> Path | None:
    return next((place / name for name in FILES if (place / name).is_file()), None)


def _files() -> str:
    return " or ".join(f"`{name}`" for name in FILES)


def _from_hub(name: str) -> Path:
    """The file in the hub's cache, else downloaded into it."""
    import huggingface_hub

    def get(*, local: bool) -> Path:
        try:
            return Path(huggingface_hub.hf_hub_download(name, FILES[0], local_files_only=local))
        except huggingface_hub.errors.EntryNotFoundError:
            return Path(huggingface_hub.hf_hub_download(name, FILES[1], local_files_only=local))

    try:
        return get(local=True)
    except ValueError as error:  # not even a name
        raise DataError(f"not a name on the hub ({one_line(error)})") from error
    except OSError:
        pass
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        raise DataError(f"`{name}` is not in the hub's cache and HF_HUB_OFFLINE is set")
    try:
        _ask(huggingface_hub.hf_hub_url(name, FILES[0]))
        return get(local=False)
    except Exception as error:  # the hub, its client and the network raise many kinds
        raise DataError(
            f"`{name}` cannot be downloaded from the hub ({one_line(error)})"
        ) from error


def _ask(address: str) -> None:
    """Whether there is an answer at all, whatever it is."""
    question = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(question, timeout=PATIENCE):
            pass
    except urllib.error.HTTPError as answer:
        answer.close()
