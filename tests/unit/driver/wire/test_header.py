"""The first check of every datagram, before any getter may read it."""

import numpy as np
import pytest

from tests.golden.reader import datagrams
from tests.naive import wire
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

KINDS = sorted(wire.MINIMUM.items())


def frame(kind: int, length: int, *, declared: int | None = None, version: int = 0) -> np.ndarray:
    """A datagram of `length` bytes, otherwise zero."""
    buf = np.zeros(max(length, 8), dtype=np.uint8)
    header.write(buf, 0, length if declared is None else declared, 0, kind)
    buf[header.VERSION] = version
    return buf[:length]


def check(buf: np.ndarray) -> int:
    return int(header.check(buf, 0, buf.size))


@pytest.mark.parametrize(("kind", "minimum"), KINDS)
def test_accepts_the_minimum_and_refuses_one_byte_less(kind: int, minimum: int) -> None:
    assert check(frame(kind, minimum)) == header.OK
    assert check(frame(kind, minimum - 1, declared=0)) == header.TOO_SHORT


@pytest.mark.parametrize("kind", [8, 9, 10, 12, 13, 0x1000, 0xFFFF])
def test_refuses_unknown_types(kind: int) -> None:
    assert check(frame(kind, 64)) == header.BAD_TYPE


def test_refuses_fewer_bytes_than_a_header() -> None:
    assert check(frame(types.SM, 7)) == header.TOO_SHORT
    assert check(frame(types.SM, 0)) == header.TOO_SHORT


@pytest.mark.parametrize(("kind", "minimum"), KINDS)
def test_refuses_another_version_and_a_negative_length(kind: int, minimum: int) -> None:
    assert check(frame(kind, minimum, version=1)) == header.BAD_VERSION
    assert check(frame(kind, minimum, declared=-1)) == header.BAD_LENGTH


@pytest.mark.parametrize("kind", [types.DATA, types.PAD])
def test_the_length_of_data_is_aligned(kind: int) -> None:
    assert check(frame(kind, 64)) == header.OK
    for length in (33, 40, 48, 63, 65):
        assert check(frame(kind, length)) == header.BAD_ALIGNMENT


def test_a_pad_may_declare_more_than_the_datagram() -> None:
    assert check(frame(types.PAD, 32, declared=4096)) == header.OK


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS if kind > types.DATA])
def test_a_control_frame_may_not(kind: int) -> None:
    assert check(frame(kind, 48, declared=48)) == header.OK
    assert check(frame(kind, 48, declared=49)) == header.BAD_LENGTH


def test_reads_at_an_offset() -> None:
    buf = np.zeros(48, dtype=np.uint8)
    header.write(buf, 20, 28, 0x85, types.NAK)
    fields = (header.frame_length(buf, 20), header.version(buf, 20), header.flags(buf, 20))
    assert fields == (28, 0, 0x85)
    assert header.frame_type(buf, 20) == types.NAK
    assert header.check(buf, 20, 28) == header.OK
    assert header.check(buf, 20, 27) == header.TOO_SHORT


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-unreliable"])
def test_every_datagram_of_real_aeron_passes(golden_set: str) -> None:
    captured = datagrams(golden_set)
    statuses = {check(np.frombuffer(d.payload, np.uint8).copy()) for d in captured}
    assert statuses == {header.OK}
    assert all(wire.is_acceptable(d.payload) for d in captured)
