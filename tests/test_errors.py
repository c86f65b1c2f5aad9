from meterveil.errors import how_to_install


def test_in_a_clone_the_pinned_versions_are_installed(tmp_path):
    (tmp_path / "constraints.txt").touch()
    assert how_to_install("audit", tmp_path) == ".venv/bin/pip install -c constraints.txt -e '.[audit]'"


def test_elsewhere_the_package_is_named_and_the_size_of_torch_is_said(tmp_path):
    assert how_to_install("audit", tmp_path) == "pip install 'meterveil[audit]'"
    hint = how_to_install("train", tmp_path)
    assert hint.startswith("pip install 'meterveil[train]'")
    assert "torch's CPU build" in hint
