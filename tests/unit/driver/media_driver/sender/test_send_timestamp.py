"""Send timestamps: eight bytes of the first data frame of a datagram, and nowhere else."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import wire
from tests.unit.driver.media_driver.sending_rig import SendingRig
from windtunnel.driver.channel.timestamp_offsets import RESERVED_OFFSET
from windtunnel.driver.media_driver.sender import send_timestamp

TIME = 0x0102030405060708
BEFORE = 64


def stamped(frame, length, offset):
    """Return (result of the kernel, offset of the changed bytes, changed bytes)."""
    log = np.zeros(BEFORE + 256, np.uint8)
    log[BEFORE : BEFORE + len(frame)] = np.frombuffer(frame, np.uint8)
    before = log.copy()
    is_stamped = bool(send_timestamp.stamp(log, BEFORE, length, offset, TIME))
    changed = np.flatnonzero(log != before)
    at = int(changed[0]) - BEFORE if changed.size else None
    return is_stamped, at, bytes(log[changed])


def frame_of(length, kind=wire.DATA):
    return wire.pack("data", length, 0, 0xC0, kind, 0, 1, 2, 3, 0)


@given(
    frame_length=st.integers(-1, 100),
    length=st.sampled_from([32, 64, 96, 128]),
    offset=st.one_of(st.just(RESERVED_OFFSET), st.integers(0, 100)),
    kind=st.sampled_from([wire.DATA, wire.PAD]),
)
def test_a_timestamp_is_written_only_where_it_fits(frame_length, length, offset, kind):
    found = stamped(frame_of(frame_length, kind), length, offset)
    is_whole = 32 <= frame_length <= length and kind == wire.DATA
    fits = offset == RESERVED_OFFSET or 32 + offset + 8 <= frame_length
    if is_whole and fits:
        assert found == (True, 32 + offset, TIME.to_bytes(8, "little"))
    else:
        assert found == (False, None, b"")


@pytest.mark.parametrize("offset", [RESERVED_OFFSET, 0, 8])
def test_the_first_frame_of_each_datagram_has_the_send_time(tmp_path, offset):
    rig = SendingRig(tmp_path)
    rig.record.has_send_timestamp, rig.record.send_timestamp_offset = 1, offset
    rig.start()
    rig.offer(100, 100, 1300)
    began = time.time_ns()
    datagrams = rig.turn()
    ended = time.time_ns()
    assert [len(item) for item in datagrams] == [320, 1344]
    for item in datagrams:
        at = 32 + offset
        assert began <= int.from_bytes(item[at : at + 8], "little") <= ended
    assert datagrams[0] == rig.bytes_of(0, 320)
    second = datagrams[0][160 + 32 : 160 + 132]
    assert second == bytes([100]) * 100
    rig.deliver_nak(0, 160)
    (again,) = rig.turn() + rig.turn()
    later = int.from_bytes(again[32 + offset : 40 + offset], "little")
    assert later >= ended


def test_a_channel_without_a_timestamp_offset_sends_unchanged_frames(tmp_path):
    rig = SendingRig(tmp_path)
    rig.start()
    rig.offer(100)
    (datagram,) = rig.turn()
    assert datagram[24:132] == bytes(8) + bytes([100]) * 100
