"""The store: no committed minute is lost, none is there twice, and a year is read at once."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from meterveil.live.records import Event, MinuteRecord
from meterveil.live.store import Store, export_parquet

MINUTE = MinuteRecord(28_000_000, "2023-03-28", 400.0, 500.0, 100.0, 500.0, 500.0, 0.5, 60.0, 60.0, 0.01, "hold", 0.0)


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "state" / "home.sqlite")
    yield opened
    opened.close()


def test_minutes_days_events_and_memory_come_back(store):
    store.put_minute(MINUTE, {"budget": 3})
    store.put_minute(MINUTE._replace(utc_minute=28_000_001, load_w=math.nan, known_s=0.0))
    store.put_event(Event(1.0, "meter_failed", "no reading"))
    store.close()
    rows = store.minutes(28_000_000, 28_000_002)
    assert [row[2] for row in rows] == [400.0, None]
    assert store.memory() == {"budget": 3}
    assert store.days()[0][:2] == ("2023-03-28", pytest.approx(400.0 / 60_000))
    assert store.events() == [(1.0, "meter_failed", "no reading")]


def test_long_arrays_of_the_memory_are_stored_once(store):
    days = np.arange(900.0).reshape(3, 300)
    for number in range(3):
        memory = {"control": (np.ones(1), (2.5, days), [number])}
        store.put_minute(MINUTE._replace(utc_minute=number), memory)
    store.close()
    assert store.memory() == {"control": [[1.0], [2.5, days.tolist()], [2]]}
    with sqlite3.connect(store.path) as database:
        assert database.execute("SELECT count(*) FROM arrays").fetchone() == (1,)
        (text,) = database.execute("SELECT value FROM memory").fetchone()
    assert len(text) < 200


def test_two_parts_of_a_minute_become_one_row(store):
    store.put_minute(MINUTE._replace(known_s=20.0, load_w=100.0))
    store.put_minute(MINUTE._replace(known_s=40.0, load_w=400.0))
    store.close()
    (row,) = store.minutes(0, 2**40)
    assert row[2] == pytest.approx(300.0)
    assert row[8] == 60.0


def test_store_and_folder_are_readable_by_the_owner_only(store):
    store.put_minute(MINUTE)
    store.close()
    assert store.path.stat().st_mode & 0o077 == 0
    assert store.path.parent.stat().st_mode & 0o077 == 0


def test_what_a_full_disk_refuses_is_named_and_written_later(store, monkeypatch):
    monkeypatch.setattr("meterveil.live.store.RETRY_S", 0.05)
    connect = Store._connect
    monkeypatch.setattr(Store, "_connect", lambda self: _full())
    store.put_minute(MINUTE)
    _until(lambda: "disk is full" in store.failure)
    monkeypatch.setattr(Store, "_connect", connect)
    _until(lambda: store.failure == "")
    assert len(store.minutes(0, 2**40)) == 1


def _full():
    raise sqlite3.OperationalError("database or disk is full")


def _until(holds, seconds=5.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


WRITER = """
import sys
from pathlib import Path
from meterveil.live.records import MinuteRecord
from meterveil.live.store import Store
store = Store(Path(sys.argv[1]))
number = int(sys.argv[2])
while True:
    minute = MinuteRecord(number, "2023-03-28", 1.0, 1.0, 0.0, 1.0, 1.0, 0.5, 60.0, 0.0, 0.0, "", 0.0)
    store.put_minute(minute, {"last": number})
    while not store.minutes(number, number + 1):
        pass
    print(number, flush=True)
    number += 1
"""


def test_a_killed_process_loses_no_committed_minute(tmp_path):
    path, first = tmp_path / "home.sqlite", 0
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first)], stdout=subprocess.PIPE)
        said = [int(writer.stdout.readline()) for _ in range(5)]
        os.kill(writer.pid, signal.SIGKILL)
        said += [int(line) for line in writer.communicate()[0].split()]
        store = Store(path)
        kept = [row[0] for row in store.minutes(0, 2**40)]
        assert kept == list(range(kept[-1] + 1))
        assert kept[-1] >= said[-1]
        assert store.memory() == {"last": kept[-1]}
        store.close()
        first = kept[-1] + 1


def test_old_minutes_are_dropped_but_their_days_stay(store):
    store.put_minute(MINUTE)
    later = (MINUTE.utc_minute // 1440 + 401) * 1440
    store.put_minute(MINUTE._replace(utc_minute=later, day="2024-05-03"))
    store.close()
    assert [row[0] for row in store.minutes(0, 2**40)] == [later]
    assert [row[0] for row in store.days()] == ["2023-03-28", "2024-05-03"]


def test_a_year_of_days_is_read_in_less_than_a_tenth_of_a_second(store):
    with sqlite3.connect(store.path) as database:
        rows = [(f"{year}-{day:03d}", 10.0, 10.0, 4.0, 0.1, 86400.0, 86400.0) for year in (1, 2) for day in range(365)]
        database.executemany("INSERT INTO days VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    began = time.perf_counter()
    assert len(store.days("2-")) == 365
    assert time.perf_counter() - began < 0.1


def test_minutes_are_exported_to_parquet(store, tmp_path):
    from pyarrow import parquet  # noqa: PLC0415

    store.put_minute(MINUTE)
    store.close()
    assert export_parquet(store.path, tmp_path / "minutes.parquet") == 1
    table = parquet.read_table(tmp_path / "minutes.parquet").to_pylist()
    assert (table[0]["load_w"], table[0]["time"].year) == (400.0, 2023)


def test_flush_waits_until_everything_is_on_the_disk(store, monkeypatch):
    monkeypatch.setattr("meterveil.live.store.RETRY_S", 0.05)
    connect = Store._connect
    monkeypatch.setattr(Store, "_connect", lambda self: _full())
    store.put_minute(MINUTE, {"budget": 3})
    assert not store.flush(0.2)
    monkeypatch.setattr(Store, "_connect", connect)
    assert store.flush(5.0)
    assert store.memory() == {"budget": 3}
