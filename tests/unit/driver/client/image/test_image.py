"""Polling an image: delivered fragments, positions, and handlers that raise."""

import pytest

from tests.unit.driver.client.own_stream import (
    INITIAL_TERM_ID,
    SESSION_ID,
    STREAM_ID,
    TERM_LENGTH,
    OwnStream,
)

NEXT = b"in the next term, being too long for this one"
ONE = 64  # what a message of up to 32 bytes occupies


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


def collect(stream, limit=10):
    seen = []
    count = stream.image.poll(lambda payload, header: seen.append(bytes(payload)), limit)
    assert count == len(seen)
    return seen


def fill_term(stream):
    """Write 64 messages of a 64th term each; a PAD truncates the last one."""
    size = TERM_LENGTH // 64
    stream.write(*[bytes(size - 32)] * 63, bytes(size - 96))
    stream.write(NEXT)


def test_fragments_are_delivered_in_order_with_their_headers(stream):
    stream.write(b"one", b"two")
    seen = []

    def handler(payload, header):
        seen.append((bytes(payload), header.position, header.term_offset, header.flags))
        assert (header.session_id, header.stream_id) == (SESSION_ID, STREAM_ID)
        assert (header.term_id, header.reserved_value) == (INITIAL_TERM_ID, 0)
        assert header.image is stream.image

    assert stream.image.poll(handler) == 2
    assert seen == [(b"one", ONE, 0, 0xC0), (b"two", 2 * ONE, ONE, 0xC0)]


def test_a_poll_delivers_no_more_than_the_limit(stream):
    stream.write(b"1", b"2", b"3")
    assert collect(stream, 2) == [b"1", b"2"]
    assert collect(stream, 2) == [b"3"]
    assert collect(stream, 2) == []


def test_the_position_counter_is_stored_after_the_handlers(stream):
    stream.write(b"1", b"2")
    during = []
    stream.image.poll(lambda payload, header: during.append(stream.counted_position()))
    assert during == [0, 0]
    assert stream.counted_position() == stream.image.position == 2 * ONE


def test_a_fragment_counts_as_consumed_when_its_handler_raises(stream):
    stream.write(b"1", b"2", b"3")
    seen = []

    def handler(payload, header):
        seen.append(bytes(payload))
        if payload == b"2":
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        stream.image.poll(handler)
    assert seen == [b"1", b"2"]
    assert stream.counted_position() == stream.image.position == 2 * ONE
    assert collect(stream) == [b"3"]


def test_a_frame_counts_as_consumed_when_its_handler_raises(stream):
    stream.write(b"1", b"2")

    def handler(position, frame):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        stream.image.poll_frames(handler)
    assert stream.counted_position() == ONE
    assert collect(stream) == [b"2"]


def test_a_poll_ends_with_the_term_and_skips_padding(stream):
    fill_term(stream)
    assert len(collect(stream, 256)) == 64
    # The poll advances over the padding, which is not delivered.
    assert stream.image.position == TERM_LENGTH
    assert collect(stream, 256) == [NEXT]


def test_poll_frames_delivers_whole_frames_and_padding(stream):
    fill_term(stream)
    seen = []
    while stream.image.poll_frames(lambda at, frame: seen.append((at, bytes(frame)))):
        pass
    positions = [at for at, _ in seen]
    assert positions[0] == 0
    assert positions == sorted(positions)
    at, padding = seen[64]
    assert (at, len(padding), padding[6:8]) == (TERM_LENGTH - 64, 32, b"\0\0")
    assert int.from_bytes(padding[:4], "little") == 64
    at, frame = seen[65]
    assert (at, frame[32:]) == (TERM_LENGTH, NEXT)


def test_a_block_has_whole_frames_and_padding_is_a_block_of_its_own(stream):
    fill_term(stream)
    seen = []

    def handler(block, session_id, term_id, position):
        assert session_id == SESSION_ID
        seen.append((len(block), term_id, position))

    size = TERM_LENGTH // 64
    assert stream.image.block_poll(handler, 2 * size + 100) == 2 * size
    while stream.image.block_poll(handler, TERM_LENGTH):
        pass
    wrapped = -(1 << 31)
    assert seen == [
        (2 * size, INITIAL_TERM_ID, 0),
        (TERM_LENGTH - 64 - 2 * size, INITIAL_TERM_ID, 2 * size),
        (64, INITIAL_TERM_ID, TERM_LENGTH - 64),
        (96, wrapped, TERM_LENGTH),
    ]


def test_the_end_of_the_stream_is_reached_when_all_of_it_was_read(stream):
    end = stream.write(b"last")
    stream.end_at(end)
    assert not stream.image.is_end_of_stream
    assert collect(stream) == [b"last"]
    assert stream.image.is_end_of_stream
    assert stream.image.end_of_stream_position == end


@pytest.mark.parametrize("is_read", [True, False])
def test_an_unavailable_image_keeps_is_end_of_stream(stream, is_read):
    end = stream.write(b"last")
    stream.end_at(end)
    if is_read:
        collect(stream)
    for _ in range(2):
        assert stream.image.on_unavailable() is stream.mapped
    assert stream.image.is_end_of_stream is is_read
    assert stream.image.position == (end if is_read else 0)
    assert stream.image.end_of_stream_position == end


def test_an_unavailable_image_delivers_nothing(stream):
    stream.write(b"1")
    stream.image.on_unavailable()

    def never(*_):
        raise AssertionError("a gone image was read")

    assert stream.image.poll(never) == 0
    assert stream.image.poll_frames(never) == 0
    assert stream.image.block_poll(never, 4096) == 0
    assert stream.counted_position() == 0


def test_an_image_closed_during_a_poll_does_not_store_its_counter(stream):
    stream.write(b"1", b"2")
    stream.image.poll(lambda payload, header: stream.image.on_unavailable())
    assert stream.counted_position() == 0
    assert stream.image.position == 0


def test_an_image_starts_at_the_value_of_its_counter(stream):
    stream.write(b"before", b"after")
    stream.image.poll(lambda payload, header: None, 1)
    late = stream.new_image()
    assert (late.join_position, late.position) == (ONE, ONE)
