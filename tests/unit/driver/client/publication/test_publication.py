"""Publications: every result code, and closed publications that do not access memory."""

import numpy as np
import pytest

from tests.unit.driver.client.own_stream import MTU, SESSION_ID, STREAM_ID, TERM_LENGTH, OwnStream
from windtunnel.driver.client.publication.claim import Claim
from windtunnel.driver.kernels.native_kernel import NativeKernel
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer import publication_result as result

KINDS = [descriptor.EXCLUSIVE_PUBLICATION, descriptor.CONCURRENT_PUBLICATION]


@pytest.fixture(params=KINDS, ids=["exclusive", "concurrent"])
def stream(request, tmp_path):
    return OwnStream(tmp_path, log_type=request.param)


def read(stream):
    seen = []
    while stream.image.poll(lambda payload, header: seen.append(bytes(payload))):
        pass
    return seen


def test_its_properties_are_those_of_its_log(stream):
    publication = stream.publication
    assert (publication.session_id, publication.stream_id) == (SESSION_ID, STREAM_ID)
    assert (publication.term_length, publication.mtu_length) == (TERM_LENGTH, MTU)
    assert publication.max_payload_length == MTU - 32
    assert publication.max_message_length == TERM_LENGTH // 8
    is_exclusive = stream.mapped.type == descriptor.EXCLUSIVE_PUBLICATION
    assert publication.is_exclusive is is_exclusive
    assert publication.max_possible_position == TERM_LENGTH << 31


@pytest.mark.parametrize(
    "message", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), np.frombuffer(b"bytes", "u1")]
)
def test_any_bytes_can_be_offered(stream, message):
    assert stream.publication.offer(message) == 64
    assert read(stream) == [b"bytes"]


def test_a_part_of_a_message_can_be_offered(stream):
    stream.publication.offer(b"0123456789", 2, 3)
    stream.publication.offer(b"0123456789", 7)
    assert read(stream) == [b"234", b"789"]


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, 11), (10, 1), (0, -1), (11, None)])
def test_a_range_outside_the_message_is_an_error(stream, offset, length):
    assert stream.publication.offer(b"0123456789", offset, length) == result.ERROR
    assert stream.publication.position == 0


def test_a_message_beyond_the_maximum_length_is_an_error(stream):
    longest = TERM_LENGTH // 8
    assert stream.publication.offer(bytes(longest + 1)) == result.ERROR
    assert stream.publication.offer(bytes(longest)) > 0


def test_parts_make_one_message(stream):
    assert stream.publication.offer_parts([b"ab", b"", b"cde"]) == 64
    assert stream.publication.offer_parts([]) == 96
    assert read(stream) == [b"abcde", b""]


def test_a_batch_is_written_up_to_the_limit(stream):
    stream.limit_to(2 * 64)
    messages = np.frombuffer(b"aabbcc", dtype=np.uint8).copy()
    lengths = np.array([2, 2, 2], dtype=np.int64)
    assert stream.publication.offer_batch(messages, lengths) == (2, result.BACK_PRESSURED)
    stream.limit_to(1 << 20)
    assert stream.publication.offer_batch(messages[4:], lengths, 2) == (1, 3 * 64)
    assert read(stream) == [b"aa", b"bb", b"cc"]


def test_a_claim_is_read_once_it_is_committed(stream):
    claim = stream.publication.try_claim(5)
    assert isinstance(claim, Claim)
    claim.payload[:] = b"claim"
    assert read(stream) == []
    assert claim.commit()
    assert not claim.commit()
    assert read(stream) == [b"claim"]


def test_an_aborted_claim_is_skipped(stream):
    stream.publication.try_claim(5).abort()
    stream.write(b"next")
    assert read(stream) == [b"next"]


def test_a_claim_of_more_than_a_frame_is_an_error(stream):
    assert stream.publication.try_claim(MTU - 31) == result.ERROR
    assert isinstance(stream.publication.try_claim(MTU - 32), Claim)


def test_the_limit_back_pressures_or_reports_not_connected(stream):
    stream.limit_to(0)
    assert stream.publication.offer(b"1") == result.BACK_PRESSURED
    assert stream.publication.position_limit == 0
    stream.connect(False)
    assert not stream.publication.is_connected
    assert stream.publication.offer(b"1") == result.NOT_CONNECTED


def test_a_closed_publication_returns_closed_and_does_not_change_its_log(stream):
    before = stream.mapped.log.copy()
    publication = stream.publication
    publication.close()
    publication.close()
    assert stream.conductor.released == [(publication, False)]
    assert publication.offer(b"1") == result.CLOSED
    assert publication.offer_parts([b"1"]) == result.CLOSED
    lengths = np.array([1], dtype=np.int64)
    assert publication.offer_batch(np.zeros(1, np.uint8), lengths) == (0, result.CLOSED)
    assert publication.try_claim(1) == result.CLOSED
    assert (publication.position, publication.position_limit) == (result.CLOSED, result.CLOSED)
    assert not publication.is_connected
    assert np.array_equal(stream.mapped.log, before)


