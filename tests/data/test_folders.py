"""Where data sets are looked for."""

import pytest
from privileges import without_privileges

from meterveil.data.files import data_folder
from meterveil.errors import InputError


def test_a_named_folder_wins_over_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_DATA", str(tmp_path / "other"))
    assert data_folder(tmp_path) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder() == tmp_path / "other"


@pytest.mark.parametrize("named", [None, "nowhere", "file"])
def test_what_is_no_folder_is_refused_with_the_two_ways_to_name_one(tmp_path, monkeypatch, named):
    monkeypatch.delenv("METERVEIL_DATA", raising=False)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"no folder of data sets.*; pass --data or set METERVEIL_DATA"):
        data_folder(named and tmp_path / named)


def test_one_file_of_a_data_set_will_do_where_it_can_be_read(tmp_path):
    (tmp_path / "ukdale.h5").touch()
    assert data_folder(tmp_path / "ukdale.h5", or_file=True) == tmp_path / "ukdale.h5"


def test_a_folder_that_may_not_be_read_is_refused_as_such(tmp_path):
    (tmp_path / "locked" / "inner").mkdir(parents=True)
    (tmp_path / "locked").chmod(0)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    for name in ("locked", "locked/inner"):
        with (
            without_privileges(),
            pytest.raises(InputError, match=f"cannot read .*{name}: Permission"),
        ):
            data_folder(tmp_path / name)
    (tmp_path / "locked").chmod(0o755)
