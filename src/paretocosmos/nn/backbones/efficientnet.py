"""EfficientNet, the paper's network for faces."""

import contextlib
import math
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    WeightsWarning,
    check_choice,
    require_extra,
)
from paretocosmos.io.files import list_data_folders, one_line, user_path
from paretocosmos.nn.backbones.base import Backbone, Cut
from paretocosmos.nn.norms import Norm, with_norm
from paretocosmos.runtime.weights import describe_misfit
from paretocosmos.types import Inputs, Outputs

Variant = Literal["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"]

# Width, depth and dropout before the head, from the authors' code (Tan and Le 2019).
VARIANTS: dict[str, tuple[float, float, float]] = {
    "b0": (1.0, 1.0, 0.2),
    "b1": (1.0, 1.1, 0.2),
    "b2": (1.1, 1.2, 0.3),
    "b3": (1.2, 1.4, 0.3),
    "b4": (1.4, 1.8, 0.4),
    "b5": (1.6, 2.2, 0.4),
    "b6": (1.8, 2.6, 0.5),
    "b7": (2.0, 3.1, 0.5),
}
FEATURES = 1280  # of the last convolution, times the width
SMALLEST = 32  # of a side: halved five times


class EfficientNet(Backbone):
    """EfficientNet (Tan and Le 2019), as `transformers` builds it; B4 in the paper (section 5.3).

    One linear layer on the pooled features gives all heads. Pixels are from -1 to 1, as in the
    paper. The ImageNet weights were trained with another scaling, which training makes up for.

    Example: ``docs/howto/images.md``.

    Args:
        input_shape: ``(C, H, W)`` with H and W at least 32.
        outputs: numbers per sample, or numbers per head.
        variant: ``"b0"`` to ``"b7"``.
        weights: ``"auto"``, ``"random"``, or a folder or a name on the Hugging Face hub. ``"auto"``
            takes the ImageNet weights from ``efficientnet-b4/`` in ``$PARETOCOSMOS_DATA`` or the
            cache, else from the hub (``google/efficientnet-b4``); without them it warns and draws
            random ones.
        norm: what replaces batch normalisation, whose statistics would mix samples under different
            rays: ``"group"``, ``"frozen"`` or ``"keep"``, as in `condition`. `None` is
            ``"group"`` for random weights, without which B4 hardly trains, and ``"frozen"`` for
            ImageNet's.
        dropout: of the features before the head; that of the variant if `None`.
        drop_connect: dropout inside the last block; earlier blocks have less.
    """

    foreign: ClassVar[tuple[str, ...]] = ("transformers",)
    traceable: ClassVar[bool] = True  # known of its modules by trial
    blank: ClassVar[Mapping[str, Any]] = MappingProxyType({"weights": "random"})

    def __init__(
        self,
        input_shape: Sequence[int],
        outputs: int | Mapping[str, int],
        *,
        variant: Variant = "b4",
        weights: str = "auto",
        norm: Norm | None = None,
        dropout: float | None = None,
        drop_connect: float = 0.2,
    ) -> None:
        super().__init__()
        check_choice("`variant`", variant, VARIANTS)
        shape = tuple(input_shape)
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST:
            raise ConfigurationError(
                f"`efficientnet` takes images (C, H, W) with H and W at least {SMALLEST}, found "
                f"{shape}: enlarge them, or use another backbone, such as `lenet`"
            )
        rate = VARIANTS[variant][2] if dropout is None else dropout
        for name, value in (("dropout", rate), ("drop_connect", drop_connect)):
            if not 0 <= value < 1:
                raise ConfigurationError(f"`{name}` must be at least 0 and below 1, found {value}")
        self.cut = Cut.of(outputs)
        network = _build_network(shape, variant, drop_connect)
        source = _set_weights(network, shape[0], variant, weights)
        norm = norm or ("group" if source == "random" else "frozen")
        self.network = with_norm(network, norm)
        self.dropout = nn.Dropout(rate)
        self.head = nn.Linear(network.config.hidden_dim, self.cut.total)
        self.resolved = {"weights": source, "norm": norm, "dropout": rate}
        self.first_layer = "network.embeddings.convolution"
        self.heads = self.cut.heads("head")

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        # a tuple of feature maps and pooled features: no dataclass for engines to trace
        _, features = self.network(inputs, return_dict=False)
        return self.cut(self.head(self.dropout(features)))


def _build_network(shape: tuple[int, ...], variant: str, drop_connect: float) -> Any:
    """Build the network up to its pooled features; its weights are set later."""
    require_extra("transformers", "transformers", "`efficientnet`")
    from transformers import EfficientNetConfig, EfficientNetModel

    width, depth, _ = VARIANTS[variant]
    config = EfficientNetConfig(
        num_channels=shape[0],
        image_size=shape[1],
        width_coefficient=width,
        depth_coefficient=depth,
        hidden_dim=round(FEATURES * width),
        drop_connect_rate=drop_connect,
        # its 0.99 is the share that stays, torch's the share that is new
        batch_norm_momentum=0.01,
    )
    network = EfficientNetModel(config)
    _set_padding(network, shape[1:])
    return network


