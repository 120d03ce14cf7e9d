"""Setup, status message, NAK, RTTM, error and response setup frames, field by field."""

import struct
from collections.abc import Callable

import numpy as np
import pytest

from tests.golden.reader import datagrams
from tests.naive import wire
from windtunnel.driver.wire import (
    error,
    header,
    nak,
    resolution,
    response_setup,
    rtt_measurement,
    setup,
    status_message,
)
from windtunnel.driver.wire import frame_type as types

TERM_LENGTH = 65536
AT = 12


def written(write: Callable[..., int], *values: object) -> bytes:
    """The bytes that a writer writes, which must match its return value."""
    buf = np.full(2048, 0xAA, dtype=np.uint8)
    length = int(write(buf, AT, *values))
    assert set(buf[:AT]) == {0xAA}
    assert set(buf[AT + length :]) == {0xAA}
    return bytes(buf[AT : AT + length])


def array(frame: bytes) -> np.ndarray:
    return np.frombuffer(bytes(AT) + frame, dtype=np.uint8).copy()


def golden(kind: int) -> list[bytes]:
    """Every frame of this kind that real Aeron sent in the captures."""
    sets = [("clean", "capture.pcap"), ("java-cubic-loss", "opening.pcap")]
    payloads = [d.payload for name, file in sets for d in datagrams(name, file)]
    found = [p for p in payloads if struct.unpack_from("<H", p, 6)[0] == kind]
    assert found
    return found


def set_i32(buf: np.ndarray, field: int, value: int) -> np.ndarray:
    changed = buf.copy()
    struct.pack_into("<i", changed, AT + field, value)
    return changed


def test_setup_is_written_and_read_as_real_aeron_does() -> None:
    for frame in golden(types.SETUP):
        buf = array(frame)
        assert setup.check(buf, AT, len(frame)) == header.OK
        fields = (
            header.flags(buf, AT),
            setup.term_offset(buf, AT),
            setup.session_id(buf, AT),
            setup.stream_id(buf, AT),
            setup.initial_term_id(buf, AT),
            setup.active_term_id(buf, AT),
            setup.term_length(buf, AT),
            setup.mtu_length(buf, AT),
            setup.ttl(buf, AT),
        )
        assert fields[2:] == struct.unpack_from("<iiiiiii", frame, 12)
        assert written(setup.write, *fields) == frame


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (setup.TERM_LENGTH, [65536, 1 << 30], [0, -1, 32768, 65537, 98304, -(1 << 31)]),
        (setup.TERM_OFFSET, [0, 32, 65504], [-32, 1, 31, 65536]),
        (setup.MTU_LENGTH, [32, 1408, 65504], [0, -32, 31, 33, 1409, 65536]),
        (setup.ACTIVE_TERM_ID, [3, 4, (1 << 31) - 1, -(1 << 31), 2 - (1 << 31)], [2, -1]),
    ],
)
def test_setup_refuses_invalid_values(field: int, good: list[int], bad: list[int]) -> None:
    buf = array(written(setup.write, 0, 0, 1, 2, 3, 3, TERM_LENGTH, 1408, 0))
    for value in good:
        assert setup.check(set_i32(buf, field, value), AT, setup.LENGTH) == header.OK
    for value in bad:
        assert setup.check(set_i32(buf, field, value), AT, setup.LENGTH) == header.BAD_VALUE
    assert setup.check(buf, AT, setup.LENGTH - 1) == header.TOO_SHORT


def test_status_message_is_written_and_read_as_real_aeron_does() -> None:
    for frame in golden(types.SM):
        buf = array(frame)
        assert status_message.check(buf, AT, len(frame), TERM_LENGTH) == header.OK
        assert not status_message.has_group_tag(buf, AT)
        fields = (
            header.flags(buf, AT),
            status_message.session_id(buf, AT),
            status_message.stream_id(buf, AT),
            status_message.term_id(buf, AT),
            status_message.term_offset(buf, AT),
            status_message.window_length(buf, AT),
            status_message.receiver_id(buf, AT),
        )
        assert fields[1:] == struct.unpack_from("<iiiiiq", frame, 8)
        assert written(status_message.write, *fields, False, 0) == frame


