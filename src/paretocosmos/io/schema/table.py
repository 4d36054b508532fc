"""`table.json`: the fitted preprocessing of a table."""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from paretocosmos.errors import DataError
from paretocosmos.io.schema.kinds import Finite, Model, Some
from paretocosmos.io.schema.sentence import validated

__all__ = ["check_table"]


def check_table(content: Mapping[str, Any]) -> None:
    """Refuse what is no fitted table."""

    def refusal(mistake: str) -> DataError:
        keys = ", ".join(TableFile.model_fields)
        return DataError(f"this is not a table: {mistake}; a table has the keys {keys}")

    validated(TableFile, content, refusal)


class TableFile(Model):
    """Columns, and a mean and a scale for every feature they become."""

    numeric: dict[str, Finite]
    flagged: Some[str]
    categorical: dict[str, Some[str]]
    mean: Some[Finite]
    scale: Some[Finite]

    @model_validator(mode="after")
    def _fits(self) -> "TableFile":
        if not {*self.flagged} <= self.numeric.keys():
            raise ValueError("`flagged` are columns that `numeric` has")
        categories = sum(map(len, self.categorical.values()))
        wide = len(self.numeric) + len(self.flagged) + categories
        if not len(self.mean) == len(self.scale) == wide or 0 in self.scale:
            raise ValueError(
                f"`mean` and `scale`, which is not 0, have an entry for each of its {wide} "
                f"features, found {len(self.mean)} and {len(self.scale)}"
            )
        return self
