"""Attackers and defences of other packages join by entry points, and a broken one disturbs nobody."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from meterveil import plugins
from meterveil.attackers import fitting
from meterveil.attackers.registry import attacker, check_known, known_attackers
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


def said(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The guide's defence, installed by pip, with the guide's attacker beside it; evaluated from outside."""
    folder = tmp_path_factory.mktemp("guide")
    project, target = folder / "project", folder / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(guide_blocks("toml")[0])
    (project / "meterveil_cap.py").write_text(guide_blocks("python")[0])
    install(target, "meterveil-step", {"attackers": ["step = meterveil_step:Step"]}, meterveil_step=STEP)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", target, project]
    subprocess.run(pip, check=True, cwd=folder)
    paths = [str(target), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}
    quick = ["--attackers", "step,co", "--threat", "fixed", "--seeds", "2", "--results", "cards"]
    command = [sys.executable, "-m", "meterveil", "evaluate", "none", "cap", *quick, "--workers", "2"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return folder, done


def test_the_guides_examples_are_at_most_30_lines():
    assert len((guide_blocks("toml")[0] + guide_blocks("python")[0]).splitlines()) <= 30
    assert len(STEP.splitlines()) <= 30


def test_the_guides_defence_and_attacker_are_evaluated_beside_ours_and_fitted_by_workers(guide):
    folder, done = guide
    assert done.returncode == 0, done.stderr
    [row] = [line.split() for line in done.stdout.splitlines() if line.startswith("cap ")]
    assert float(row[1]) != 0.0
    kept = folder / "cards" / "evaluation_one_day" / "synthetic"
    cards = json.loads((kept / "step-kettle--cap--fixed.json").read_text())
    assert cards[0]["settings"]["defence"] == "cap"
    assert cards[0]["settings"]["package"] == "meterveil-cap 0.1"
    assert cards[0]["settings"]["attackers"] == ["step"]
    headline = json.loads((kept / "headline--cap--fixed.json").read_text())
    assert headline[0]["settings"]["attackers"] == ["step", "co"]


def test_the_guides_examples_keep_the_laws():
    space = {}
    for code in guide_blocks("python"):
        exec(code, space)
    check_defence(space["Cap"])
    check_attacker(space["Step"])


def test_what_packages_add_is_known_after_our_own_and_stands_in_errors_and_help(path):
    points = {"attackers": ["step = meterveil_step:Step"], "defenders": ["quiet = hush:Quiet"]}
    install(path, "hush", points, hush=QUIET, meterveil_step=STEP)
    assert known_defences() == (*DEFENDERS, "quiet")
    assert known_attackers()[-1] == "step"
    assert callable(defender("quiet").decide)
    with pytest.raises(InputError, match=r"no defence 'loud'; known are none, .*, quiet$"):
        defender("loud")
    with pytest.raises(InputError, match=r"no attacker 'oracle'; known are co, .*, step$"):
        attacker("oracle")
    assert "no folder 'loud'; known are none" in said("evaluate", "loud", "--attackers", "co").output
    for verb in ("simulate", "attack", "evaluate"):
        told = " ".join(said(verb, "--help").output.split())
        assert "Installed packages add the attackers step and the defences quiet." in told


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import gone_for_good", r"ModuleNotFoundError: No module named 'gone_for_good'; mend or uninstall"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "has no attribute 'Thing'"),
        ("class Thing:\n    def __init__(self, size): pass", "TypeError.*size"),
        ("class Thing:\n    def initial(self, batch): pass", "has no decide; it needs initial, decide"),
    ],
)
def test_a_broken_package_is_named_to_who_asks_for_it_and_disturbs_nobody_else(path, code, words):
    install(path, "broken", {"defenders": ["thing = broken:Thing"]}, broken=code)
    install(path, "hush", {"defenders": ["quiet = hush:Quiet"]}, hush=QUIET)
    with pytest.raises(InputError, match=f"the defence 'thing' of the package broken 0.1 .*{words}"):
        defender("thing")
    assert type(defender("quiet")).__name__ == "Quiet"
    assert isinstance(defender("flat"), Flat)
    refused = said("simulate", "--defence", "thing")
    assert refused.exit_code == 2
    assert "broken 0.1" in refused.output


