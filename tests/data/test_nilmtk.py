"""One file here was written by pandas.HDFStore (PyTables, blosc), with the calls of NILMTK's converter.

`nilmtk_by_pandas.h5.gz` proves that the layout is the true one; the other files are written with h5py in that
layout, to bend it.
"""

import gzip
import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from meterveil.data import nilmtk
from meterveil.data.nilmtk import load_plain, nilmtk_houses, read_nilmtk
from meterveil.errors import InputError

START = 1_303_185_600
BUILDING = {
    "instance": 1,
    "elec_meters": {**{n: {"site_meter": True} for n in (1, 2)}, **{n: {"submeter_of": 0} for n in (3, 4, 5)}},
    "appliances": [
        {"type": "sockets", "instance": 1, "meters": [3], "original_name": "kitchen_outlets"},
        {"type": "sockets", "instance": 2, "meters": [4], "original_name": "kitchen_outlets"},
        {"type": "dish washer", "instance": 1, "meters": [5]},
    ],
}
DATASET = {"name": "REDD", "timezone": "US/Eastern"}


def pickled(value, protocol=0) -> np.bytes_:
    return np.bytes_(pickle.dumps(value, protocol))


def add_meter(store, meter, watts, columns=(("power", "active"),), seconds=None, kind=b"datetime64", ticks=10**9):
    values = np.asarray(watts, dtype="f4").reshape(-1, len(columns))
    seconds = START + 60 * np.arange(len(values)) if seconds is None else np.asarray(seconds)
    rows = np.zeros(len(values), dtype=[("index", "<i8"), ("values_block_0", "<f4", (len(columns),))])
    rows["index"], rows["values_block_0"] = seconds * ticks, values
    table = store.create_dataset(f"building1/elec/meter{meter}/table", data=rows, chunks=(64,), maxshape=(None,))
    table.attrs["index_kind"] = np.bytes_(kind)
    table.attrs["values_block_0_kind"] = pickled([tuple(column) for column in columns])


def write(path: Path, meters=None, building=BUILDING, dataset=DATASET, protocol=0) -> Path:
    with h5py.File(path, "w") as store:
        given = {1: [100, 101], 2: [10, 20], 3: [1, 2], 4: [3, 4], 5: [5, 6]} if meters is None else meters
        for meter, watts in given.items():
            add_meter(store, meter, watts)
        store.attrs["metadata"] = pickled(dataset, protocol)
        store["building1"].attrs["metadata"] = pickled(building, protocol)
    return path


@pytest.fixture
def by_pandas(tmp_path) -> Path:
    path = tmp_path / "ukdale.h5"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "nilmtk_by_pandas.h5.gz").read_bytes()))
    return path


def test_a_file_that_pandas_wrote_is_read(by_pandas):
    home = read_nilmtk(by_pandas, house=1)
    assert home.name == "UK-DALE house_1"
    assert home.minutes[0] == pd.Timestamp("2013-03-18", tz="Europe/London")
    assert home.aggregate_w.tolist() == list(range(300, 420))
    assert home.appliances_w["kettle"].tolist() == list(range(2000, 2120))
    assert list(home.appliances_w) == ["kettle", "kitchen_lights", "lighting_circuit"]
    assert home.units == {"aggregate": "VA", "kettle": "W", "kitchen_lights": "W", "lighting_circuit": "W"}
    assert home.appliances_w["lighting_circuit"][0] == 100.0
    assert "meter 54 reads the same mains again: left out" in home.notes
    assert "kitchen_lights: metered again within lighting_circuit" in home.notes


def test_two_mains_add_up_and_equal_names_are_numbered(tmp_path):
    home = read_nilmtk(write(tmp_path / "redd.h5"))
    assert (home.name, home.timezone) == ("REDD house_1", "US/Eastern")
    assert home.aggregate_w.tolist() == [110, 121]
    assert {name: watts.tolist() for name, watts in home.appliances_w.items()} == {
        "kitchen_outlets_1": [1, 2],
        "kitchen_outlets_2": [3, 4],
        "dishwasher": [5, 6],
    }


