"""Arbitrary bytes: the kernels that validate datagrams agree with their reference
implementations.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import wire
from windtunnel.driver.wire import data, error, header, nak, resolution, setup, status_message

TERM_LENGTH = 65536
I32 = st.integers(-(1 << 31), (1 << 31) - 1)
SMALL_HEADER = st.builds(
    lambda length, version, flags, kind: wire.struct.pack(
        wire.HEADER, length, version, flags, kind
    ),
    st.one_of(st.integers(-2, 64), I32),
    st.sampled_from([0, 0, 0, 0, 1, 255]),
    st.integers(0, 255),
    st.one_of(st.integers(0, 13), st.integers(0, 0xFFFF)),
)


def array(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8).copy()


@given(SMALL_HEADER, st.binary(max_size=100))
def test_the_check_of_a_datagram_agrees_with_its_reference(head: bytes, rest: bytes) -> None:
    datagram = head + rest
    accepted = header.check(array(datagram), 0, len(datagram)) == header.OK
    assert accepted == wire.is_acceptable(datagram)


@st.composite
def data_datagrams(draw: st.DrawFn) -> bytes:
    """Frames that are mostly contiguous, in a datagram that is sometimes truncated."""
    offset = draw(st.one_of(st.integers(0, 2047).map(lambda n: n * 32), I32))
    content = b""
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([1, 1, 1, 0, 2]))
        declared = draw(st.one_of(st.integers(1, 200), st.sampled_from([0, -1, 65536])))
        shift = draw(st.sampled_from([0, 0, 0, 0, 0, 32, -32]))
        here = max(-(1 << 31), min(offset + len(content) + shift, (1 << 31) - 1))
        content += wire.pack("data", declared, 0, 0xC0, kind, here, 1, 2, 3, 0)
        if kind != 0 or draw(st.booleans()):
            content += bytes(max(wire.aligned(declared) - 32, 0))
    keep = draw(
        st.one_of(st.just(len(content)), st.integers(1, len(content) // 32).map(lambda n: n * 32))
    )
    return content[:keep]


@given(data_datagrams(), st.sampled_from([1024, TERM_LENGTH]))
def test_the_walk_over_frames_agrees_with_its_reference(datagram: bytes, term_length: int) -> None:
    got = data.validate(array(datagram), 0, len(datagram), term_length)
    assert got == wire.reach(datagram, term_length)


@given(st.binary(min_size=44, max_size=80))
def test_no_check_reads_beyond_its_frame(content: bytes) -> None:
    buf = array(content)
    assert setup.check(buf, 0, buf.size) in (header.OK, header.BAD_VALUE)
    assert nak.check(buf, 0, buf.size, TERM_LENGTH) in (header.OK, header.BAD_VALUE)
    assert status_message.check(buf, 0, buf.size, TERM_LENGTH) in (header.OK, header.BAD_VALUE)
    if header.check(buf, 0, buf.size) == header.OK and error.check(buf, 0, buf.size) == header.OK:
        assert error.LENGTH + error.text_length(buf, 0) <= buf.size
    entry = resolution.check_entry(buf, 0, buf.size)
    assert entry == resolution.INVALID or 8 <= entry <= buf.size + 7
