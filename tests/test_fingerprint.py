from meterveil import fingerprint
from meterveil.fingerprint import code_hash


def names(module):
    return {path.name for path in fingerprint.sources(module).values()}


def test_a_module_s_hash_covers_what_it_imports_and_nothing_else():
    found = names("meterveil.attackers.dae")
    assert {"dae.py", "neural.py", "supervised.py", "examples.py", "protocols.py"} <= found
    assert not found & {"fhmm.py", "bert4nilm.py", "rollout.py"}


def test_a_module_imported_by_one_that_is_imported_counts():
    assert "states.py" in names("meterveil.attackers.fhmm")


def test_two_modules_differ():
    assert code_hash("meterveil.attackers.dae") != code_hash("meterveil.attackers.co")


def test_what_only_reads_writes_looks_up_or_complains_changes_no_key():
    found = fingerprint.sources("meterveil.attackers.fitting", "meterveil.defenders.manager.manager_training")
    assert "meterveil.core.battery" in found
    assert not set(found) & {"meterveil.errors", "meterveil.attackers.registry", "meterveil.data.cache"}


def test_a_module_taken_from_a_package_leaves_the_package_s_other_modules_out():
    manager, ddql = (fingerprint.sources(f"meterveil.defenders.{name}.run") for name in ("manager", "ddql"))
    assert "meterveil.defenders.manager.manager_training" in manager
    assert not {"meterveil.defenders", "meterveil.defenders.flat"} & set(manager)
    assert not [name for name in ddql if name.startswith("meterveil.defenders.manager")]


def test_a_name_taken_from_a_package_brings_the_package(tmp_path, monkeypatch):
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "__init__.py").write_text("from elsewhere.inner import value\n")
    (package / "inner.py").write_text("value = 1\n")
    (tmp_path / "outer.py").write_text("from meterveil.core import battery\n")
    (package / "user.py").write_text("from elsewhere import value\nimport outer\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert set(fingerprint.sources("elsewhere.user")) == {"elsewhere", "elsewhere.inner", "elsewhere.user"}
