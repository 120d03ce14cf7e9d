"""Receive timestamps, written where a channel requests them and nowhere else."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.driver.media_driver.receiving_rig import data, heartbeat, pad
from windtunnel.driver.media_driver.image.publication_image import NO_STAMP
from windtunnel.driver.media_driver.receiver import receive_timestamps

TIME = 0x1122334455667788
WRITTEN = struct.pack("<q", TIME)


def stamped(datagram, offset):
    buf = np.frombuffer(b"\xee" * 32 + datagram + b"\xee" * 32, np.uint8).copy()
    receive_timestamps.stamp(buf, 32, len(datagram), offset, TIME)
    assert buf[:32].tobytes() == buf[-32:].tobytes() == b"\xee" * 32
    return buf[32:-32].tobytes()


def test_each_message_of_a_datagram_is_stamped_at_its_offset():
    datagram = data(0, 16, 40, 8)
    found = stamped(datagram, 8)
    expected = bytearray(datagram)
    for at, length in ((0, 16), (64, 40)):
        assert length >= 16
        expected[at + 40 : at + 48] = WRITTEN
    assert found == bytes(expected)


def test_the_reserved_value_always_has_space():
    datagram = data(0, 0, 5)
    expected = bytearray(datagram)
    for at in (24, 56):
        expected[at : at + 8] = WRITTEN
    assert stamped(datagram, -8) == bytes(expected)


def test_frames_that_start_no_message_are_not_changed():
    for datagram in (data(0, 100, flags=0x40), data(0, 100, flags=0), pad(0, 64), data(0, 7)):
        assert stamped(datagram, 0) == datagram
    assert stamped(data(0, 100), NO_STAMP) == data(0, 100)


def test_a_heartbeat_is_not_timestamped():
    assert stamped(heartbeat(0), 0) == heartbeat(0)


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=4),
    st.one_of(st.just(-8), st.integers(0, 2**31 - 9)),
)
def test_no_offset_writes_outside_its_frame(lengths, offset):
    datagram, at = data(0, *lengths), 0
    found = stamped(datagram, offset)
    for length in lengths:
        frame = 32 + length
        fits = offset == -8 or offset + 8 <= length
        expected = bytearray(datagram[at : at + frame])
        if fits:
            expected[32 + offset : 40 + offset] = WRITTEN
        assert found[at : at + frame] == bytes(expected)
        padding = -frame % 32
        assert found[at + frame : at + frame + padding] == bytes(padding)
        at += frame + padding
