"""Conductor and receiver exchange consistent blocks of an image."""

import threading

import numpy as np
import pytest

from tests.unit.driver.media_driver import loops
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.media_driver.image import publication_image as image

SLOT = 1
COUNT = 2_000 if JIT_DISABLED else 1_000_000


def test_a_published_block_is_read_consistently_from_its_own_record():
    records, words = image.make_images(3)
    assert image.read_status(words, SLOT) == (0, 0, 0)
    image.publish_status(words, SLOT, 1 << 40, 65_536)
    image.publish_loss(words, SLOT, -7, 96, 1408)
    assert image.read_status(words, SLOT) == (1, 1 << 40, 65_536)
    assert image.read_loss(words, SLOT) == (1, -7, 96, 1408)
    assert image.status_change_acquire(words, SLOT) == image.loss_change_acquire(words, SLOT) == 1
    assert (records[SLOT].sm_position, records[SLOT].loss_length) == (1 << 40, 1408)
    assert not words[: image.RECORD_LENGTH].any()
    assert not words[2 * image.RECORD_LENGTH :].any()


@pytest.mark.parametrize("block", ["sm", "loss"])
def test_a_block_is_not_read_during_a_write(block):
    records, words = image.make_images(2)
    image.publish_status(words, SLOT, 32, 64)
    image.publish_loss(words, SLOT, 7, 0, 32)
    records[SLOT][f"begin_{block}_change"] += 1
    read = {"sm": image.read_status, "loss": image.read_loss}[block]
    assert read(words, SLOT)[0] == -1


@pytest.mark.parametrize(
    ("field", "offset"),
    [
        ("last_packet_ns", image.LAST_PACKET_NS),
        ("is_end_of_stream", image.IS_END_OF_STREAM),
        ("is_revoked", image.IS_REVOKED),
    ],
)
def test_shared_words_are_the_fields_of_the_record(field, offset):
    records, words = image.make_images(2)
    image.set_shared_release(words, SLOT, offset, 5)
    assert records[SLOT][field] == 5
    assert image.shared_acquire(words, SLOT, offset) == 5


def test_two_threads_never_see_a_torn_block():
    _, words = image.make_images(2)
    done, found = np.zeros(64, np.uint8), []
    loops.publish_until(words, 0, 1, done)
    loops.read_until(words, 0, done)
    done[:] = 0
    reader = threading.Thread(target=lambda: found.append(loops.read_until(words, SLOT, done)))
    reader.start()
    loops.publish_until(words, SLOT, COUNT, done)
    reader.join()
    torn, read, _ = found[0]
    assert torn == 0
    assert read > 0
    assert image.read_status(words, SLOT) == (COUNT, COUNT, COUNT)
