"""What a result card must look like in a file, for the report and for submissions alike."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from meterveil.bench.cards import Card, ThreatModel

_FolderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=100)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=150)]


class Document(BaseModel):
    """Hold a card as it stands in a file, with its key and the commit that measured it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    key: str
    table: _FolderName
    row: _Text
    column: _Text
    dataset: _FolderName
    measured: FiniteFloat | None
    reported: FiniteFloat | None
    spread: Annotated[FiniteFloat, Field(ge=0)] | None
    seeds: list[Annotated[int, Field(ge=0)]]
    n_days: Annotated[int, Field(ge=0)]
    threat_model: ThreatModel
    settings: dict[str, Any]
    commit: str
    note: str

    @model_validator(mode="after")
    def _measured_with_seeds(self) -> Self:
        """Ask a figure for its seeds; what could not be measured has none."""
        if self.measured is not None and not self.seeds:
            raise ValueError("seeds: a figure was measured with at least one; only null has none")
        return self

    def card(self) -> Card:
        """Return the card without key and commit, which follow from it and from where it was measured."""
        values = self.model_dump(exclude={"key", "commit"})
        return Card(**{**values, "seeds": tuple(self.seeds)})


DOCUMENTS = TypeAdapter(list[Document])
"""A file of cards."""


def faults(error: ValidationError) -> list[str]:
    """Say what is wrong, each fault with the field that it is about."""
    found = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"])
        words = fault["msg"].removeprefix("Value error, ")
        found.append(f"{place}: {words}" if place else words)
    return found
