"""Text tables and Parquet files as Arrow tables; separator and decimal sign are detected."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from meterveil.data.household import FloatArray
from meterveil.errors import InputError

SNIFFED_BYTES = 65_536
SEPARATORS = (",", ";", "\t", "|")
MISSING = ("", "?", "-", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "unavailable", "unknown")
"""Words that loggers write for a missing reading."""

CONTROL_CHARACTERS = [chr(code) for code in range(32) if chr(code) not in "\t\n\r\f\x1a"]
"""Characters of which a text file has at most one kind."""


VALUE = re.compile(r"[-+.]?\d|[-+]?(inf|nan)", re.I)
"""Start of a number or of a time stamp; the name of a column starts otherwise."""


class Dialect(NamedTuple):
    """Format of a text table."""

    separator: str
    decimal: str
    encoding: str
    columns: tuple[str, ...]
    header_line: int
    """Number of the line that names the columns; blank lines may come before it."""


def column_names(path: Path) -> tuple[str, ...]:
    """Name the columns of a text table or Parquet file without reading its rows."""
    parquet = _parquet(path)
    return tuple(parquet.schema_arrow.names) if parquet else sniff(path).columns


def read_columns(path: Path, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read some columns; `types` sets the type of columns of a text table, others are detected."""
    if parquet := _parquet(path):
        return parquet.read(columns=list(columns))
    dialect = sniff(path)
    try:
        return pa.csv.read_csv(
            path,
            pa.csv.ReadOptions(encoding=dialect.encoding, column_names=dialect.columns, skip_rows=dialect.header_line),
            pa.csv.ParseOptions(delimiter=dialect.separator),
            pa.csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict(types),
                decimal_point=dialect.decimal,
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise InputError(f"{path}: not a table of {len(dialect.columns)} columns: {_one_line(error)}") from None


def sniff(path: Path) -> Dialect:
    """Find separator, decimal sign, encoding and column names from the first lines."""
    with path.open("rb") as file:
        text, encoding = _decoded(file.read(SNIFFED_BYTES))
    if sum(character in text for character in CONTROL_CHARACTERS) > 1:
        raise InputError(f"{path} is not text; give a CSV file, or name a Parquet file .parquet")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InputError(f"{path} is empty; give a file with readings")
    header_line, header = lines[0]
    separator = max(SEPARATORS, key=header.count)
    columns = tuple(name.strip() for name in next(csv.reader([header], delimiter=separator)))
    repeated = [name for name in columns if columns.count(name) > 1 and name]
    if repeated:
        raise InputError(f"{path} has two columns named {repeated[0]}; give each column its own name")
    if all(name in MISSING or VALUE.match(name) for name in columns):
        raise InputError(f"{path} has no header: its first line is {header[:60]}; add a line that names the columns")
    decimal = _decimal([line for _, line in lines[1:]], separator)
    return Dialect(separator, decimal, encoding, columns, header_line)


def to_numbers(where: str, column: pa.ChunkedArray) -> FloatArray:
    """Convert a column to float64, NaN where it has no value; an error names the row that is not a number."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        text = [None if value is None else value.strip() for value in column.to_pylist()]
        for row, value in enumerate(text, start=1):
            if value is not None and not _is_number(value):
                raise InputError(f"{where}, row {row}: {value!r} is not a number; correct the row or leave it empty")
        return np.array([np.nan if value is None else float(value) for value in text])
    if not is_number_column(column):
        raise InputError(f"{where} holds {column.type}, not numbers; name a column with power readings")
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)


def is_number_column(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds numbers, or nothing at all."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(column.type) for test in tests)


def _parquet(path: Path) -> pa.parquet.ParquetFile | None:
    if path.suffix.lower() not in (".parquet", ".pq"):
        return None
    try:
        return pa.parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a Parquet file: {_one_line(error)}") from None


def _decoded(head: bytes) -> tuple[str, str]:
    """Decode the start of a file, which may end within a character."""
    try:
        return head.decode("utf-8-sig"), "utf8"
    except UnicodeDecodeError as error:
        if error.start > len(head) - 4:
            return head[: error.start].decode("utf-8-sig"), "utf8"
    return head.decode("latin-1"), "latin-1"


def _decimal(rows: list[str], separator: str) -> str:
    if separator == ",":
        return "."
    edge = re.escape(separator)
    comma = sum(bool(re.search(r"\d,\d", row)) for row in rows)
    point = sum(bool(re.search(rf"(^|{edge})\s*-?\d+\.\d+\s*({edge}|$)", row)) for row in rows)
    return "," if comma > point else "."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
