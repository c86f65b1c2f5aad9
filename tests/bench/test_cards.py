"""A card names the commit of the package that measured it, wherever the command was typed."""

import subprocess

import pytest

from meterveil.bench import cards


def git(folder, *words):
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository that knows the package, or does not."""

    def make(name, knows_package):
        folder = tmp_path / name
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "cards.py").touch()
        (folder / "other.py").touch()
        git(folder, "add", "cards.py" if knows_package else "other.py")
        git(folder, "commit", "-q", "-m", name)
        return folder

    return make


def test_the_commit_is_that_of_the_package_and_not_of_the_users_folder(checkout, monkeypatch):
    own, users = checkout("own", knows_package=True), checkout("users", knows_package=False)
    monkeypatch.setattr(cards, "__file__", str(own / "cards.py"))
    monkeypatch.chdir(users)
    assert cards.current_commit() == git(own, "describe", "--always", "--abbrev=7")


def test_a_checkout_that_does_not_know_the_package_names_no_commit(checkout, monkeypatch):
    monkeypatch.setattr(cards, "__file__", str(checkout("users", knows_package=False) / "cards.py"))
    assert cards.current_commit() == ""


def test_a_package_outside_any_checkout_names_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(cards, "__file__", str(tmp_path / "cards.py"))
    assert cards.current_commit() == ""
