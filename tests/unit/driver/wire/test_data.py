"""Data datagrams: heartbeats, and the validation against a term."""

import struct

import numpy as np
import pytest

from tests.golden.reader import datagrams, seen_by
from tests.naive import wire
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

TERM_LENGTH = 65536
SESSION, STREAM, TERM_ID = -7, 1001, -3


def frames(*described: tuple[int, int, int]) -> np.ndarray:
    """A datagram of frames (type, declared length, term offset); only a PAD has no body."""
    parts = []
    for kind, declared, offset in described:
        body = bytes(wire.aligned(declared) - 32) if kind == types.DATA else b""
        parts.append(
            wire.pack("data", declared, 0, 0xC0, kind, offset, SESSION, STREAM, TERM_ID, 0) + body
        )
    return np.frombuffer(b"".join(parts), dtype=np.uint8).copy()


def validate(buf: np.ndarray, term_length: int = TERM_LENGTH) -> int:
    return int(data.validate(buf, 0, buf.size, term_length))


def test_a_heartbeat_is_identified_only_by_its_length() -> None:
    buf = np.full(64, 0xAA, dtype=np.uint8)
    for flags in (0xC0, 0xE0, 0xF0):
        length = data.write_heartbeat(buf, 32, SESSION, STREAM, TERM_ID, 96, flags)
        expected = wire.pack("data", 0, 0, flags, types.DATA, 96, SESSION, STREAM, TERM_ID, 0)
        assert (length, bytes(buf[32:])) == (32, expected)
        assert data.is_heartbeat(buf, 32, 32)
        assert data.validate(buf, 32, 32, TERM_LENGTH) == 0
    assert not data.is_heartbeat(buf, 32, 64)
    header.write(buf, 32, 32, 0xC0, types.DATA)
    assert not data.is_heartbeat(buf, 32, 32)


def test_reads_back_what_it_wrote() -> None:
    buf = np.zeros(40, dtype=np.uint8)
    assert data.write(buf, 8, 100, 0x80, types.DATA, 64, SESSION, STREAM, TERM_ID, -9) == 32
    assert (data.term_offset(buf, 8), data.session_id(buf, 8)) == (64, SESSION)
    assert (data.stream_id(buf, 8), data.term_id(buf, 8)) == (STREAM, TERM_ID)
    assert data.reserved_value(buf, 8) == -9


def test_counts_every_frame_and_padding_in_full() -> None:
    assert validate(frames((types.DATA, 33, 0))) == 64
    assert validate(frames((types.DATA, 33, 0), (types.DATA, 64, 64))) == 128
    assert validate(frames((types.DATA, 280, 64960), (types.PAD, 288, 65248))) == 576
    assert validate(frames((types.PAD, 65536, 0))) == TERM_LENGTH


@pytest.mark.parametrize(
    "buf",
    [
        frames((types.DATA, 32, 16)),
        frames((types.DATA, 32, -32)),
        frames((types.DATA, 32, TERM_LENGTH)),
        frames((types.DATA, 65, TERM_LENGTH - 64)),
        frames((types.PAD, 96, TERM_LENGTH - 64)),
        frames((types.DATA, 64, 0), (types.DATA, 32, 96)),
        frames((types.DATA, 64, 0), (types.SM, 32, 64)),
        frames((types.DATA, 64, 0), (types.PAD, 0, 64)),
        frames((types.DATA, 64, 0), (types.PAD, -64, 64)),
        frames((types.DATA, 96, 0))[:64],
        frames((types.PAD, 0, 32), (types.PAD, 64, 64)),
    ],
)
def test_refuses(buf: np.ndarray) -> None:
    assert validate(buf) == data.INVALID
    assert wire.reach(bytes(buf), TERM_LENGTH) == -1


@pytest.mark.parametrize("offset", [-32, 16, TERM_LENGTH])
def test_a_heartbeat_outside_the_term_is_refused(offset: int) -> None:
    buf = np.zeros(32, dtype=np.uint8)
    data.write_heartbeat(buf, 0, SESSION, STREAM, TERM_ID, offset, 0xC0)
    assert validate(buf) == data.INVALID
    assert wire.reach(bytes(buf), TERM_LENGTH) == -1


def test_the_last_slot_of_a_term_is_accepted() -> None:
    assert validate(frames((types.DATA, 64, TERM_LENGTH - 64))) == 64


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-unreliable"])
def test_every_data_datagram_of_real_aeron_is_valid(golden_set: str) -> None:
    term_length = seen_by(golden_set, "pub.txt")["termLength"]
    reached = 0
    for datagram in datagrams(golden_set):
        if struct.unpack_from("<H", datagram.payload, 6)[0] > types.DATA:
            continue
        buf = np.frombuffer(datagram.payload, dtype=np.uint8).copy()
        got = validate(buf, term_length)
        assert got == wire.reach(datagram.payload, term_length) >= 0
        reached += got
    assert reached >= seen_by(golden_set, "pub.txt")["position"]