def test_a_group_tag_is_identified_by_the_length() -> None:
    frame = written(status_message.write, 0x80, 1, 2, 3, 64, 128, -5, True, -6)
    header_fields = (44, 0, 0x80, types.SM)
    assert frame == wire.pack("status_message_tagged", *header_fields, 1, 2, 3, 64, 128, -5, -6)
    buf = array(frame)
    assert status_message.has_group_tag(buf, AT)
    assert status_message.group_tag(buf, AT) == -6
    assert status_message.feedback_length(buf, AT) == 8
    for length in (36, 40, 43, 45):
        assert not status_message.has_group_tag(set_i32(buf, 0, length), AT)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (status_message.TERM_OFFSET, [0, 65504], [-32, 16, 65536]),
        (status_message.WINDOW_LENGTH, [0, 1, 32768], [-1, 32769]),
    ],
)
def test_status_message_refuses_invalid_values(field: int, good: list[int], bad: list[int]) -> None:
    buf = array(written(status_message.write, 0, 1, 2, 3, 0, 0, 4, False, 0))
    for value in good:
        assert status_message.check(set_i32(buf, field, value), AT, 36, TERM_LENGTH) == header.OK
    for value in bad:
        status = status_message.check(set_i32(buf, field, value), AT, 36, TERM_LENGTH)
        assert status == header.BAD_VALUE
    assert status_message.check(buf, AT, 35, TERM_LENGTH) == header.TOO_SHORT


def test_nak_is_written_and_read_as_real_aeron_does() -> None:
    for frame in golden(types.NAK):
        buf = array(frame)
        assert nak.check(buf, AT, len(frame), TERM_LENGTH) == header.OK
        fields = (
            nak.session_id(buf, AT),
            nak.stream_id(buf, AT),
            nak.term_id(buf, AT),
            nak.term_offset(buf, AT),
            nak.gap_length(buf, AT),
        )
        assert fields == struct.unpack_from("<iiiii", frame, 8)
        assert written(nak.write, *fields) == frame


@pytest.mark.parametrize(
    ("offset", "length", "status"),
    [
        (0, 0, header.OK),
        (0, TERM_LENGTH, header.OK),
        (65504, 32, header.OK),
        (65504, 33, header.BAD_VALUE),
        (0, TERM_LENGTH + 1, header.BAD_VALUE),
        (0, -1, header.BAD_VALUE),
        (-32, 64, header.BAD_VALUE),
        (16, 32, header.BAD_VALUE),
        (TERM_LENGTH, 0, header.BAD_VALUE),
        (32, 0x7FFFFFFF, header.BAD_VALUE),
    ],
)
def test_a_nak_stays_inside_its_term(offset: int, length: int, status: int) -> None:
    buf = array(written(nak.write, 1, 2, 3, offset, length))
    assert nak.check(buf, AT, nak.LENGTH, TERM_LENGTH) == status
    assert nak.check(buf, AT, nak.LENGTH - 1, TERM_LENGTH) == header.TOO_SHORT


def test_round_trip_probe_is_written_and_read_as_real_aeron_does() -> None:
    requests = set()
    for frame in golden(types.RTTM):
        buf = array(frame)
        assert rtt_measurement.check(buf, AT, len(frame)) == header.OK
        requests.add(bool(rtt_measurement.is_request(buf, AT)))
        fields = (
            header.flags(buf, AT),
            rtt_measurement.session_id(buf, AT),
            rtt_measurement.stream_id(buf, AT),
            rtt_measurement.echo_timestamp_ns(buf, AT),
            rtt_measurement.reception_delta_ns(buf, AT),
            rtt_measurement.receiver_id(buf, AT),
        )
        assert fields[1:] == struct.unpack_from("<iiqqq", frame, 8)
        assert written(rtt_measurement.write, *fields) == frame
        assert rtt_measurement.check(buf, AT, len(frame) - 1) == header.TOO_SHORT
    assert requests == {True, False}


