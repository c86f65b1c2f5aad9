"""Put the recorded figures of the simulation and of the attackers into docs/speed.md, between their marks."""

import json

from _record import LATEST

PAGE = LATEST.parents[1] / "docs" / "speed.md"
END = "<!-- end of figures -->"
SECTIONS = {
    "<!-- figures -->": ("simulate.", "citylearn.", "plan."),
    "<!-- figures of the attackers -->": ("attack: ", "classical."),
}
"""Mark that a table follows -> how the names of its figures begin."""


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(entries: list[dict]) -> str:
    lines = ["| figure | value | unit | target | commit |", "| --- | ---: | --- | --- | --- |"]
    for entry in entries:
        columns = (entry["name"], shown(entry["value"]), entry["unit"], entry["target"], entry["commit"])
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    entries = json.loads(LATEST.read_text())
    text = PAGE.read_text()
    for begin, names in SECTIONS.items():
        shown_here = [entry for entry in entries if entry["name"].startswith(names)]
        before, rest = text.split(begin)
        _, after = rest.split(END, maxsplit=1)
        text = f"{before}{begin}\n{table(shown_here)}\n{END}{after}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
