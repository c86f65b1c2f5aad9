"""Attackers and defences of other packages: found by entry points, checked, and isolated when broken."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from meterveil import plugins
from meterveil.attackers import fitting
from meterveil.attackers.registry import attacker, check_known, known_attackers
from meterveil.bench import results
from meterveil.cli import app
from meterveil.contracts import __main__ as contracts
from meterveil.contracts import check_attacker, check_defence
from meterveil.data import synthetic
from meterveil.defenders import DEFENDERS, defender, known_defences
from meterveil.defenders.flat import Flat
from meterveil.errors import InputError
from plugin_packages import guide_blocks, install

STEP = guide_blocks("python")[1]
QUIET = "from meterveil.defenders.flat import Flat\nclass Quiet(Flat): pass\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder that is searched for packages and modules, forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    known = set(sys.modules)
    forget()
    yield folder
    for name in set(sys.modules) - known:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    forget()


def forget():
    plugins._offered.cache_clear()


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})


def test_the_defence_and_the_attacker_of_the_guide_are_evaluated_beside_ours(tmp_path):
    assert len((guide_blocks("toml")[0] + guide_blocks("python")[0]).splitlines()) <= 30
    assert len(STEP.splitlines()) <= 30
    project, target = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(guide_blocks("toml")[0])
    (project / "meterveil_cap.py").write_text(guide_blocks("python")[0])
    install(target, "meterveil-step", {"attackers": ["step = meterveil_step:Step"]}, meterveil_step=STEP)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", target, project]
    subprocess.run(pip, check=True, cwd=tmp_path)
    paths = [str(target), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}
    quick = ["--attackers", "step,co", "--threat", "fixed", "--seeds", "2", "--results", "results"]
    command = [sys.executable, "-m", "meterveil", "evaluate", "none", "cap", *quick, "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = results.where(results.read(tmp_path / "results"), defence="cap", threat="fixed")
    assert {"step", "co"} <= set(table["attacker"])
    run = results.read_runs(tmp_path / "results")[table["run"].iloc[0]]
    assert run.settings["package"] == "meterveil-cap 0.1"


def test_the_examples_of_the_guide_keep_the_laws():
    space = {}
    for code in guide_blocks("python"):
        exec(code, space)
    check_defence(space["Cap"])
    check_attacker(space["Step"])


def test_plug_ins_are_known_after_our_own_and_named_in_errors_and_help(path):
    points = {"attackers": ["step = meterveil_step:Step"], "defenders": ["quiet = hush:Quiet"]}
    install(path, "hush", points, hush=QUIET, meterveil_step=STEP)
    assert known_defences() == (*DEFENDERS, "quiet")
    assert known_attackers()[-1] == "step"
    assert callable(defender("quiet").decide)
    with pytest.raises(InputError, match=r"known are none, .*, quiet$"):
        defender("loud")
    with pytest.raises(InputError, match=r"known are co, .*, step$"):
        attacker("oracle")
    help_text = " ".join(run("evaluate", "--help").output.split())
    assert "attackers step and the defences quiet" in help_text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import gone_for_good", "No module named 'gone_for_good'"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "has no attribute 'Thing'"),
        ("class Thing:\n    def __init__(self, size): pass", "TypeError.*size"),
        ("class Thing:\n    def initial(self, batch): pass", "has no decide; it needs initial, decide"),
    ],
)
def test_a_broken_package_is_named_in_its_error_and_disturbs_nothing_else(path, code, words):
    install(path, "broken", {"defenders": ["thing = broken:Thing"]}, broken=code)
    install(path, "hush", {"defenders": ["quiet = hush:Quiet"]}, hush=QUIET)
    with pytest.raises(InputError, match=f"'thing' of the package broken 0.1 .*{words}"):
        defender("thing")
    assert type(defender("quiet")).__name__ == "Quiet"
    assert isinstance(defender("flat"), Flat)
    refused = run("simulate", "--defence", "thing")
    assert refused.exit_code == 2
    assert "broken 0.1" in refused.output


def test_a_broken_attacker_is_refused_before_anything_is_fitted(path):
    install(path, "broken", {"attackers": ["thing = broken:Thing"]}, broken="class Thing: pass")
    with pytest.raises(InputError, match=r"broken 0.1 has no fit, predict, arrays, restored"):
        check_known("thing")


def test_a_package_with_unreadable_metadata_is_ignored_and_two_packages_of_one_name_are_refused(path):
    install(path, "torn", {})
    (path / "torn.dist-info" / "entry_points.txt").write_bytes(b"[meterveil.defenders]\nx = \xff\xfe\n")
    for name in ("hush", "whisper"):
        install(path, name, {"defenders": [f"quiet = {name}:Quiet"]}, **{name: QUIET})
    assert "quiet" in known_defences()
    with pytest.raises(InputError, match=r"hush 0.1 and whisper 0.1 both offer the defence 'quiet'"):
        defender("quiet")


def test_a_plug_in_cannot_replace_a_built_in_and_the_command_says_so(path):
    install(path, "hush", {"defenders": ["flat = hush:Quiet", "so quiet = hush:Quiet"]}, hush=QUIET)
    assert type(defender("flat")) is Flat
    assert known_defences() == tuple(DEFENDERS)
    result = run("simulate", "--defence", "flat", "--out", path / "out")
    assert result.exit_code == 0, result.output
    errors = " ".join(result.stderr.split())
    assert "the defence 'flat' of the package hush 0.1 is left out" in errors
    assert "'so quiet' of the package hush 0.1 is left out" in errors
    with pytest.raises(InputError, match=r"hush 0.1 is left out"):
        contracts.checked("flat")


def test_the_laws_are_checked_by_name(path, capsys):
    code = QUIET + "class Dozing(Flat):\n    def decide(self, view, memory):\n        return 1 / 0\n"
    install(path, "hush", {"defenders": ["quiet = hush:Quiet", "dozing = hush:Dozing"]}, hush=code)
    assert contracts.main(["quiet"]) == 0
    assert contracts.main(["dozing"]) == 1
    assert "it raised ZeroDivisionError" in " ".join(capsys.readouterr().out.split())
    assert contracts.main(["loud"]) == 2
    assert "no attacker and no defence 'loud'" in " ".join(capsys.readouterr().out.split())


def test_a_fit_of_a_plug_in_is_stored_until_its_module_or_package_has_another_version(path):
    home = synthetic.household(np.random.default_rng(3), days=2).select(["kettle"])
    done = []
    codes = [STEP, f"{STEP}\n", f"VERSION = 2\n{STEP}", STEP]
    for version, code in zip(["0.1", "0.1", "0.1", "0.2"], codes, strict=True):
        forget()
        sys.modules.pop("meterveil_step", None)
        points = {"attackers": ["step = meterveil_step:Step"]}
        install(path, "meterveil-step", points, version, meterveil_step=code)
        fitting.fit(["step"], [home], ["kettle"], 0, workers=1, on_done=done.append)
    assert len(done) == 3


def test_importing_the_package_or_its_commands_does_not_search_for_plug_ins():
    code = "import sys, meterveil, meterveil.cli; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
