"""Reading, measuring and repairing one term, case by case."""

import struct

import numpy as np
import pytest

from windtunnel.driver.logbuffer import (
    cleaner,
    frame,
    gap_filler,
    gap_scanner,
    reader,
    rebuilder,
    scanner,
)
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

TERM_LENGTH = 65536
META = 3 * TERM_LENGTH
BASE = TERM_LENGTH
DATA, PAD = 1, 0


@pytest.fixture
def log() -> np.ndarray:
    made = np.zeros(META + 4096, dtype=np.uint8)
    chosen = LogParameters(
        type=2,
        correlation_id=1,
        session_id=2,
        stream_id=3,
        initial_term_id=-1,
        term_length=TERM_LENGTH,
        mtu_length=1408,
    )
    initialise(made, META, chosen)
    return made


def put(log: np.ndarray, offset: int, length: int, kind: int = DATA) -> int:
    """Commit a frame. Returns the offset of the next one."""
    struct.pack_into("<iBBHiiiiq", log, BASE + offset, length, 0, 0xC0, kind, offset, 2, 3, 0, -6)
    return offset + -(-length // 32) * 32


def scan(log: np.ndarray, offset: int, max_length: int) -> tuple[int, int]:
    return scanner.scan(log, BASE, TERM_LENGTH, offset, max_length)


def test_whole_frames_are_sent_up_to_a_datagram(log: np.ndarray) -> None:
    at = 0
    for _ in range(9):
        at = put(log, at, 132)
    assert scan(log, 0, 1408) == (1280, 0)
    assert scan(log, 1280, 1408) == (160, 0)
    assert scan(log, 1440, 1408) == (0, 0)
    assert scan(log, 0, 160) == (160, 0)
    assert scan(log, 0, 159) == (-160, 0)
    assert scan(log, 0, 0) == (0, 0)


def test_padding_is_sent_as_its_header_and_ends_a_datagram(log: np.ndarray) -> None:
    put(log, TERM_LENGTH - 576, 280)
    put(log, TERM_LENGTH - 288, 288, PAD)
    assert scan(log, TERM_LENGTH - 576, 1408) == (320, 256)
    assert scan(log, TERM_LENGTH - 288, 32) == (32, 256)
    assert scan(log, TERM_LENGTH - 576, 300) == (288, 0)
    assert scan(log, TERM_LENGTH - 288, 31) == (-32, 0)


def test_a_claim_stops_the_sender(log: np.ndarray) -> None:
    at = put(log, 0, 64)
    struct.pack_into("<i", log, BASE + at, -64)
    put(log, at + 64, 64)
    assert scan(log, 0, 1408) == (64, 0)


@pytest.mark.parametrize("kind", [DATA, PAD])
def test_a_frame_beyond_its_term_is_not_committed(log: np.ndarray, kind: int) -> None:
    put(log, TERM_LENGTH - 64, 96, kind)
    room = reader.fragments(4)
    at = TERM_LENGTH - 64
    assert scan(log, at, 1408) == (0, 0)
    assert reader.poll(log, BASE, TERM_LENGTH, at, TERM_LENGTH, room, 4) == (0, at)
    assert reader.block(log, BASE, TERM_LENGTH, at, TERM_LENGTH) == at


def test_a_poll_delivers_data_and_skips_padding(log: np.ndarray) -> None:
    at = put(log, put(log, put(log, 0, 40), 96, PAD), 32)
    room = reader.fragments(4)
    assert reader.poll(log, BASE, TERM_LENGTH, 0, TERM_LENGTH, room, 4) == (2, at)
    assert tuple(room[0]) == (BASE + 32, 8, DATA, 0xC0, -6, 2, 3, 0, 0, 64)
    assert tuple(room[1]) == (BASE + 192, 0, DATA, 0xC0, -6, 2, 3, 0, 160, 192)
    assert reader.poll_frames(log, BASE, TERM_LENGTH, 0, TERM_LENGTH, room, 9) == (3, at)
    assert [fragment.frame_type for fragment in room[:3]] == [DATA, PAD, DATA]
    assert reader.poll(log, BASE, TERM_LENGTH, 0, TERM_LENGTH, room, 1) == (1, 64)
    assert reader.poll(log, BASE, TERM_LENGTH, 0, 64, room, 4) == (1, 64)
    assert reader.poll(log, BASE, TERM_LENGTH, 0, 0, room, 4) == (0, 0)
    assert reader.poll(log, BASE, TERM_LENGTH, at, TERM_LENGTH, room, 0) == (0, at)


def test_a_data_frame_shorter_than_its_header_has_no_payload(log: np.ndarray) -> None:
    put(log, 0, 5)
    room = reader.fragments(1)
    assert reader.poll(log, BASE, TERM_LENGTH, 0, TERM_LENGTH, room, 1) == (1, 32)
    assert room[0].length == 0


def test_a_block_never_mixes_padding_with_data(log: np.ndarray) -> None:
    put(log, put(log, put(log, 0, 64), 64), 128, PAD)
    put(log, 256, 64)
    assert reader.block(log, BASE, TERM_LENGTH, 0, TERM_LENGTH) == 128
    assert reader.block(log, BASE, TERM_LENGTH, 128, TERM_LENGTH) == 256
    assert reader.block(log, BASE, TERM_LENGTH, 128, 160) == 256
    assert reader.block(log, BASE, TERM_LENGTH, 256, TERM_LENGTH) == 320
    assert reader.block(log, BASE, TERM_LENGTH, 0, 127) == 64
    assert reader.block(log, BASE, TERM_LENGTH, 0, 63) == 0


def test_an_existing_frame_is_not_overwritten(log: np.ndarray) -> None:
    packet = np.zeros(200, dtype=np.uint8)
    struct.pack_into("<iBBHiiiiq", packet, 8, 64, 0, 0xC0, DATA, 96, 2, 3, 0, 0)
    packet[40:72] = 5
    assert rebuilder.insert(log, BASE, 96, packet, 8, 64)
    assert bytes(log[BASE + 96 : BASE + 160]) == bytes(packet[8:72])
    packet[40:72] = 6
    assert not rebuilder.insert(log, BASE, 96, packet, 8, 64)
    assert log[BASE + 128] == 5
    assert not log[:BASE].any()
    assert not log[BASE + 160 : META].any()


def test_a_gap_ends_at_the_next_frame_or_at_the_limit(log: np.ndarray) -> None:
    at = put(log, 0, 64)
    put(log, 256, 64)
    assert gap_scanner.scan(log, BASE, 0, 320) == (at, 192)
    assert gap_scanner.scan(log, BASE, 0, 256) == (at, 192)
    assert gap_scanner.scan(log, BASE, 0, 128) == (at, 64)
    assert gap_scanner.scan(log, BASE, 0, at) == (at, 0)
    assert gap_scanner.scan(log, BASE, 256, 320) == (320, 0)
    assert gap_scanner.scan(log, BASE, 320, TERM_LENGTH) == (320, TERM_LENGTH - 320)


def test_a_gap_is_filled_once_and_only_if_it_is_empty(log: np.ndarray) -> None:
    put(log, 128, 32)
    assert not gap_filler.try_fill(log, BASE, META, 0, 0, 160)
    assert not log[BASE : BASE + 128].any()
    log[BASE + 24] = 1
    assert gap_filler.try_fill(log, BASE, META, 0, 0, 128)
    padding = struct.pack("<iBBHiiiiq", 128, 0, 0xC0, PAD, 0, 2, 3, 0, 0)
    assert bytes(log[BASE : BASE + 32]) == padding
    assert not log[BASE + 32 : BASE + 128].any()
    assert not gap_filler.try_fill(log, BASE, META, 0, 0, 128)


def test_cleaning_changes_only_its_range(log: np.ndarray) -> None:
    log[:META] = 7
    cleaner.clean(log, BASE, 64, 128)
    assert not log[BASE + 64 : BASE + 192].any()
    assert set(log[: BASE + 64]) == {7}
    assert set(log[BASE + 192 : META]) == {7}
    cleaner.clean(log, BASE, 0, 8)
    assert not log[BASE : BASE + 8].any()
    assert log[BASE + 8] == 7


def test_a_claim_shows_its_extent_before_it_is_filled(log: np.ndarray) -> None:
    frame.write_header(log, BASE + 32, META, 100, 9, 32)
    head = struct.pack("<iBBHiiii", -100, 0, 0xC0, DATA, 32, 2, 3, 9)
    assert bytes(log[BASE + 32 : BASE + 56]) == head
    frame.publish(log, BASE + 32, 100)
    assert frame.frame_length_acquire(log, BASE + 32) == 100
    assert [frame.aligned(n) for n in (0, 1, 32, 33)] == [0, 32, 32, 64]
