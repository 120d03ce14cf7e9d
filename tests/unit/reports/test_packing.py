"""Packed documents can be unpacked by an independent implementation."""

import base64
import gzip
import json
import struct
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.reports.packing import pack


def unpack(text: str) -> Any:
    content = gzip.decompress(base64.b64decode(text))
    (length,) = struct.unpack_from("<I", content)
    start = (4 + length + 7) // 8 * 8
    columns = np.frombuffer(content, "<f8", offset=start)

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"at", "count"}:
            return columns[value["at"] : value["at"] + value["count"]].tolist()
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return value

    return filled(json.loads(content[4 : 4 + length]))


NUMBERS = st.lists(st.integers(-(2**53), 2**53), max_size=20)


@given(st.lists(st.tuples(st.text(max_size=9), NUMBERS), max_size=6))
def test_round_trip(parts: list[tuple[str, list[int]]]) -> None:
    document = {"parts": [{"name": name, "v": np.array(v, np.int64)} for name, v in parts]}
    assert unpack(pack(document)) == {"parts": [{"name": name, "v": v} for name, v in parts]}


def test_equal_content_gives_equal_text() -> None:
    assert pack({"a": np.arange(3)}) == pack({"a": np.arange(3)})
