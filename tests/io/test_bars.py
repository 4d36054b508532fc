"""Bars for what takes minutes."""

import pytest

from paretocosmos.io.bars import bar


@pytest.mark.parametrize("of_bytes", [True, False])
def test_where_stderr_is_no_terminal_nothing_is_shown(
    capsys: pytest.CaptureFixture[str], of_bytes: bool
) -> None:
    with bar("decoding", 3, of_bytes=of_bytes) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
