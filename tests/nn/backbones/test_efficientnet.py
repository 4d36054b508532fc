"""What EfficientNet refuses before it needs transformers; the rest is in tests/extras."""

from typing import Any

import pytest

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import EfficientNet


@pytest.mark.parametrize("shape", [(5,), (3, 31, 64), (3, 64, 31), (0, 64, 64), (1, 3, 64, 64)])
def test_what_is_no_image_of_enough_pixels_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"\(C, H, W\).*32"):
        EfficientNet(shape, 1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"variant": "b8"}, "unknown `variant` `b8`"),
        ({"dropout": 1.0}, r"`dropout`.*found 1\.0"),
        ({"drop_connect": -0.1}, "`drop_connect` must be"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        EfficientNet((3, 64, 64), 1, **settings)


def test_settings_come_from_a_command_line_too() -> None:
    known = registry.parameters(EfficientNet)
    given = {"variant": "b3", "norm": "none", "dropout": "0.1", "weights": "random"}
    found = {
        key: registry.convert(key, value, known[key].annotation) for key, value in given.items()
    }
    assert found == {"variant": "b3", "norm": None, "dropout": 0.1, "weights": "random"}