def _set_padding(network: Any, sides: Sequence[int]) -> None:
    """Pad layers of stride 2 as the authors' code does, by the size of their input.

    Those of transformers are for the image sizes of the published weights.
    """
    halving = [(network.embeddings, "padding", 3)]
    for block in network.encoder.blocks:
        layer = block.depthwise_conv
        if layer.stride == 2:
            halving.append((layer, "depthwise_conv_pad", layer.depthwise_conv.kernel_size[0]))
    height, width = sides
    for layer, name, kernel in halving:
        # "same" padding: the output has half the side, rounded up, and odd padding goes to the end
        across, down = (kernel - 2 + side % 2 for side in (width, height))
        pads = (across // 2, across - across // 2, down // 2, down - down // 2)
        setattr(layer, name, nn.ZeroPad2d(pads))
        height, width = ((side + 1) // 2 for side in (height, width))


def _set_weights(network: nn.Module, channels: int, variant: str, weights: str) -> str:
    """Load or draw the weights; return where they come from."""
    if weights == "random":
        _draw_weights(network)
        return "random"
    named = weights != "auto"
    name = weights if named else f"google/efficientnet-{variant}"
    data_folders = [folder / name.rpartition("/")[2] for folder in list_data_folders()]
    try:
        if not named and channels != 3:
            raise DataError(f"ImageNet weights need 3 channels, found {channels}")
        source, file = _find_published(name, [user_path(weights)] if named else data_folders)
    except DataError as error:
        if named:
            raise DataError(
                f"`weights` must be auto, random, a folder with {FILE_NAMES}, or a name on the "
                f"hub, found `{weights}` ({error})"
            ) from error
        warnings.warn(
            f"`efficientnet` starts from random weights, not ImageNet's ({error}): put the weights "
            'into one of those folders, or set weights="random" if you mean it',
            WeightsWarning,
            stacklevel=3,
        )
        _draw_weights(network)
        return "random"
    _load_published(network, file)
    return weights if named else source


def _draw_weights(network: nn.Module) -> None:
    """Draw weights as the authors' code does.

    Those of transformers, 0.02 on average, scales of normalisation too, let the signal vanish.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            # He et al. 2015 with the fan-out
            fan = math.prod(module.kernel_size) * module.out_channels // module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()


FILES = ("model.safetensors", "pytorch_model.bin")
FILE_NAMES = " or ".join(f"`{name}`" for name in FILES)
PATIENCE = 4.0  # seconds for the hub to answer; its own client would try for half a minute


def _find_published(name: str, folders: Sequence[Path]) -> tuple[str, Path]:
    """Find published weights in a folder or on the hub; return their source and their file.

    Args:
        name: their name on the hub, ``owner/name``.
        folders: where they may lie.

    Raises:
        DataError: they are nowhere; the message names no way out, as the caller may do without.
    """
    for folder in folders:
        for file in FILES:
            if (folder / file).is_file():
                return str(folder), folder / file
    try:
        return name, _fetch_from_hub(name)
    except DataError as error:
        searched = ", ".join(f"`{folder}`" for folder in folders)
        raise DataError(f"not in {searched}; {error}") from error


def _load_published(network: nn.Module, file: Path) -> None:
    """Load a file of weights and statistics into the network it was made for."""
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            tensors: Mapping[str, Tensor] = load_file(file)
        else:  # tensors only: what else a pickle may hold is refused
            tensors = torch.load(file, map_location="cpu", weights_only=True)
        prefix = "efficientnet."  # in a file of a whole classifier, whose head is left out
        prefixed = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    except Exception as error:  # readers of damaged files raise many kinds
        raise DataError(
            f"`{file}` cannot be read ({one_line(error)}): the file is damaged, or does not "
            "contain weights"
        ) from error
    weights = prefixed or tensors  # a file of the bare network has no prefix
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"the weights in `{file}` do not fit this network: "
            f"{describe_misfit(network, weights, error)}; choose other weights, or another "
            "`variant`"
        ) from error


def _fetch_from_hub(name: str) -> Path:
    """Return the file in the hub's cache, downloaded if it is not there yet."""
    import huggingface_hub

    try:
        for local in (True, False):  # what is here before what must be fetched
            if not local and huggingface_hub.constants.HF_HUB_OFFLINE:
                raise DataError(f"`{name}` is not in the hub's cache and HF_HUB_OFFLINE is set")
            if not local:
                _check_hub_answers(huggingface_hub.hf_hub_url(name, FILES[0]))
            for file in FILES:
                with contextlib.suppress(huggingface_hub.errors.EntryNotFoundError):
                    return Path(huggingface_hub.hf_hub_download(name, file, local_files_only=local))
    except DataError:
        raise
    except ValueError as error:  # not even a name
        raise DataError(f"not a name on the hub ({one_line(error)})") from error
    except Exception as error:  # the hub, its client and the network raise many kinds
        raise DataError(
            f"`{name}` cannot be downloaded from the hub ({one_line(error)})"
        ) from error
    raise DataError(f"`{name}` on the hub has no {FILE_NAMES}")


def _check_hub_answers(address: str) -> None:
    """Raise an OSError if the hub does not answer at all; any status code is an answer."""
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE):
            pass
    except urllib.error.HTTPError as answer:
        answer.close()
