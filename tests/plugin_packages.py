"""Packages of others, as pip leaves them in a folder of the path: modules and their metadata."""

import re
from pathlib import Path
from textwrap import dedent

GUIDE = Path(__file__).parents[1] / "docs" / "extending.md"


def guide_blocks(language):
    """Code of the guide, in its order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def install(folder, name, points, version="0.1", **modules):
    """Put modules into a folder with the metadata of a package; `points` are group -> lines."""
    metadata = folder / f"{name}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    text = "".join(f"[meterveil.{group}]\n" + "\n".join(lines) + "\n" for group, lines in points.items())
    (metadata / "entry_points.txt").write_text(text)
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(dedent(code))