def test_error_carries_its_text() -> None:
    text = np.frombuffer(b"not wanted", dtype=np.uint8).copy()
    frame = written(error.write, 1, 2, -3, True, -4, 13, text, 10)
    fields = (50, 0, types.HAS_GROUP_TAG, types.ERR, 1, 2, -3, -4, 13, 10)
    assert frame == wire.pack("error", *fields) + b"not wanted"
    buf = array(frame)
    assert error.check(buf, AT, len(frame)) == header.OK
    assert (error.session_id(buf, AT), error.stream_id(buf, AT)) == (1, 2)
    assert (error.receiver_id(buf, AT), error.group_tag(buf, AT)) == (-3, -4)
    assert (error.error_code(buf, AT), error.text_length(buf, AT)) == (13, 10)
    assert error.has_group_tag(buf, AT)
    untagged = array(written(error.write, 1, 2, -3, False, -4, 13, text, 10))
    assert not error.has_group_tag(untagged, AT)


def test_error_text_is_truncated_and_checked() -> None:
    text = np.full(1024, 65, dtype=np.uint8)
    frame = written(error.write, 1, 2, 3, False, 0, 13, text, 1024)
    assert len(frame) == error.LENGTH_MAX
    buf = array(frame)
    assert error.check(buf, AT, len(frame)) == header.OK
    for value in (-1, 1024, 0x7FFFFFFF):
        assert error.check(set_i32(buf, error.TEXT_LENGTH, value), AT, 1063) == header.BAD_VALUE
    assert error.check(set_i32(buf, 0, 1062), AT, 1063) == header.BAD_VALUE
    assert error.check(buf, AT, 39) == header.TOO_SHORT


def test_response_setup_names_a_session() -> None:
    frame = written(response_setup.write, 1, 2, -3)
    assert frame == wire.pack("response_setup", 20, 0, 0, types.RSP_SETUP, 1, 2, -3)
    buf = array(frame)
    assert response_setup.check(buf, AT, 20) == header.OK
    assert response_setup.check(buf, AT, 19) == header.TOO_SHORT
    assert (response_setup.session_id(buf, AT), response_setup.stream_id(buf, AT)) == (1, 2)
    assert response_setup.response_session_id(buf, AT) == -3


@pytest.mark.parametrize("address", [b"\x7f\0\0\x01", bytes(range(16))])
def test_resolution_entries_have_the_stated_length(address: bytes) -> None:
    name = np.frombuffer(b"driver-a", dtype=np.uint8).copy()
    octets = np.frombuffer(address, dtype=np.uint8).copy()
    entry = written(resolution.write_entry, types.SELF, 8050, 17, octets, len(address), name, 8)
    kind = resolution.NAME_TO_IP4 if len(address) == 4 else resolution.NAME_TO_IP6
    plain = struct.pack("<BBHi", kind, types.SELF, 8050, 17) + address + struct.pack("<H", 8)
    assert entry == (plain + b"driver-a").ljust(len(entry), b"\0")
    assert len(entry) % 8 == 0
    buf = array(entry)
    unpadded = len(plain) + 8
    assert resolution.check_entry(buf, AT, len(entry)) == len(entry)
    assert resolution.check_entry(buf, AT, unpadded) == len(entry)
    for length in range(unpadded):
        assert resolution.check_entry(buf, AT, length) == resolution.INVALID
    assert resolution.is_self(buf, AT)
    assert (resolution.udp_port(buf, AT), resolution.age_ms(buf, AT)) == (8050, 17)
    assert resolution.name_length(buf, AT) == 8
    assert resolution.name_at(buf, AT) == AT + len(plain)
    buf[AT] = 3
    assert resolution.check_entry(buf, AT, len(entry)) == resolution.INVALID


def test_resolution_header_covers_its_entries() -> None:
    frame = array(written(resolution.write_header, 40) + bytes(32))
    assert header.check(frame, AT, 40) == header.OK
    assert header.frame_type(frame, AT) == types.RES
