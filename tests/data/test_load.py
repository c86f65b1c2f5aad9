import gzip
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from privileges import without_privileges

from meterveil.data.files import data_folder
from meterveil.data.load import find_kind, houses, load
from meterveil.errors import InputError

REFIT_HEADER = "Time,Unix,Aggregate," + ",".join(f"Appliance{n}" for n in range(1, 10)) + ",Issues"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))


def kind_and_houses(path):
    return find_kind(path), tuple(houses(path))


def release(root: Path, mains: str, houses=(1, 2)) -> Path:
    for house in houses:
        folder = root / f"house_{house}"
        folder.mkdir(parents=True)
        (folder / "labels.dat").write_text(f"1 {mains}\n2 kettle\n")
        (folder / "channel_1.dat").write_text("1363564800 300\n1363564860 310\n")
        (folder / "channel_2.dat").write_text("1363564800 0\n1363564860 10\n")
    return root


def refit(folder: Path, house=2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"CLEAN_House{house}.csv"
    path.write_text(f"{REFIT_HEADER}\n2014-03-01 00:00:00,1393632000,55,1,0,0,0,0,0,0,0,0,0\n")
    return path


def nilmtk(folder: Path) -> Path:
    path = folder / "ukdale.h5"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "nilmtk_by_pandas.h5.gz").read_bytes()))
    return path


def own(folder: Path, name="mine.csv") -> Path:
    path = folder / name
    path.write_text("time,power_w\n2024-01-10 00:00,100\n2024-01-10 00:01,200\n")
    return path


def test_every_source_is_recognised_and_read(tmp_path):
    ukdale, redd = release(tmp_path / "ukdale", "aggregate"), release(tmp_path / "redd" / "low_freq", "mains")
    sources = {
        ukdale: ("ukdale", "UK-DALE house_2"),
        ukdale / "house_2": ("ukdale", "UK-DALE house_2"),
        redd.parent: ("redd", "REDD house_2"),
        redd: ("redd", "REDD house_2"),
        refit(tmp_path / "refit"): ("refit", "REFIT house_2"),
        tmp_path / "refit": ("refit", "REFIT house_2"),
    }
    for path, (kind, name) in sources.items():
        assert find_kind(path) == kind
        assert load(path, None if path.name == "house_2" else 2).name == name
    assert load(nilmtk(tmp_path), house=1).name == "UK-DALE house_1"
    assert load(own(tmp_path)).name == "mine"
    assert load(str(own(tmp_path, "mine.txt"))).aggregate_w.tolist() == [100, 200]


def test_options_reach_the_reader(tmp_path):
    ukdale = release(tmp_path / "ukdale", "aggregate")
    assert load(ukdale, 1, appliances=[]).appliances_w == {}
    assert load(ukdale, 1, aggregate="submeters").aggregate_w.tolist() == [0, 10]
    assert load(own(tmp_path), timezone="Europe/London").timezone == "Europe/London"


def test_an_option_of_another_kind_is_refused(tmp_path):
    path = own(tmp_path)
    with pytest.raises(InputError, match=r"is read as table, which has no option house; it has timestamp, power"):
        load(path, house=2)
    with pytest.raises(InputError, match=r"is read as ukdale, which has no option unit; it has house, appliances"):
        load(release(tmp_path / "ukdale", "aggregate"), 1, unit="kW")


def test_houses_are_listed_without_reading_them(tmp_path):
    assert kind_and_houses(release(tmp_path / "ukdale", "aggregate", (1, 5))) == ("ukdale", (1, 5))
    assert kind_and_houses(release(tmp_path / "redd" / "low_freq", "mains", (3,)).parent) == ("redd", (3,))
    refit(tmp_path / "refit", 21)
    assert kind_and_houses(refit(tmp_path / "refit", 2)) == ("refit", (2,))
    assert kind_and_houses(tmp_path / "refit") == ("refit", (2, 21))
    assert kind_and_houses(nilmtk(tmp_path)) == ("nilmtk", (1,))
    assert kind_and_houses(own(tmp_path)) == ("table", ())
    assert kind_and_houses("synthetic") == ("synthetic", ())


def test_the_word_synthetic_is_a_household_that_its_seed_decides():
    first, again, other = (load("synthetic", days=1), load("synthetic", days=1), load("synthetic", days=1, seed=1))
    np.testing.assert_array_equal(first.aggregate_w, again.aggregate_w)
    assert not np.array_equal(first.aggregate_w, other.aggregate_w)
    assert load("synthetic", days=2, start=date(2024, 1, 1)).days() == [date(2024, 1, 1), date(2024, 1, 2)]


def test_what_is_not_understood_lists_what_is(tmp_path):
    picture = tmp_path / "house.png"
    picture.write_bytes(b"\x89PNG")
    with pytest.raises(InputError, match=r"is of no known kind; give a UK-DALE or REDD folder .* synthetic"):
        load(picture)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is a folder without data of a known kind; give a UK-DALE"):
        load(tmp_path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "nowhere")


def test_a_folder_that_may_not_be_entered_is_named(tmp_path):
    ukdale = release(tmp_path / "ukdale", "aggregate")
    ukdale.chmod(0)
    try:
        with without_privileges(), pytest.raises(InputError, match="may not be read"):
            load(ukdale / "house_1")
    finally:
        ukdale.chmod(0o700)


def test_the_real_data_are_recognised(real_data):
    assert kind_and_houses(real_data / "ukdale") == ("ukdale", (1, 2))
    assert kind_and_houses(real_data / "redd") == ("redd", (1, 2, 3, 4))
    assert kind_and_houses(real_data / "refit") == ("refit", (2,))
    assert load(real_data / "redd", 2, appliances=["fridge"]).timezone == "America/New_York"


def test_a_named_folder_wins_over_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_DATA", str(tmp_path / "other"))
    assert data_folder(tmp_path) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder() == tmp_path / "other"


@pytest.mark.parametrize("named", [None, "nowhere", "file"])
def test_what_is_no_folder_is_refused_with_the_two_ways_to_name_one(tmp_path, monkeypatch, named):
    monkeypatch.delenv("METERVEIL_DATA", raising=False)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"folder of data sets.*; pass `data` or set METERVEIL_DATA"):
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
        with without_privileges(), pytest.raises(InputError, match=f"cannot read .*{name}: Permission"):
            data_folder(tmp_path / name)
    (tmp_path / "locked").chmod(0o755)
