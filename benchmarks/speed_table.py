"""Put the recorded figures into docs/speed.md and docs/going-live.md, between their marks."""

import json
from typing import NamedTuple

from _record import LATEST

DOCS = LATEST.parents[1] / "docs"


class Section(NamedTuple):
    """Place of a table, and how the names of its figures begin."""

    page: str
    begin: str
    end: str
    names: tuple[str, ...]


SECTIONS = (
    Section("speed.md", "<!-- figures -->", "<!-- end of figures -->", ("simulate.", "citylearn.", "plan.")),
    Section("speed.md", "<!-- figures of the attackers -->", "<!-- end of figures -->", ("attack: ", "classical.")),
    Section("going-live.md", "<!-- soak -->", "<!-- end of soak -->", ("soak: ",)),
)


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(entries: list[dict]) -> str:
    lines = ["| figure | value | unit | target | commit |", "| --- | ---: | --- | --- | --- |"]
    for entry in entries:
        name = entry["name"].removeprefix("soak: ")
        columns = (name, shown(entry["value"]), entry["unit"], entry["target"], entry["commit"])
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    entries = json.loads(LATEST.read_text())
    for section in SECTIONS:
        page = DOCS / section.page
        before, rest = page.read_text().split(section.begin)
        _, after = rest.split(section.end, maxsplit=1)
        shown_here = [entry for entry in entries if entry["name"].startswith(section.names)]
        page.write_text(f"{before}{section.begin}\n{table(shown_here)}\n{section.end}{after}")


if __name__ == "__main__":
    main()
