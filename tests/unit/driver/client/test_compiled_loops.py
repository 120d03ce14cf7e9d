"""Compiled loops over a stream without a driver read and write like the methods."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.driver.client.own_stream import MTU, TERM_LENGTH, OwnStream
from windtunnel.driver.client.compiled_loops import consume, next_block, offer, offer_batch
from windtunnel.driver.logbuffer import publication_result as result


@numba.njit(nogil=True)
def read_blocks(blocks, length_limit, found):
    """Read all blocks. Stores their offsets in the log and their lengths."""
    count = 0
    at, length = next_block(blocks, length_limit)
    while length > 0:
        found[count, 0], found[count, 1] = at, length
        count += 1
        consume(blocks, length)
        at, length = next_block(blocks, length_limit)
    return count


@numba.njit(nogil=True)
def write(publication, message, count):
    position = 0
    for _ in range(count):
        position = offer(publication, message, 0, message.size, 0)
    return position


@numba.njit(nogil=True)
def write_batch(publication, messages, lengths, first):
    return offer_batch(publication, messages, lengths[:first].sum(), lengths, first)


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


def blocks_of(stream, image, length_limit):
    """Return the bytes of all blocks that a compiled loop reads, and the position after them."""
    found = np.zeros((4096, 2), np.int64)
    count = image.run_loop(read_blocks, length_limit, found)
    log = stream.mapped.log
    blocks = [bytes(log[at : at + length]) for at, length in found[:count].tolist()]
    return blocks, image.position


@given(
    lengths=st.lists(st.integers(0, 3 * MTU), max_size=20),
    length_limit=st.integers(1, TERM_LENGTH),
)
def test_a_loop_reads_the_blocks_that_block_poll_reads(tmp_path_factory, lengths, length_limit):
    stream = OwnStream(tmp_path_factory.mktemp("stream"))
    for length in lengths:
        stream.write(bytes(length))
        stream.pad(length % 100)
    polled, other = [], stream.new_image()
    while other.block_poll(lambda block, *_: polled.append(bytes(block)), length_limit):
        pass
    polled_position = other.position
    assert blocks_of(stream, stream.image, length_limit) == (polled, polled_position)
    assert stream.counted_position() == polled_position


def test_a_loop_continues_in_the_next_term(stream):
    # A frame of 1,024 bytes, 64 of which fill a term.
    stream.write(*[bytes(992)] * 100)
    blocks, position = blocks_of(stream, stream.image, TERM_LENGTH)
    assert [len(block) for block in blocks] == [TERM_LENGTH, 36 * 1024]
    assert position == stream.counted_position() == 100 * 1024


def test_polls_and_loops_may_alternate(stream):
    stream.write(b"one", b"two", b"three")
    read = []
    stream.image.poll(lambda payload, _: read.append(bytes(payload)), 1)
    assert blocks_of(stream, stream.image, 64)[1] == stream.publication.position
    stream.write(b"four")
    stream.image.poll(lambda payload, _: read.append(bytes(payload)))
    assert read == [b"one", b"four"]


def test_blocks_consumed_before_a_loop_raises_stay_consumed(stream):
    stream.write(b"one", b"two")

    def fail(blocks):
        consume(blocks, next_block(blocks, 64)[1])
        raise ValueError("a fault of the loop")

    with pytest.raises(ValueError, match="a fault of the loop"):
        stream.image.run_loop(fail)
    assert stream.image.position == stream.counted_position() == 64


def test_a_loop_does_not_run_on_a_closed_image(stream):
    stream.write(b"one")
    stream.image.on_unavailable()
    assert stream.image.run_loop(read_blocks, 64, np.zeros((1, 2), np.int64)) is None
    assert stream.counted_position() == 0


def test_a_loop_offers_as_the_publication_does(stream, tmp_path):
    message = np.arange(100, dtype=np.uint8)
    position = stream.publication.run_loop(write, message, 3)
    assert position == stream.publication.position == 3 * 160
    read = []
    stream.image.poll(lambda payload, _: read.append(bytes(payload)))
    assert read == [bytes(message)] * 3
    stream.limit_to(position)
    assert stream.publication.run_loop(write, message, 1) == result.BACK_PRESSURED
    stream.limit_to(position + 1)
    assert stream.publication.run_loop(write, np.zeros(1 << 20, np.uint8), 1) == result.ERROR


def test_a_loop_offers_the_rest_of_a_batch(stream):
    messages, lengths = np.frombuffer(b"onetwothree", np.uint8), np.array([3, 3, 5])
    written, position = stream.publication.run_loop(write_batch, messages, lengths, 1)
    assert (written, position) == (2, 2 * 64)
    read = []
    stream.image.poll(lambda payload, _: read.append(bytes(payload)))
    assert read == [b"two", b"three"]


def test_a_loop_does_not_run_on_a_closed_publication(stream):
    stream.publication.close()
    assert stream.publication.run_loop(write, np.zeros(8, np.uint8), 1) is None