def test_only_the_appliances_asked_for_are_read(tmp_path):
    path = write(tmp_path / "redd.h5")
    assert list(read_nilmtk(path, 1, ["dish washer"]).appliances_w) == ["dishwasher"]
    with pytest.raises(InputError, match="building 1 has no oven; it has kitchen_outlets_1"):
        read_nilmtk(path, 1, ["oven"])
    assert read_nilmtk(path, aggregate="submeters").aggregate_w.tolist() == [9, 12]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_metadata_of_every_pickle_protocol_is_read(tmp_path, protocol):
    dataset = {**DATASET, "date": pd.Timestamp("2014-11-14").date(), "time": pd.Timestamp(0).to_pydatetime()}
    assert read_nilmtk(write(tmp_path / "redd.h5", dataset=dataset, protocol=protocol)).timezone == "US/Eastern"


def test_metadata_that_python_2_wrote_is_read():
    text = b"(dp0\nS'timezone'\np1\nS'US/Eastern'\np2\nsS'schema'\np3\nL3L\ns."
    assert load_plain("metadata", text) == {"timezone": "US/Eastern", "schema": 3}


@pytest.mark.parametrize(("kind", "ticks"), [(b"datetime64[us]", 10**6), (b"datetime64[s]", 1)])
def test_stamps_are_as_fine_as_the_table_says(tmp_path, kind, ticks):
    path = write(tmp_path / "redd.h5", meters={1: [100], 3: [1]})
    with h5py.File(path, "a") as store:
        add_meter(store, 2, [50, 60], kind=kind, ticks=ticks)
    assert read_nilmtk(path).aggregate_w.tolist() == [150]


