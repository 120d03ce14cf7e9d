"""Converts the reading kernel's rows to Arrow batches with the documented columns.

    rows      | time | type | session | ... |  row by row, with the fields of all types
    columns   | time time time ... | type type type ... |  null where a type has no such field

Only the requested columns are built. Addresses, error messages and resolution entries are converted
to text; numbers stay unchanged.
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import ERR, HEARTBEAT, NAMES, RES
from windtunnel.harness.dissect.capture.capture_stream import FrameRows
from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION
from windtunnel.reports.analysis.reading.schema import ANY, FRAME_COLUMNS, READ_FRAMES, FrameColumn

_CODES = sorted(ANY)
_CLASS_OF = np.zeros(HEARTBEAT + 1, dtype=np.int8)
_CLASS_OF[_CODES] = np.arange(len(_CODES))
_TYPE_NAMES = pa.array([NAMES[code] for code in _CODES])
_COMPUTED = ("vantage_point", "file_index", "frame_type", "error_text", "resolutions")
_ADDRESSES = ("source_address", "destination_address")
_FLAGS = {"payload_hash": "has_hash", "payload_crc32": "has_crc32", "group_tag": "has_group_tag"}
_V4_PREFIX = 0xFFFF << 32
_ROWS_AT_ONCE = 2_048
"""Number of rows whose columns are copied one after the other while the rows are in the cache."""


class FrameTable:
    """Builds Arrow batches from a file's frames, with all or selected columns."""

    def __init__(
        self, vantage_point: str, file_index: int, columns: Sequence[str] = READ_FRAMES.names
    ) -> None:
        self._vantage_point, self._file_index = vantage_point, file_index
        self._columns = [column for column in FRAME_COLUMNS if column.name in columns]
        self._schema = pa.schema([READ_FRAMES.field(column.name) for column in self._columns])
        self._has = {
            types: np.isin(_CODES, types)
            for types in {column.frame_types for column in self._columns} - {ANY}
        }
        self._texts: dict[tuple[int, int], str] = {}

    def batch(self, found: FrameRows) -> pa.RecordBatch:
        """Return a copy of the rows as an Arrow batch with the selected columns."""
        rows = found.rows
        classes = _CLASS_OF[rows["frame_type"]]
        valid_rows = {types: _ValidRows(has[classes]) for types, has in self._has.items()}
        numbers = _copied(rows, [column.name for column in self._columns])
        places, texts = self._address_dictionary(found.addresses)
        arrays: list[pa.Array] = []
        for column in self._columns:
            if column.name in _ADDRESSES:
                slots = places[numbers[column.name]]
                arrays.append(pa.DictionaryArray.from_arrays(slots, texts))
            elif column.name in _COMPUTED:
                arrays.append(self._computed(column, found, classes))
            else:
                valid = valid_rows.get(column.frame_types, _ALL_VALID)
                valid = _narrowed(column.name, rows, valid)
                arrays.append(valid.array(numbers[column.name], column.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _computed(
        self, column: FrameColumn, found: FrameRows, classes: NDArray[np.int8]
    ) -> pa.Array:
        name, count = column.name, len(classes)
        if name == "vantage_point":
            only_value = pa.array([self._vantage_point], pa.string())
            return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int8), only_value)
        if name == "file_index":
            return pa.repeat(pa.scalar(self._file_index, pa.int32()), count)
        if name == "frame_type":
            return pa.DictionaryArray.from_arrays(classes, _TYPE_NAMES)
        kind, read = (ERR, _error_text) if name == "error_text" else (RES, _resolutions)
        where = np.flatnonzero(found.rows["frame_type"] == kind)
        if not len(where):
            return pa.nulls(count, column.type)
        values: list[Any] = [None] * count
        for index in where:
            row = found.rows[index]
            at = int(row["text_at"])
            text = found.texts[at : at + int(row["text_length"])].tobytes()
            values[index] = read(text, int(row["frame_length"]))
        return pa.array(values, column.type)

    def _address_dictionary(self, table: NDArray[Any]) -> tuple[NDArray[np.int32], pa.Array]:
        """Convert an address table to strings. Returns the index of each slot's string, and an
        array of all strings.
        """
        used = np.flatnonzero(table["is_used"])
        places = np.zeros(len(table), dtype=np.int32)
        places[used] = np.arange(len(used))
        texts = [self._address(int(table[slot]["high"]), int(table[slot]["low"])) for slot in used]
        return places, pa.array(texts, pa.string())

    def _address(self, high: int, low: int) -> str:
        if len(self._texts) > 1 << 16:
            self._texts.clear()
        text = self._texts.get((high, low))
        if text is None:
            text = self._texts[high, low] = address_text(high, low)
        return text


