import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from meterveil.data import synthetic
from meterveil.data.cache import SMALLEST_CACHED_BYTES, cache_folder, cached, household_digest, key_of, library_versions
from meterveil.data.channels import read_channel
from meterveil.data.household import Series

SERIES = Series(np.array([5, 6, 9], dtype=np.int64), np.array([1.5, 0.1 + 0.2, 1e-300]), ("a note", "två"))


class Reader:
    """Count how often the file itself is read."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Series:
        self.calls += 1
        return SERIES


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def large_file(tmp_path) -> Path:
    path = tmp_path / "channel_1.dat"
    path.write_bytes(b"0" * SMALLEST_CACHED_BYTES)
    return path


def assert_same(series: Series) -> None:
    np.testing.assert_array_equal(series.minute, SERIES.minute)
    np.testing.assert_array_equal(series.watts, SERIES.watts)
    assert (series.minute.dtype, series.watts.dtype) == (np.int64, np.float64)
    assert series.notes == SERIES.notes


def test_a_file_is_read_once_and_comes_back_the_same_notes_included(folder, large_file):
    reader = Reader()
    for _ in range(3):
        assert_same(cached(large_file, "channel", reader))
    assert reader.calls == 1
    assert [entry.suffix for entry in folder.iterdir()] == [".parquet"]


def test_a_small_file_is_not_cached(folder, tmp_path):
    path, reader = tmp_path / "small.dat", Reader()
    path.write_bytes(b"0")
    cached(path, "channel", reader)
    cached(path, "channel", reader)
    assert reader.calls == 2
    assert not folder.exists()


def test_a_changed_file_is_read_again(folder, large_file):
    reader = Reader()
    cached(large_file, "channel", reader)
    os.utime(large_file, ns=(1, 1))
    cached(large_file, "channel", reader)
    large_file.write_bytes(b"0" * (SMALLEST_CACHED_BYTES + 1))
    os.utime(large_file, ns=(1, 1))
    cached(large_file, "channel", reader)
    assert reader.calls == 3


def test_two_keys_of_one_file_are_kept_apart(folder, large_file):
    reader = Reader()
    cached(large_file, "Appliance1", reader)
    cached(large_file, "Appliance2", reader)
    assert reader.calls == 2


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"x" * 99])
def test_a_broken_entry_is_ignored_and_written_anew(folder, large_file, spoil):
    reader = Reader()
    cached(large_file, "channel", reader)
    (entry,) = folder.iterdir()
    entry.write_bytes(spoil(entry.read_bytes()))
    assert_same(cached(large_file, "channel", reader))
    assert_same(cached(large_file, "channel", reader))
    assert reader.calls == 2


def test_a_parquet_file_of_something_else_is_ignored(folder, large_file):
    reader = Reader()
    cached(large_file, "channel", reader)
    (entry,) = folder.iterdir()
    parquet.write_table(pa.table({"other": [1]}), entry)
    assert_same(cached(large_file, "channel", reader))
    assert reader.calls == 2


def test_a_cache_that_cannot_be_written_does_not_stop_the_reading(large_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "file"))
    assert_same(cached(large_file, "channel", Reader()))
    monkeypatch.setenv("METERVEIL_CACHE", "/proc/nowhere")
    assert_same(cached(large_file, "channel", Reader()))


def test_no_part_of_an_entry_is_left_behind_when_writing_fails(folder, large_file):
    reader = Reader()
    cached(large_file, "channel", reader)
    (entry,) = folder.iterdir()
    entry.unlink()
    entry.mkdir()
    assert_same(cached(large_file, "channel", reader))
    assert list(folder.iterdir()) == [entry]


def test_the_cache_lies_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("METERVEIL_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "meterveil"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "meterveil"


def test_a_channel_comes_from_the_cache_the_second_time(folder, tmp_path):
    path = tmp_path / "channel_2.dat"
    path.write_text("".join(f"{1_352_500_095 + 6 * n} {n % 3000}\n" for n in range(80_000)))
    first = read_channel(path)
    stamp = path.stat().st_mtime_ns
    path.write_text("x" * path.stat().st_size)
    os.utime(path, ns=(stamp, stamp))
    second = read_channel(path)
    np.testing.assert_array_equal(first.watts, second.watts)


def test_equal_parts_have_equal_keys_and_an_absent_library_has_no_version():
    assert key_of("co", ("kettle",), {"a": 1, "b": None}) == key_of("co", ["kettle"], {"b": None, "a": 1})
    assert key_of("co", 1) != key_of("co", 2)
    assert library_versions("numpy", "no-such-library") == {"numpy": np.__version__}


def test_the_digest_of_a_household_covers_its_clock_its_meter_and_its_targets():
    home = synthetic.household(np.random.default_rng(0), days=1)
    kettle_w = home.appliances_w["kettle"]
    others = [
        replace(home, aggregate_w=home.aggregate_w + 1.0),
        replace(home, minutes=home.minutes.tz_convert("America/New_York")),
        replace(home, appliances_w=home.appliances_w | {"kettle": kettle_w + 1.0}),
        replace(home, appliances_w=home.appliances_w | {"aggregate": home.aggregate_w + 1.0}),
    ]
    digests = {household_digest(other, ("kettle", "aggregate")) for other in [home, *others]}
    assert len(digests) == 5
    other_oven = replace(home, appliances_w=home.appliances_w | {"oven": kettle_w})
    assert household_digest(other_oven, ("kettle", "aggregate")) in digests
