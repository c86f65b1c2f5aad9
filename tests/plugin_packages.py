"""Packages of others, as pip leaves them in a folder of the path: modules and their metadata."""

import re
from pathlib import Path
from textwrap import dedent

GUIDE = Path(__file__).parents[1] / "docs" / "extending.md"


def guide_blocks(language):
    """Code of the guide, in its order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def install(folder, name, points, **modules):
    """Put modules into a folder with the metadata of a package; `points` are group -> lines.

    A module of a package in the package is written with a slash: `**{"steps/attack": code}`.
    """
    metadata = folder / f"{name}-0.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    text = "".join(f"[meterveil.{group}]\n" + "\n".join(lines) + "\n" for group, lines in points.items())
    (metadata / "entry_points.txt").write_text(text)
    for module, code in modules.items():
        path = folder / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(code))
