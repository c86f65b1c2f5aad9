"""Store of one home: minutes, days, events and the controller's memory, in SQLite, written by a thread of its own.

A minute is committed with the memory that belongs to it, so that a process killed at any instant loses no
committed minute and continues where it stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.errors import InputError
from meterveil.live.limits import KWH_PER_WS
from meterveil.live.records import Event, MinuteRecord

KEPT_DAYS = 400
"""Minutes older than this are deleted; the sums of their days stay."""
EVENT_DAYS, SNAPSHOT_HOURS = 400, 48
WAITING = 20_000
"""Most entries that wait for a full disk; two weeks of minutes."""
RETRY_S = 2.0
LARGE = 100
"""Arrays with so many numbers are stored apart, and only when they change."""
_ARRAY = "$array"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS minutes (utc_minute INTEGER PRIMARY KEY, day TEXT NOT NULL, load_w REAL, meter_w REAL,
  battery_w REAL, target_w REAL, level_w REAL, soc REAL, known_s REAL NOT NULL, control_s REAL NOT NULL,
  cost REAL NOT NULL, why TEXT, decoy_w REAL);
CREATE TABLE IF NOT EXISTS days (day TEXT PRIMARY KEY, load_kwh REAL NOT NULL, meter_kwh REAL NOT NULL,
  moved_kwh REAL NOT NULL, cost REAL NOT NULL, known_s REAL NOT NULL, control_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS events (utc_s REAL NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_by_time ON events (utc_s);
CREATE TABLE IF NOT EXISTS snapshots (utc_s REAL PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS memory (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS arrays (digest TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

_MERGE = """
INSERT INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (utc_minute) DO UPDATE SET
  load_w = {load_w}, meter_w = {meter_w}, battery_w = {battery_w}, target_w = excluded.target_w,
  level_w = excluded.level_w, decoy_w = excluded.decoy_w, soc = excluded.soc,
  known_s = known_s + excluded.known_s, control_s = control_s + excluded.control_s, cost = cost + excluded.cost,
  why = excluded.why
""".format(
    **{
        name: f"CASE WHEN excluded.{name} IS NULL THEN {name} WHEN {name} IS NULL THEN excluded.{name} "
        f"ELSE ({name} * known_s + excluded.{name} * excluded.known_s) / (known_s + excluded.known_s) END"
        for name in ("load_w", "meter_w", "battery_w")
    }
)
"""A minute that two processes each saw a part of becomes one row: means weighted by the seconds that were seen."""

_ADD_DAY = """
INSERT INTO days VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day) DO UPDATE SET load_kwh = load_kwh + excluded.load_kwh,
  meter_kwh = meter_kwh + excluded.meter_kwh, moved_kwh = moved_kwh + excluded.moved_kwh, cost = cost + excluded.cost,
  known_s = known_s + excluded.known_s, control_s = control_s + excluded.control_s
