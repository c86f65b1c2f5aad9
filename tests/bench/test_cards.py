"""A card names the commit that measured it, wherever the command was typed; what a kill left is no card."""

import subprocess

import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card


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


def test_what_a_kill_left_beside_the_cards_is_not_read(tmp_path):
    [written] = cards.write(tmp_path, [Card("many_days", "flat", "f1", "redd", 0.5)])
    written.with_name(".flat-x1y2z3.json").touch()
    assert cards.files(tmp_path) == [written]
    assert [card["measured"] for card in cards.read(tmp_path)] == [0.5]
