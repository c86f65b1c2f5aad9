"""Imports run one way, importing costs nothing, and file names tell files apart."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "meterveil"
LAYERS = ["core", "data", "attackers", "defenders"]
MAY_IMPORT = {
    **{layer: set(LAYERS[: number + 1]) for number, layer in enumerate(LAYERS)},
    "adapters": {"core", "data", "adapters"},
    "defenders": {*LAYERS, "adapters"},
    "plots": {*LAYERS, "plots"},
    "bench": {*LAYERS, "adapters", "bench", "plots"},
    "audit": {*LAYERS, "audit", "bench", "plots"},
    "live": {*LAYERS, "live"},
    "cli": {*LAYERS, "audit", "bench", "cli", "live", "plots"},
    "contracts": {*LAYERS, "cli", "contracts"},
    "errors": set(),
    "plugins": set(),
    "__init__": {"defenders"},
    "__main__": {"cli"},
}
"""Room (folder or top-level module) -> rooms that it may import, beside those that everybody may."""

EVERYBODYS = {"errors", "plugins", "__version__"}
HEAVY = {"torch", "gymnasium", "stable_baselines3", "pandas", "pyarrow", "plotly", "numpy"}


def imported_modules(path):
    """Names of the modules that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "meterveil":
            yield from (f"meterveil.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imported_rooms(path):
    return {name.split(".")[1] for name in imported_modules(path) if name.startswith("meterveil.")}


def files_of(room):
    folder = SOURCE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]


def rooms():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return sorted(folders | {path.stem for path in SOURCE.glob("*.py")})


def test_every_room_has_a_place():
    assert set(rooms()) <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", rooms())
def test_imports_run_one_way(room):
    for path in files_of(room):
        forbidden = imported_rooms(path) - MAY_IMPORT[room] - EVERYBODYS
        assert not forbidden, f"{path.relative_to(SOURCE)} imports {forbidden}"


def test_adapters_are_thin_and_only_the_embedded_household_needs_data():
    for path in files_of("adapters"):
        assert len(path.read_text().splitlines()) < 100, path
        assert path.name == "embedded.py" or "data" not in imported_rooms(path), path


def test_the_core_is_pure_numpy():
    standard = set(sys.stdlib_module_names) - {"time", "random", "datetime", "pathlib"}
    for path in files_of("core"):
        assert {name.split(".")[0] for name in imported_modules(path)} <= {"numpy", "meterveil"} | standard


def test_the_package_does_not_import_experiments_or_tests():
    for path in SOURCE.rglob("*.py"):
        names = {name.split(".")[0] for name in imported_modules(path)}
        assert not names & {"experiments", "tests", "benchmarks"}, path


def test_no_file_name_occurs_four_times():
    names = Counter(path.name for path in SOURCE.rglob("*.py") if path.name not in {"__init__.py"})
    assert [name for name, count in names.items() if count > 3] == []


@pytest.mark.parametrize("module", ["meterveil", "meterveil.__main__"])
def test_importing_costs_nothing(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & {name.split(".")[0] for name in loaded.stdout.split()}


def test_live_control_loads_no_heavy_package():
    modules = [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files_of("live")
        if path.name != "demo_files.py"
    ]  # fmt: skip
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY - {"numpy"} & {name.split(".")[0] for name in loaded.stdout.split()}