"""


class Store:
    """SQLite file of one home; writing never waits for the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""
        """What the disk refused last; empty where all is written."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with contextlib.closing(self._connect()) as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise InputError(f"{path} is no store ({error}); name another file or move it away") from error
        self._waiting: queue.Queue[tuple[str, tuple[Any, ...]] | None] = queue.Queue(WAITING)
        self._writer = threading.Thread(target=self._write, name="store", daemon=True)
        self._writer.start()

    def put_minute(self, minute: MinuteRecord, memory: dict[str, Any] | None = None) -> None:
        """Add a minute, its day's sums and the controller's memory, in one transaction."""
        numbers = [None if isinstance(value, float) and not math.isfinite(value) else value for value in minute]
        arrays: dict[str, FloatArray] = {}
        text = None if memory is None else json.dumps(_without_arrays(memory, arrays))
        self._put("minute", (*numbers, text, arrays))

    def put_event(self, event: Event) -> None:
        """Add an event."""
        self._put("event", tuple(event))

    def put_snapshot(self, utc_s: float, state: dict[str, Any]) -> None:
        """Add the full state for a bug report; older than two days are dropped."""
        self._put("snapshot", (utc_s, json.dumps(state, default=_plain)))

    def flush(self, wait_s: float) -> bool:
        """Wait until all that was put is on the disk; return whether it is."""
        end_s = time.monotonic() + wait_s
        while self._waiting.unfinished_tasks and time.monotonic() < end_s:
            time.sleep(0.01)
        return not self._waiting.unfinished_tasks

    def close(self) -> None:
        """Write everything that waits, as far as the disk takes it within some seconds."""
        self._waiting.put(None)
        self._writer.join(10.0)

    def memory(self) -> dict[str, Any]:
        """Return the memory that was stored with the last minute."""
        rows = self._query("SELECT value FROM memory WHERE name = 'controller'")
        arrays = {digest: json.loads(text) for digest, text in self._query("SELECT * FROM arrays")}
        kept: dict[str, Any] = _with_arrays(json.loads(rows[0][0]), arrays) if rows else {}
        return kept

    def minutes(self, first: int, last: int) -> list[tuple[Any, ...]]:
        """Return the minutes from `first` up to, not including, `last` (UTC), oldest first."""
        return self._query("SELECT * FROM minutes WHERE utc_minute >= ? AND utc_minute < ? ORDER BY 1", first, last)

    def days(self, first: str = "") -> list[tuple[Any, ...]]:
        """Return the sums of each local civil day since `first`, oldest first."""
        return self._query("SELECT * FROM days WHERE day >= ? ORDER BY 1", first)

    def events(self, count: int = 50) -> list[tuple[Any, ...]]:
        """Return the latest events, newest first."""
        return self._query("SELECT * FROM events ORDER BY utc_s DESC, rowid DESC LIMIT ?", count)

    def snapshots(self) -> list[tuple[Any, ...]]:
        """Return the states of the last two days, oldest first."""
        return self._query("SELECT * FROM snapshots ORDER BY 1")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=5.0)

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with contextlib.closing(self._connect()) as database:
            return database.execute(sql, values).fetchall()

    def _put(self, kind: str, values: tuple[Any, ...]) -> None:
        try:
            self._waiting.put_nowait((kind, values))
        except queue.Full:
            self.failure = f"{WAITING} entries wait for the disk; the newest are lost"

    def _write(self) -> None:
        """Commit what waits, in order; repeat what the disk refuses."""
        batch: list[tuple[str, tuple[Any, ...]]] = []
        closing, last_try = False, 0.0
        while not (closing and not batch):
            if not batch:
                entry = self._waiting.get()
                closing = closing or entry is None
                batch += [entry] if entry else []
            batch += [entry for entry in self._drained() if entry]
            try:
                with contextlib.closing(self._connect()) as database, database:
                    database.execute("PRAGMA synchronous=FULL")
                    for kind, values in batch:
                        _insert(database, kind, values)
                for _ in batch:
                    self._waiting.task_done()
                batch, self.failure = [], ""
            except sqlite3.Error as error:
                self.failure = f"{self.path.name}: {error}"
                if closing and last_try:
                    return
                last_try = time.monotonic()
                time.sleep(RETRY_S)

    def _drained(self) -> Iterator[tuple[str, tuple[Any, ...]] | None]:
        while True:
            try:
                entry = self._waiting.get_nowait()
            except queue.Empty:
                return
            if entry is None:
                self._waiting.put(None)  # the next round ends
                return
            yield entry


def _insert(database: sqlite3.Connection, kind: str, values: tuple[Any, ...]) -> None:
    if kind == "event":
        database.execute("INSERT INTO events VALUES (?, ?, ?)", values)
    elif kind == "snapshot":
        database.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", values)
        database.execute("DELETE FROM snapshots WHERE utc_s < ?", (values[0] - 3600 * SNAPSHOT_HOURS,))
    else:
        *minute, memory, arrays = values
        database.execute(_MERGE, minute)
        database.execute(_ADD_DAY, _day_sums(MinuteRecord(*minute)))
        if memory is not None:
            database.execute("INSERT OR REPLACE INTO memory VALUES ('controller', ?)", (memory,))
            stored = {digest for (digest,) in database.execute("SELECT digest FROM arrays")}
            database.executemany("DELETE FROM arrays WHERE digest = ?", [(digest,) for digest in stored - set(arrays)])
            new = [(digest, json.dumps(arrays[digest].tolist())) for digest in set(arrays) - stored]
            database.executemany("INSERT INTO arrays VALUES (?, ?)", new)
        if minute[0] % 1440 == 0:
            database.execute("DELETE FROM minutes WHERE utc_minute < ?", (minute[0] - 1440 * KEPT_DAYS,))
            database.execute("DELETE FROM events WHERE utc_s < ?", (60.0 * minute[0] - 86_400.0 * EVENT_DAYS,))


def _without_arrays(value: Any, arrays: dict[str, FloatArray]) -> Any:
    """Move large arrays out, by their digest: most of them change once a day, and disks wear."""
    if isinstance(value, dict):
        return {name: _without_arrays(part, arrays) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(part, arrays) for part in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.size < LARGE:
        return value.tolist()
    digest = hashlib.sha256(f"{value.dtype}{value.shape}".encode() + value.tobytes()).hexdigest()
    arrays[digest] = value.copy()  # the writer is another thread
    return {_ARRAY: digest}


def _plain(value: Any) -> Any:
    """Return what JSON knows of a value."""
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _with_arrays(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {name: _with_arrays(part, arrays) for name, part in value.items()}
    return [_with_arrays(part, arrays) for part in value] if isinstance(value, list) else value


def _day_sums(minute: MinuteRecord) -> tuple[Any, ...]:
    known_kwh = minute.known_s * KWH_PER_WS
    moved_kwh = abs(minute.battery_w or 0.0) * minute.control_s * KWH_PER_WS
    return (
        minute.day,
        (minute.load_w or 0.0) * known_kwh,
        (minute.meter_w or 0.0) * known_kwh,
        moved_kwh,
        minute.cost,
        minute.known_s,
        minute.control_s,
    )


def export_parquet(path: Path, out: Path) -> int:
    """Write all minutes of a store to a Parquet file; return their number."""
    import pyarrow as pa  # noqa: PLC0415  the guard process does without
    from pyarrow import parquet  # noqa: PLC0415

    if not path.is_file():
        raise InputError(f"{path} does not exist; name the store of a guard that has run")
    with contextlib.closing(sqlite3.connect(path)) as database:
        cursor = database.execute("SELECT * FROM minutes ORDER BY 1")
        names = [column[0] for column in cursor.description]
        columns: list[Any] = list(zip(*cursor.fetchall(), strict=True)) or [[] for _ in names]
    table = pa.table(dict(zip(names, map(list, columns), strict=True)))
    times = [datetime.fromtimestamp(60 * minute, UTC) for minute in columns[0]]
    parquet.write_table(table.add_column(0, "time", pa.array(times, pa.timestamp("s", "UTC"))), out)
    return int(table.num_rows)
