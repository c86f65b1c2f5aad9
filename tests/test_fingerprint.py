from meterveil import fingerprint
from meterveil.fingerprint import code_hash


def names(module):
    return {path.name for path in fingerprint._sources(module)}


def test_a_module_s_hash_covers_what_it_imports_and_nothing_else():
    found = names("meterveil.attackers.dae")
    assert {"dae.py", "neural.py", "supervised.py", "examples.py", "protocols.py"} <= found
    assert not found & {"fhmm.py", "bert4nilm.py", "rollout.py"}


def test_a_module_imported_by_one_that_is_imported_counts():
    assert "states.py" in names("meterveil.attackers.fhmm")


def test_two_modules_differ():
    assert code_hash("meterveil.attackers.dae") != code_hash("meterveil.attackers.co")
