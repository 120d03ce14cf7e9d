"""Reserved values that the program computes from each frame, and suppliers that raise."""

import zlib

import numpy as np
import pytest

from tests.unit.driver.client.own_stream import MTU, TERM_LENGTH, OwnStream
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer import publication_result as result

KINDS = [descriptor.EXCLUSIVE_PUBLICATION, descriptor.CONCURRENT_PUBLICATION]
LENGTHS = [0, 1, 31, 32, MTU - 32, MTU - 31, 5_000, TERM_LENGTH // 8]


@pytest.fixture(params=KINDS, ids=["exclusive", "concurrent"])
def stream(request, tmp_path):
    return OwnStream(tmp_path, log_type=request.param)


def crc_of(frame):
    return zlib.crc32(frame[32:])


def fragments(stream):
    seen = []
    while stream.image.poll(
        lambda payload, header: seen.append((bytes(payload), header.flags, header.reserved_value))
    ):
        pass
    return seen


@pytest.mark.parametrize("length", LENGTHS)
def test_the_supplier_gets_each_whole_frame_and_its_value_is_stored(tmp_path, stream, length):
    message = np.random.default_rng(length).bytes(length)
    position = stream.publication.offer(message, reserved_value=crc_of)
    supplied = fragments(stream)
    assert b"".join(payload for payload, _, _ in supplied) == message
    assert [value for *_, value in supplied] == [zlib.crc32(payload) for payload, _, _ in supplied]
    (tmp_path / "plain").mkdir()
    plain = OwnStream(tmp_path / "plain", log_type=stream.mapped.type)
    assert plain.publication.offer(message) == position
    for log in (stream.mapped.log, plain.mapped.log):
        for at in range(0, position, MTU):
            log[at + 24 : at + 32] = 0
    assert np.array_equal(stream.mapped.log, plain.mapped.log)


def test_parts_are_one_message_for_the_supplier(stream):
    assert stream.publication.offer_parts([b"ab", b"c"], reserved_value=crc_of) == 64
    assert fragments(stream) == [(b"abc", 0xC0, zlib.crc32(b"abc"))]


def test_a_part_of_a_message_can_be_offered(stream):
    assert stream.publication.offer(b"0123", 1, 2, reserved_value=crc_of) == 64
    assert fragments(stream)[0][0] == b"12"


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, 5), (5, None), (0, -1)])
def test_a_range_outside_the_message_is_an_error(stream, offset, length):
    position = stream.publication.offer(b"0123", offset, length, reserved_value=crc_of)
    assert position == result.ERROR
    assert stream.publication.position == 0


def test_a_message_beyond_the_maximum_length_is_an_error(stream):
    long = bytes(TERM_LENGTH // 8 + 1)
    assert stream.publication.offer(long, reserved_value=crc_of) == result.ERROR


def test_the_limit_back_pressures(stream):
    stream.limit_to(0)
    assert stream.publication.offer(b"1", reserved_value=crc_of) == result.BACK_PRESSURED


@pytest.mark.parametrize("failing", [1, 2, 4])
def test_a_supplier_that_raises_leaves_padding_and_the_stream_continues(stream, failing):
    calls = []

    def supplier(frame):
        calls.append(len(frame))
        if len(calls) == failing:
            raise RuntimeError("no")
        return 0

    with pytest.raises(RuntimeError, match="no"):
        stream.publication.offer(bytes(5_000), reserved_value=supplier)
    stream.write(b"next")
    seen = fragments(stream)
    assert len(seen) == failing
    assert seen[-1][0] == b"next"
    assert stream.image.position == stream.publication.position


def test_a_value_that_is_not_a_number_leaves_padding(stream):
    with pytest.raises(ValueError, match="invalid literal"):
        stream.publication.offer(b"1", reserved_value=lambda frame: "x")
    stream.write(b"next")
    assert [payload for payload, *_ in fragments(stream)] == [b"next"]
