"""A GPU that is fit for the next test."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _no_sync_left() -> Iterator[None]:
    """A captured graph that fails must not poison what comes after it."""
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
