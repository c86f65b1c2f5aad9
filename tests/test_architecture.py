"""Imports run one way, and importing costs nothing: the house stays as it was built."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "meterveil"
LAYERS = ["core", "data", "attackers", "defenders"]
MAY_IMPORT = {
    **{layer: set(LAYERS[: number + 1]) for number, layer in enumerate(LAYERS)},
    "adapters": {"core", "data", "adapters"},
    "defenders": {*LAYERS, "adapters"},
    "audit": {*LAYERS, "audit", "bench", "plots"},
    "bench": {*LAYERS, "bench", "plots", "adapters"},
    "contracts": {*LAYERS, "contracts", "cli"},
    "live": {*LAYERS, "live", "plots"},
    "plots": {*LAYERS, "plots"},
}
"""Part of the package -> parts that it may import; beside those are everybody's."""

EVERYBODYS = {"endings", "errors", "fingerprint", "plugins", "__version__"}
HEAVY = {"torch", "gymnasium", "stable_baselines3", "pandas", "pyarrow", "plotly", "dash", "numpy"}


def imported_parts(path):
    """Parts of meterveil that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "meterveil":
                modules = [f"meterveil.{alias.name}" for alias in node.names]
        for module in modules:
            if module.startswith("meterveil."):
                yield module.split(".")[1]


def files_of(part):
    folder = SOURCE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{part}.py"]


@pytest.mark.parametrize("part", [part for part in MAY_IMPORT if (SOURCE / part).exists()])
def test_imports_run_one_way(part):
    for path in files_of(part):
        forbidden = set(imported_parts(path)) - MAY_IMPORT[part] - EVERYBODYS
        assert not forbidden, f"{path.relative_to(SOURCE)} imports {forbidden}"


def test_the_core_is_pure_numpy():
    allowed = {"numpy", "meterveil"} | set(sys.stdlib_module_names) - {
        "time",
        "random",
        "datetime",
        "pathlib",
    }
    for path in files_of("core"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module]
            assert {name.split(".")[0] for name in names} <= allowed, path


@pytest.mark.parametrize("module", ["meterveil", "meterveil.__main__"])
def test_importing_costs_nothing(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & {name.split(".")[0] for name in loaded.stdout.split()}


def test_adapters_stay_thin():
    for path in files_of("adapters"):
        assert len(path.read_text().splitlines()) < 100, path
