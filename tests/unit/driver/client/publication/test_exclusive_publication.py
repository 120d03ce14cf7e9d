"""Operations of exclusive publications only: padding, blocks, revoking the stream."""

import numpy as np
import pytest

from tests.unit.driver.client.own_stream import TERM_LENGTH, OwnStream
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.logbuffer import publication_result as result


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


def read(stream):
    seen = []
    while stream.image.poll(lambda payload, header: seen.append(bytes(payload))):
        pass
    return seen


def test_padding_is_skipped(stream):
    assert isinstance(stream.publication, ExclusivePublication)
    stream.write(b"before")
    assert stream.publication.append_padding(100) == 64 + 160
    stream.write(b"after")
    assert read(stream) == [b"before", b"after"]


def test_padding_beyond_the_longest_message_is_an_error(stream):
    assert stream.publication.append_padding(TERM_LENGTH // 8 + 1) == result.ERROR
    assert stream.publication.append_padding(-1) == result.ERROR
    assert stream.publication.append_padding(TERM_LENGTH // 8) > 0


def test_padding_is_back_pressured(stream):
    stream.limit_to(0)
    assert stream.publication.append_padding(1) == result.BACK_PRESSURED


def test_a_block_continues_the_stream(tmp_path, stream):
    (tmp_path / "copy").mkdir()
    copy = OwnStream(tmp_path / "copy")
    end = stream.write(b"one", bytes(5_000), b"two")
    log = stream.mapped.log
    assert copy.publication.offer_block(log[:64]) == 64
    assert copy.publication.offer_block(memoryview(log), 64, end - 64) == end
    assert read(copy) == read(stream)
    assert np.array_equal(copy.mapped.log[:end], log[:end])
    assert copy.publication.position == end


@pytest.mark.parametrize("field", [8, 12, 16, 20])
def test_a_block_of_another_position_or_stream_is_an_error(tmp_path, stream, field):
    stream.write(b"one")
    (tmp_path / "copy").mkdir()
    copy = OwnStream(tmp_path / "copy")
    frames = stream.mapped.log[:64].copy()
    frames[field] ^= 32
    assert copy.publication.offer_block(frames) == result.ERROR
    assert copy.publication.offer_block(stream.mapped.log, 0, 63) == result.ERROR
    assert copy.publication.offer_block(stream.mapped.log, -1) == result.ERROR
    assert copy.publication.position == 0


def test_a_block_is_written_in_place(tmp_path, stream):
    (tmp_path / "copy").mkdir()
    copy = OwnStream(tmp_path / "copy")
    end = stream.write(b"one", bytes(5_000), b"two")
    log = stream.mapped.log
    claim = copy.publication.claim_block()
    assert claim.position == 0
    assert claim.frames.size == TERM_LENGTH
    claim.frames[8:end] = log[8:end]
    assert read(copy) == []
    claim.first_word[:] = log[:8]
    assert claim.commit(end) == copy.publication.position == end
    assert read(copy) == read(stream)
    assert np.array_equal(copy.mapped.log[:TERM_LENGTH], log[:TERM_LENGTH])
    assert copy.publication.claim_block().frames.size == TERM_LENGTH - end


def test_a_claim_of_a_block_is_committed_once(stream):
    claim = stream.publication.claim_block()
    claim.first_word[:] = (64, 0, 0, 0, 0, 0, 1, 0)
    assert claim.commit(64) == 64
    assert claim.commit(64) == result.ERROR
    claim.abort()
    assert stream.mapped.log[0] == 64
    for length in (0, 33, TERM_LENGTH):
        assert stream.publication.claim_block().commit(length) == result.ERROR
    assert stream.publication.position == 64


def test_an_aborted_claim_of_a_block_leaves_nothing(stream):
    claim = stream.publication.claim_block()
    claim.frames[8:200] = 1
    claim.abort()
    assert not stream.mapped.log[:TERM_LENGTH].any()
    assert claim.commit(64) == result.ERROR
    void = stream.publication.claim_block()
    end = stream.write(b"one")
    before = stream.mapped.log[:end].copy()
    void.abort()
    assert np.array_equal(stream.mapped.log[:end], before)


def test_a_claim_of_a_block_is_back_pressured(stream):
    stream.limit_to(0)
    assert stream.publication.claim_block() == result.BACK_PRESSURED
    stream.connect(False)
    assert stream.publication.claim_block() == result.NOT_CONNECTED


@pytest.mark.parametrize("order", ["revoke", "revoke_on_close", "close"])
def test_the_remove_command_has_the_revoke_flag(stream, order):
    getattr(stream.publication, order)()
    stream.publication.close()
    assert stream.conductor.released == [(stream.publication, order != "close")]
    assert stream.publication.is_closed


def test_a_closed_publication_returns_closed(stream):
    stream.publication.close()
    assert stream.publication.append_padding(1) == result.CLOSED
    assert stream.publication.offer_block(bytes(32)) == result.CLOSED
    assert stream.publication.claim_block() == result.CLOSED


def test_padding_that_is_too_long_is_an_error_in_every_state(stream):
    # Source: aeron_exclusive_publication_append_padding, which checks the length first.
    stream.publication.close()
    longest = stream.publication.max_message_length
    assert stream.publication.append_padding(longest + 1) == result.ERROR
    assert stream.publication.append_padding(longest) == result.CLOSED
