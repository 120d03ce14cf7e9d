"""The hash of payloads is XXH64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import payload_hash as naive
from windtunnel.harness.dissect.capture.payload_hash import payload_hash

PUBLISHED = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def ours(data: bytes, at: int = 0) -> int:
    buf = np.frombuffer(bytes(at) + data, dtype=np.uint8)
    with np.errstate(over="ignore"):
        return payload_hash(buf, at, len(data)) & naive.MASK


@pytest.mark.parametrize(("data", "expected"), PUBLISHED.items())
def test_agrees_with_published_values(data, expected):
    assert ours(data) == expected
    assert naive.payload_hash(data) == expected


@given(st.binary(max_size=200), st.integers(0, 7))
def test_agrees_with_the_reference_at_any_alignment(data, at):
    assert ours(data, at) == naive.payload_hash(data)
