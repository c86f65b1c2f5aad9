"""Text tables and Parquet files as Arrow tables, whatever separator and decimal sign they use."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
"""Words that loggers write where they have no reading."""

CONTROL_CHARACTERS = [chr(code) for code in range(32) if chr(code) not in "\t\n\r\f\x1a"]
"""A text has none of these; two of them together are a binary file."""

PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class Dialect:
    """Say how a text table is written."""

    separator: str
    decimal: str
    encoding: str
    columns: tuple[str, ...]
    header_line: int = 1
    """Number of the line that names the columns; blank lines may come before it."""


def is_parquet(path: Path) -> bool:
    """Tell Parquet from text by the file's name."""
    return path.suffix.lower() in PARQUET_SUFFIXES


def column_names(path: Path) -> tuple[str, ...]:
    """Name the columns of a text table or Parquet file without reading its rows."""
    if is_parquet(path):
        return tuple(_parquet(path).schema_arrow.names)
    return sniff(path).columns


def read_columns(path: Path, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read some columns; those in `types` as that type (text only), the others as what they look like."""
    if is_parquet(path):
        return _parquet(path).read(columns=list(columns))
    dialect = sniff(path)
    try:
        return pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(
                encoding=dialect.encoding,
                column_names=list(dialect.columns),
                skip_rows=dialect.header_line,
            ),
            parse_options=pa.csv.ParseOptions(delimiter=dialect.separator),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict(types),
                decimal_point=dialect.decimal,
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise InputError(
            f"{path}: not a table of {len(dialect.columns)} columns: {_one_line(error)}"
        ) from None


def sniff(path: Path) -> Dialect:
    """Find separator, decimal sign, encoding and column names from the first lines."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
    text, encoding = _decoded(head)
    if sum(character in text for character in CONTROL_CHARACTERS) > 1:
        raise InputError(f"{path} is not text; give a CSV file, or name a Parquet file .parquet")
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    lines = [line for _, line in numbered]
    if not lines:
        raise InputError(f"{path} is empty; give a file with readings")
    separator = max(SEPARATORS, key=lines[0].count)
    columns = tuple(name.strip() for name in next(csv.reader([lines[0]], delimiter=separator)))
    repeated = [name for name in columns if columns.count(name) > 1 and name]
    if repeated:
        raise InputError(f"{path} has two columns named {repeated[0]}; give each column its own name")
    if all(_is_number(name) for name in columns):
        raise InputError(
            f"{path} has no header: its first line is {lines[0][:60]}; add a line that names the columns"
        )
    return Dialect(separator, _decimal(lines[1:], separator), encoding, columns, numbered[0][0])


def to_numbers(where: str, column: pa.ChunkedArray) -> FloatArray:
    """Convert a column to float64, NaN where it has no value; name the row of a text that is no number."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pa.chunked_array([_parsed(where, column)])
    if not _is_numeric(column.type):
        raise InputError(f"{where} holds {column.type}, not numbers; name a column with power readings")
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)


def _parsed(where: str, column: pa.ChunkedArray) -> pa.Array:
    text = [None if value is None else value.strip() for value in column.to_pylist()]
    for row, value in enumerate(text, start=1):
        if value is not None and not _is_number(value):
            raise InputError(
                f"{where}, row {row}: {value!r} is not a number; correct the row or leave it empty"
            )
    return pa.array([None if value is None else float(value) for value in text], type=pa.float64())


def is_number_column(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds numbers, or nothing at all."""
    return _is_numeric(column.type)


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def _parquet(path: Path) -> pa.parquet.ParquetFile:
    try:
        return pa.parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a Parquet file: {_one_line(error)}") from None


def _decoded(head: bytes) -> tuple[str, str]:
    try:
        return head.decode("utf-8-sig"), "utf8"
    except UnicodeDecodeError as error:
        if error.start > len(head) - 4:
            return head[: error.start].decode("utf-8-sig"), "utf8"
    return head.decode("latin-1"), "latin-1"


def _decimal(rows: list[str], separator: str) -> str:
    if separator == ",":
        return "."
    comma = sum(bool(re.search(r"\d,\d", row)) for row in rows)
    point = sum(
        bool(re.search(rf"(^|{re.escape(separator)})\s*-?\d+\.\d+\s*({re.escape(separator)}|$)", row))
        for row in rows
    )
    return "," if comma > point else "."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