def address_text(high: int, low: int) -> str:
    """Format an IP address given as two signed 64-bit halves. IPv4-mapped addresses become IPv4."""
    if high == 0 and low >> 32 == 0xFFFF:
        return str(ipaddress.IPv4Address(low - _V4_PREFIX))
    halves = (each.to_bytes(8, "big", signed=True) for each in (high, low))
    return str(ipaddress.IPv6Address(b"".join(halves)))


class _ValidRows:
    """The rows of a batch that have a value in a column, or in several columns."""

    def __init__(self, has: NDArray[np.bool_] | None = None) -> None:
        """`has` is the mask of the rows, or None if all have a value."""
        if has is not None and has.all():
            has = None
        self.has = has
        self._is_empty = has is not None and not has.any()
        self._lacks = None if has is None else ~has
        bits = None if has is None else np.packbits(has, bitorder="little")
        self._bits = None if bits is None else pa.py_buffer(bits)

    def array(self, values: NDArray[Any], kind: pa.DataType) -> pa.Array:
        """Return an Arrow column of integers that is null in the other rows. Sets those to 0."""
        if self._is_empty:
            return pa.nulls(len(values), kind)
        if self._lacks is not None:
            # Values that the kernel left in unused fields would make equal rows differ.
            np.copyto(values, 0, where=self._lacks)
        return pa.Array.from_buffers(kind, len(values), [self._bits, pa.py_buffer(values)])


_ALL_VALID = _ValidRows()


def _narrowed(name: str, rows: NDArray[Any], valid: _ValidRows) -> _ValidRows:
    """Return the rows that have a value in a column, of those that have its frame type."""
    if name == "ip_identification":
        return _ValidRows(rows["ip_identification"] != NO_IDENTIFICATION)
    flag = _FLAGS.get(name)
    if flag is None:
        return valid
    is_set = rows[flag] == 1
    return _ValidRows(is_set if valid.has is None else np.logical_and(valid.has, is_set))


def _copied(rows: NDArray[Any], columns: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return a copy of each column that is a field of the rows, or an address."""
    fields = {name: name.removesuffix("_address") for name in columns if name not in _COMPUTED}
    copies = {name: np.empty(len(rows), rows.dtype[field]) for name, field in fields.items()}
    pairs = [(copies[name], rows[field]) for name, field in fields.items()]
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        for copy, field in pairs:
            copy[part] = field[part]
    return copies


def _error_text(text: bytes, frame_length: int) -> str | None:
    return text.decode("utf-8", "replace") if len(text) == frame_length - 40 else None


def _resolutions(entries: bytes, frame_length: int) -> list[dict[str, Any]]:
    """Return the completely captured entries of a resolution frame."""
    found, at = [], 0
    while at + 14 <= len(entries):
        is_v4 = entries[at] == 1
        name_at = at + (12 if is_v4 else 24)
        name_length = int.from_bytes(entries[name_at : name_at + 2], "little")
        name = entries[name_at + 2 : name_at + 2 + name_length]
        if len(name) < name_length or not name_length:
            break
        family = socket.AF_INET if is_v4 else socket.AF_INET6
        found.append(
            {
                "name": name.decode("ascii", "replace"),
                "address": socket.inet_ntop(family, entries[at + 8 : name_at]),
                "port": int.from_bytes(entries[at + 2 : at + 4], "little"),
                "age_ms": int.from_bytes(entries[at + 4 : at + 8], "little", signed=True),
                "is_self": bool(entries[at + 1] & 0x80),
            }
        )
        at = (name_at + 2 + name_length + 7) & ~7
    return found
