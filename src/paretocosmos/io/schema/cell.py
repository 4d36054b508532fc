"""`cell.json`: what the sittings of a cell took, and why the last one failed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from paretocosmos.errors import RunError
from paretocosmos.io.files import read_json
from paretocosmos.io.schema import CELL
from paretocosmos.io.schema.models import Large, Model, Settings, validated

__all__ = ["CellFile", "read_cell"]

Seconds = Annotated[float, Field(ge=0, lt=1e300)]


class CellFile(Model):
    """What a reproduction keeps of a cell beside its runs."""

    problem: str = ""
    protocol: str | None = None
    method: str = ""
    settings: Settings = Field(default_factory=dict)
    rehearsal: Large | None = None
    error: str | None = None
    seconds: Seconds = 0.0
    share: Seconds = 0.0


def read_cell(folder: Path) -> CellFile:
    """What the cell of a folder says, if anything; damage to it is not worth a refusal."""
    path = folder / CELL
    try:
        content: Mapping[str, Any] = read_json(path) if path.exists() else {}
        return validated(CellFile, content, RunError)
    except RunError:
        return CellFile()