def test_a_broken_attacker_is_refused_before_anything_is_fitted(path):
    install(path, "broken", {"attackers": ["thing = broken:Thing"]}, broken="class Thing: pass")
    with pytest.raises(InputError, match=r"broken 0.1 has no fit, predict, arrays, restored"):
        check_known("thing")


def test_metadata_that_cannot_be_read_offer_nothing(path):
    install(path, "torn", {})
    (path / "torn.dist-info" / "entry_points.txt").write_bytes(b"[meterveil.defenders]\nx = \xff\xfe\n")
    install(path, "hush", {"defenders": ["quiet = hush:Quiet"]}, hush=QUIET)
    assert "quiet" in known_defences()


def test_a_name_that_two_packages_offer_is_refused_with_both(path):
    for name in ("hush", "whisper"):
        install(path, name, {"defenders": [f"quiet = {name}:Quiet"]}, **{name: QUIET})
    with pytest.raises(InputError, match=r"hush 0.1 and whisper 0.1 both offer the defence 'quiet'"):
        defender("quiet")


def test_our_own_names_stay_ours_and_the_package_that_wants_one_is_told(path):
    install(path, "hush", {"defenders": ["flat = hush:Quiet", "so quiet = hush:Quiet"]}, hush=QUIET)
    assert type(defender("flat")) is Flat
    assert known_defences() == tuple(DEFENDERS)
    result = said("simulate", "--defence", "flat", "--out", path / "out")
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert "the defence 'flat' of the package hush 0.1 is left out: flat is meterveil's own" in told
    assert "'so quiet' of the package hush 0.1 is left out: a name has letters, digits and _ only" in told
    with pytest.raises(InputError, match=r"hush 0.1 is left out"):
        contracts.checked("flat")


def test_laws_are_tried_by_name_and_a_broken_one_is_told_in_plain_words(path, capsys):
    code = QUIET + "class Dozing(Flat):\n    def decide(self, view, memory):\n        return 1 / 0\n"
    install(path, "hush", {"defenders": ["quiet = hush:Quiet", "dozing = hush:Dozing"]}, hush=code)
    assert contracts.main(["quiet"]) == 0
    assert contracts.main(["dozing"]) == 1
    assert "it raised ZeroDivisionError" in " ".join(capsys.readouterr().out.split())
    assert contracts.main(["loud"]) == 2
    assert "no attacker and no defence 'loud'" in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def home():
    return synthetic.household(np.random.default_rng(3), days=2).select(["kettle"])


def test_a_kept_fit_of_a_package_is_found_again(path, home):
    install(path, "meterveil-step", {"attackers": ["step = meterveil_step:Step"]}, meterveil_step=STEP)
    done = []
    first, again = (
        fitting.fit(["step"], [home], ["kettle"], 0, workers=1, on_done=done.append)["step"] for _ in range(2)
    )
    assert len(done) == 1
    assert first == again


def test_another_version_of_a_module_or_its_package_makes_another_fit(path, home):
    job = fitting.Job("step", ("kettle",), (home,), 0)
    keys = []
    for version, code in (
        ("0.1", STEP),
        ("0.1", "VERSION = 2\n" + STEP),
        ("0.2", STEP),
        ("0.1", STEP + "\n"),
    ):
        forget()
        sys.modules.pop("meterveil_step", None)
        points = {"attackers": ["step = meterveil_step:Step"]}
        install(path, "meterveil-step", points, version, meterveil_step=code)
        keys.append(job.key())
    assert len(set(keys)) == 3
    assert keys[0] == keys[3]


def test_importing_the_package_or_its_commands_looks_for_nothing():
    code = "import sys, meterveil, meterveil.cli; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
