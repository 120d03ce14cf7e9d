"""Claims: committed once, aborted on failure, and distinct among threads that share a stream."""

import threading

import numpy as np
import pytest

from tests.unit.driver.client.own_stream import TERM_LENGTH, OwnStream
from windtunnel.driver.client.publication.claim import Claim
from windtunnel.driver.logbuffer import descriptor

KINDS = [descriptor.EXCLUSIVE_PUBLICATION, descriptor.CONCURRENT_PUBLICATION]


@pytest.fixture(params=KINDS, ids=["exclusive", "concurrent"])
def stream(request, tmp_path):
    return OwnStream(tmp_path, log_type=request.param)


def read(stream):
    seen = []
    while stream.image.poll(
        lambda payload, header: seen.append((bytes(payload), header.reserved_value))
    ):
        pass
    return seen


def claimed(stream, length):
    claim = stream.publication.try_claim(length)
    assert isinstance(claim, Claim)
    return claim


def test_a_with_block_commits(stream):
    claim = claimed(stream, 5)
    assert claim.position == 64 == stream.publication.position
    with claim as payload:
        payload[:] = b"claim"
        claim.reserved_value = -3
        assert claim.reserved_value == -3
    assert read(stream) == [(b"claim", -3)]
    assert not claim.commit()


def test_a_with_block_that_raises_aborts(stream):
    with pytest.raises(RuntimeError), claimed(stream, 5):
        raise RuntimeError("no")
    stream.write(b"next")
    assert read(stream) == [(b"next", 0)]


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_a_finished_claim_does_not_change_the_log(stream, ends):
    first = claimed(stream, 5)
    assert getattr(first, ends)()
    log = stream.mapped.log
    # The same offset, claimed by another publisher three terms later.
    log[0:4] = np.frombuffer((-37).to_bytes(4, "little", signed=True), np.uint8)
    before = log[:64].copy()
    first.reserved_value = 9
    assert not first.commit()
    assert not first.abort()
    assert (log[:64] == before).all()


def test_a_claim_outlives_its_publication(stream):
    claim = claimed(stream, 5)
    stream.publication.close()
    claim.payload[:] = b"after"
    assert claim.commit()
    assert read(stream) == [(b"after", 0)]


def test_concurrent_claims_do_not_overlap(tmp_path):
    stream = OwnStream(tmp_path, log_type=descriptor.CONCURRENT_PUBLICATION)
    each, writers = 100, 4
    assert each * writers * 64 < TERM_LENGTH
    places = [[] for _ in range(writers)]

    def write(mine):
        for _ in range(each):
            claim = claimed(stream, 8)
            mine.append(claim.position)
            with claim as payload:
                payload[:] = claim.position.to_bytes(8, "little")

    threads = [threading.Thread(target=write, args=(mine,)) for mine in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [64 * number for number in range(1, each * writers + 1)]
    assert sorted(place for mine in places for place in mine) == expected
    assert [int.from_bytes(payload, "little") for payload, _ in read(stream)] == expected
