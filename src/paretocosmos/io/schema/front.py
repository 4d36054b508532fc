"""A front: `front.json`, `front_val.json`, and what `Front.to_dict` gives."""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from paretocosmos.errors import DataError
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema.kinds import ByName, Finite, Model, NonEmpty
from paretocosmos.io.schema.sentence import validated

__all__ = ["check_front"]


def check_front(content: Mapping[str, Any]) -> None:
    """Refuse what is no front."""

    def refusal(mistake: str) -> DataError:
        keys = ", ".join(FrontFile.model_fields)
        return DataError(f"this is not a front: {mistake}; a front has the keys {keys}")

    validated(FrontFile, dict(content) if isinstance(content, Mapping) else content, refusal)


class FrontFile(Model):
    """N rays of J objectives, and a value or none of each."""

    rays: NonEmpty[NonEmpty[Finite]]
    values: NonEmpty[NonEmpty[Finite | None]]
    names: NonEmpty[str]
    reference: NonEmpty[Finite]
    metrics: ByName[NonEmpty[Finite | None]]
    split: str
    provenance: dict[str, Any]

    @model_validator(mode="after")
    def _fits(self) -> "FrontFile":
        many, wide = len(self.rays), len(self.names)
        for key, rows in (("rays", self.rays), ("values", self.values)):
            if len(rows) != many or any(len(row) != wide for row in rows):
                raise ValueError(f"`{key}` are {many} rows of {wide}, one entry per name")
        if len(self.reference) != wide:
            raise ValueError(f"`reference` must have {wide} entries, found {len(self.reference)}")
        for name, each in self.metrics.items():
            if len(each) != many:
                raise ValueError(
                    f"`metrics.{sanitize_line(name)[:60]}` has a number for each of {many} rays"
                )
        return self
