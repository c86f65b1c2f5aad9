"""Put the recorded figures of the simulation into docs/speed.md, between its two marks."""

import json

from _record import LATEST

PAGE = LATEST.parents[1] / "docs" / "speed.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


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
    mine = [entry for entry in entries if entry["name"].startswith(("simulate.", "citylearn."))]
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(mine)}\n{END}{after}")


if __name__ == "__main__":
    main()
