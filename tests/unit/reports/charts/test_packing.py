"""Packed documents can be unpacked by an independent implementation."""

import base64
import gzip
import json
import struct
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.reports.charts.packing import pack


def unpack(text: str) -> Any:
    content = gzip.decompress(base64.b64decode(text))
    (length,) = struct.unpack_from("<I", content)
    start = (4 + length + 7) // 8 * 8
    words = len(content[start:]) // 8

    def word(index: int) -> bytes:
        return bytes(content[start + rank * words + index] for rank in range(8))

    def column(at: int, count: int, per: int) -> list[float]:
        found = [word(index) for index in range(at, at + count)]
        if per == 0:
            return [struct.unpack("<d", each)[0] for each in found]
        sums = accumulate(struct.unpack("<q", each)[0] for each in found)
        return [each / per for each in sums]

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"at", "count", "per"}:
            return column(**value)
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return value

    return filled(json.loads(content[4 : 4 + length]))


NUMBERS = st.lists(st.integers(-(2**53), 2**53), max_size=20)


SEEN = st.characters(exclude_categories=["C", "Zl", "Zp"])


@given(st.lists(st.tuples(st.text(SEEN, max_size=9), NUMBERS), max_size=6))
def test_round_trip(parts: list[tuple[str, list[int]]]) -> None:
    document = {"parts": [{"name": name, "v": np.array(v, np.int64)} for name, v in parts]}
    assert unpack(pack(document)) == {"parts": [{"name": name, "v": v} for name, v in parts]}


@given(st.lists(st.floats(), max_size=20), st.lists(st.integers(-(2**50), 2**50), max_size=20))
def test_floats_and_times_are_exact(floats: list[float], times_ns: list[int]) -> None:
    times_ms = [each / 1e6 for each in times_ns]
    found = unpack(pack({"floats": np.array(floats, float), "times": np.array(times_ms, float)}))
    assert [struct.pack("<d", each) for each in found["times"]] == [
        struct.pack("<d", each) for each in times_ms
    ]
    assert np.array_equal(found["floats"], floats, equal_nan=True)


def test_times_and_positions_that_increase_take_few_bytes() -> None:
    generator = np.random.default_rng(3)
    times_ms = np.cumsum(generator.integers(9_000_000, 11_000_000, 5_000)) / 1e6
    positions = np.cumsum(generator.integers(1, 3, 5_000)) * 96
    lines = [{"t": times_ms, "v": positions}, {"t": times_ms, "v": positions // 2}]
    assert len(pack({"lines": lines})) < 8 * 2 * len(positions)


def test_characters_that_a_reader_cannot_see_are_escaped() -> None:
    """The names of capture files are in the legends of charts."""
    assert unpack(pack({"names": ["lan\u202e1.pcap"]})) == {"names": ["lan\\u202e1.pcap"]}


def test_equal_content_gives_equal_text() -> None:
    assert pack({"a": np.arange(3)}) == pack({"a": np.arange(3)})