def test_a_close_during_an_offer_keeps_the_log_mapped(stream, monkeypatch):
    """Another thread may close between the check of `is_closed` and the kernel."""
    publication = stream.publication

    def close_then_convert(message):
        publication.close()
        return np.frombuffer(message, dtype=np.uint8)

    monkeypatch.setattr(
        "windtunnel.driver.client.publication.publication.as_bytes", close_then_convert
    )
    assert publication.offer(b"1") == 64
    assert read(stream) == [b"1"]


@pytest.mark.parametrize("step", [2, -1])
def test_a_message_that_is_not_contiguous_is_copied(stream, step):
    content = b"0123456789"
    assert stream.publication.offer(memoryview(content)[::step]) == 64
    assert stream.publication.offer(np.frombuffer(content, np.uint8)[::step]) == 128
    assert read(stream) == [content[::step]] * 2


def test_the_available_window_is_the_distance_to_the_limit(stream):
    stream.limit_to(200)
    stream.write(b"1")
    assert stream.publication.available_window == 200 - 64
    stream.publication.close()
    assert stream.publication.available_window == result.CLOSED


@pytest.mark.parametrize("write", ["offer", "offer_parts", "supplied"])
def test_a_message_that_is_too_long_is_an_error_once_there_is_space(stream, write):
    # Source: aeron_publication_offer and ConcurrentPublication.offer of Aeron 1.53, which check the
    # position limit before the length.
    message = bytes(TERM_LENGTH // 8 + 1)

    def outcome():
        if write == "offer_parts":
            return stream.publication.offer_parts([message[:5], message[5:]])
        value = (lambda frame: 0) if write == "supplied" else 0
        return stream.publication.offer(message, reserved_value=value)

    assert outcome() == result.ERROR
    stream.limit_to(0)
    assert outcome() == result.BACK_PRESSURED
    stream.connect(False)
    assert outcome() == result.NOT_CONNECTED
    assert stream.publication.position == 0


def test_a_claim_that_is_too_long_is_an_error_in_every_state(stream):
    # Source: aeron_publication_try_claim, which checks the length first, like tryClaim in Java.
    stream.limit_to(0)
    assert stream.publication.try_claim(MTU - 31) == result.ERROR
    stream.publication.close()
    for length in (MTU - 31, -1):
        assert stream.publication.try_claim(length) == result.ERROR
    assert stream.publication.try_claim(MTU - 32) == result.CLOSED


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("offer", (b"abc", 0.0)),
        ("offer", (b"abc", 0, "3")),
        ("offer", (b"abc", 0, None, None)),
        ("offer", (b"abc", 0, None, 1.5)),
        ("offer_parts", ([b"a"], "1")),
        ("offer_batch", (np.zeros(4, np.uint8), np.array([4.0]))),
        ("offer_batch", ("abcd", np.array([4]))),
        ("try_claim", (3.5,)),
    ],
)
def test_an_argument_of_a_wrong_type_is_a_type_error_and_compiles_nothing(
    stream, method, arguments, monkeypatch
):
    """A compilation takes longer than the driver waits for a client."""
    monkeypatch.setattr(NativeKernel, "_compile", lambda *_: pytest.fail("compiles"))
    with pytest.raises(TypeError):
        getattr(stream.publication, method)(*arguments)
    assert read(stream) == []


def test_an_integer_of_more_than_64_bits_is_a_value_error(stream):
    with pytest.raises(ValueError, match="64 bits, found 9223372036854775808"):
        stream.publication.offer(b"abc", reserved_value=1 << 63)


@pytest.mark.parametrize(
    "lengths", [[2, 3], np.array([2, 3], np.int32), np.array([2, 9, 3], np.uint8)[::2]]
)
@pytest.mark.parametrize(
    "messages", [b"aabbb", np.frombuffer(b"a-a-b-b-b", np.uint8)[::2], bytearray(b"aabbb")]
)
def test_a_batch_may_have_any_bytes_and_integers(stream, messages, lengths):
    assert stream.publication.offer_batch(messages, lengths)[0] == 2
    assert read(stream) == [b"aa", b"bbb"]


def test_integers_of_numpy_are_integers(stream):
    number = np.int32(1)
    assert stream.publication.offer(b"abc", number, number, number) > 0
    assert read(stream) == [b"b"]
    assert not isinstance(stream.publication.try_claim(np.int16(3)), int)
