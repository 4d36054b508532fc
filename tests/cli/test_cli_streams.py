"""A standard output that is closed, or takes only ASCII."""

import io
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from paretocosmos.cli.console import print_text
from paretocosmos.errors import ConfigurationError

COMMANDS = [("--version",), ("list",), ("train", "toy_convex", "--epochs", "1", "--json")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_no_error(
    command: tuple[str, ...], cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdout", "stderr"):
        with monkeypatch.context() as patched:
            patched.setattr(sys, name, None)
            assert cli(*command, *(["--out", name] if "train" in command else [])).code == 0
            getattr(sys, name).close()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_ascii_lacks_is_escaped(
    command: tuple[str, ...], cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    ended = cli(*command)
    assert (ended.code, "Traceback" in ended.err) == (0, False)
    assert written.getvalue().decode("ascii").strip()


def test_data_are_never_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pd.DataFrame({"city": ["K\xf6ln"]}).to_csv(index=False)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    with pytest.raises(ConfigurationError, match=r"only ascii.*PYTHONIOENCODING.*`out`"):
        print_text(text)
    assert written.getvalue() == b""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8"))
    print_text(text)
    sys.stdout.flush()
    assert written.getvalue().decode() == text
