"""The paper's figures that show minutes of a household, as pictures, which the report embeds.

UK-DALE is CC BY 4.0 and REDD is for research only: minutes of a household are not kept here as data, pictures
of them are. `python -m meterveil.bench.report.drawing` draws them from a user's own copy of the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from meterveil.errors import InputError
from meterveil.plots.html import Section, picture_html
from meterveil.plots.system import system_figure

INDEX = "report-pictures.json"
DRAW = "python -m meterveil.bench.report.drawing"
NAMES: dict[str, str] = {
    "report-day-ukdale": "The paper's day, UK-DALE",
    "report-day-redd": "The paper's day, REDD",
    "report-signatures": "The signatures",
}
"""Name of a picture -> heading of its section."""

_SYSTEM = (
    "The battery adds its power to the household's load, the meter shows the sum, and an attacker reads it. "
    "The defender chooses when to replay which appliance's signature, charging or discharging; a probe that "
    "never sees an appliance stands in for unknown attackers while it learns."
)
_NOT_DATA = (
    "UK-DALE is CC BY 4.0 and REDD is for research only: minutes of a household are not kept here as data, "
    f"pictures of them are. {DRAW} draws them from your own copy."
)


class Drawn(BaseModel):
    """What is known of a picture: a sentence on what it shows, how it came about, and from which commit."""

    words: str
    settings: dict[str, Any]
    commit: str


class Pictures(NamedTuple):
    """Sections, and the pictures that go into them."""

    sections: tuple[Section, ...]
    html: Mapping[str, str]
    """Heading of a section -> its picture."""


def pictures(folder: Path | None) -> Pictures:
    """Show the system, and every picture that lies in the folder; of a missing one, say how to draw it."""
    drawn = {} if folder is None else read_index(folder / INDEX)
    html = {
        NAMES[name]: picture_html(folder / f"{name}.png", one.words)
        for name, one in drawn.items()
        if folder is not None and name in NAMES and (folder / f"{name}.png").exists()
    }
    return Pictures((Section("The system", _SYSTEM, (), system_figure()), *_sections(drawn, html)), html)


def _sections(drawn: Mapping[str, Drawn], html: Mapping[str, str]) -> Iterator[Section]:
    reason = f" {_NOT_DATA}"
    for name, heading in NAMES.items():
        if heading in html:
            yield Section(heading, f"{drawn[name].words}{reason}")
            reason = ""
        else:
            yield Section(heading, f"There is no picture of it in --pictures. {DRAW} draws it.")


def read_index(path: Path) -> dict[str, Drawn]:
    """Read what is known of the pictures beside it; of none where there is no such file."""
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Drawn.model_validate(one) for name, one in document.items()}
    except (OSError, ValueError, AttributeError, ValidationError) as error:
        raise InputError(f"{path} does not describe pictures; draw them again with {DRAW}") from error