@pytest.mark.parametrize("rows_per_chunk", [7, 64, 1000])
def test_chunks_do_not_change_the_minutes(tmp_path, monkeypatch, rows_per_chunk):
    rng = np.random.default_rng(0)
    seconds = START + np.cumsum(rng.integers(1, 12, 500))
    watts = rng.random(500) * 1000
    watts[100:120] = np.nan
    path = write(tmp_path / "redd.h5", meters={3: [1]})
    with h5py.File(path, "a") as store:
        add_meter(store, 1, watts, seconds=seconds)
    expected = pd.Series(watts.astype("f4").astype(float)).groupby(seconds // 60).mean()
    monkeypatch.setattr(nilmtk, "ROWS_PER_CHUNK", rows_per_chunk)
    home = read_nilmtk(path, appliances=[])
    known = ~expected.isna().to_numpy()
    at = np.asarray(expected.index[known]) - home.minutes[0].timestamp() // 60
    np.testing.assert_allclose(home.aggregate_w[at.astype(int)], expected[known])


@pytest.mark.parametrize("rows_per_chunk", [2, 1000])
def test_stamps_that_go_back_are_sorted_and_said(tmp_path, monkeypatch, rows_per_chunk):
    path = write(tmp_path / "redd.h5", meters={3: [1]})
    with h5py.File(path, "a") as store:
        add_meter(store, 1, [4, 3, 2, 1], seconds=START + 60 * np.array([3, 2, 1, 0]))
    monkeypatch.setattr(nilmtk, "ROWS_PER_CHUNK", rows_per_chunk)
    home = read_nilmtk(path, appliances=[])
    assert home.aggregate_w.tolist() == [1, 2, 3, 4]
    assert any("went back in time" in note for note in home.notes)


class Malicious:
    """Create a file when it is unpickled by a reader that runs what it reads."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["root", "building", "columns"])
def test_a_malicious_pickle_runs_nothing(tmp_path, protocol, place):
    trap = tmp_path / "trap"
    harmful = pickled({"timezone": Malicious(trap)}, protocol)
    path = write(tmp_path / "redd.h5")
    with h5py.File(path, "a") as store:
        if place == "columns":
            store["building1/elec/meter1/table"].attrs["values_block_0_kind"] = harmful
        else:
            store["/" if place == "root" else "building1"].attrs["metadata"] = harmful
    with pytest.raises(InputError, match=r"is not plain metadata \(it names (posix|nt)\.mkdir\)"):
        read_nilmtk(path)
    assert not trap.exists()
    pickle.loads(harmful)
    assert trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cbuiltins\neval\n(V1\ntR.",
        b"cos\nsystem\n(Vtrue\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"\x80\x04N",
        b"rubbish",
        b"",
    ],
)
def test_anything_but_plain_data_is_refused(data):
    with pytest.raises(InputError, match="is not plain metadata"):
        load_plain("metadata", data)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_a_truncated_file_is_named(by_pandas, share):
    whole = by_pandas.read_bytes()
    by_pandas.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match="is not a whole HDF5 file"):
        read_nilmtk(by_pandas)


def test_a_file_damaged_in_its_data_is_named(by_pandas):
    whole = bytearray(by_pandas.read_bytes())
    with h5py.File(by_pandas) as store:
        chunk = store["building1/elec/meter1/table"].id.get_chunk_info(0)
    whole[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    by_pandas.write_bytes(whole)
    with pytest.raises(InputError, match="is not a whole HDF5 file"):
        read_nilmtk(by_pandas)


def test_other_files_are_refused(tmp_path):
    text = tmp_path / "notes.h5"
    text.write_text("not HDF5 at all" * 100)
    with pytest.raises(InputError, match="is not a whole HDF5 file"):
        read_nilmtk(text)
    with pytest.raises(InputError, match="does not exist"):
        read_nilmtk(tmp_path / "none.h5")
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as store:
        store["numbers"] = np.arange(3)
    with pytest.raises(InputError, match="has no /building<N>"):
        read_nilmtk(other)


def test_houses_are_listed_and_asked_for(tmp_path):
    path = write(tmp_path / "redd.h5")
    with h5py.File(path, "a") as store:
        store.copy("building1", "building12")
    assert nilmtk_houses(path) == [1, 12]
    with pytest.raises(InputError, match=r"has several houses \(house_1, house_12\); name one"):
        read_nilmtk(path)
    with pytest.raises(InputError, match="has no house_3; it has house_1, house_12"):
        read_nilmtk(path, house=3)
    assert read_nilmtk(path, house=12).name == "REDD house_12"


def test_a_file_that_does_not_say_enough_is_refused_or_noted(tmp_path):
    silent = write(tmp_path / "silent.h5", building={"instance": 1})
    with pytest.raises(InputError, match="building 1 does not describe its meters"):
        read_nilmtk(silent)
    without = {**BUILDING, "elec_meters": {3: {"submeter_of": 0}}}
    with pytest.raises(InputError, match="has no mains meter"):
        read_nilmtk(write(tmp_path / "without.h5", building=without))
    nowhere = read_nilmtk(write(tmp_path / "nowhere.h5", dataset={}), dataset="Mine")
    assert (nowhere.name, nowhere.timezone) == ("Mine house_1", "UTC")
    assert any("names no time zone" in note for note in nowhere.notes)
    with pytest.raises(InputError, match="'Mars/Base' is not a time zone"):
        read_nilmtk(write(tmp_path / "mars.h5", dataset={"timezone": "Mars/Base"}))


def test_a_meter_without_power_is_refused(tmp_path):
    path = write(tmp_path / "redd.h5", meters={2: [1]})
    with h5py.File(path, "a") as store:
        add_meter(store, 1, [240, 240], columns=(("voltage", ""),))
    with pytest.raises(InputError, match="power \\(active or apparent\\) is needed"):
        read_nilmtk(path)
