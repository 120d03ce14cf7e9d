"""Several sessions: each is polled first in turn, and the limit holds for all together."""

import numpy as np
import pytest

from tests.unit.driver.client.compiled_handlers import count_bytes
from tests.unit.driver.client.own_stream import MTU, STREAM_ID, OwnStream
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.subscription import Subscription


class Sessions:
    """A subscription with images of several streams."""

    def __init__(self, folder, count):
        self.streams = []
        self.subscription = Subscription(
            None, channel="own", stream_id=STREAM_ID, registration_id=9
        )
        for number in range(count):
            where = folder / str(number)
            where.mkdir()
            stream = OwnStream(where)
            stream.image.correlation_id = number
            self.streams.append(stream)
            self.subscription.add_image(stream.image)

    def write(self, each=1):
        for number, stream in enumerate(self.streams):
            stream.write(*[b"%d" % number] * each)


@pytest.fixture
def sessions(tmp_path):
    return Sessions(tmp_path, 3)


def polled(subscription, limit=10):
    seen = []
    count = subscription.poll(lambda payload, header: seen.append(int(bytes(payload))), limit)
    assert count == len(seen)
    return seen


def test_each_session_is_first_in_its_turn(sessions):
    seen = []
    for _ in range(5):
        sessions.write()
        seen.append(polled(sessions.subscription))
    assert seen == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]


def test_the_limit_holds_for_all_sessions_and_none_starves(sessions):
    sessions.write(3)
    seen = [polled(sessions.subscription, 3) for _ in range(4)]
    assert seen == [[0, 0, 0], [1, 1, 1], [2, 2, 2], []]


def test_a_removed_session_keeps_the_order_of_the_others(sessions):
    sessions.write()
    assert polled(sessions.subscription, 1) == [0]
    assert polled(sessions.subscription, 1) == [1]
    assert sessions.subscription.remove_image(2) is sessions.streams[2].image
    assert sessions.subscription.remove_image(2) is None
    sessions.write()
    assert polled(sessions.subscription) == [0, 1]


def test_a_subscription_without_sessions_reads_nothing(tmp_path):
    subscription = Sessions(tmp_path, 0).subscription
    assert polled(subscription) == polled(subscription) == []
    assert not subscription.is_connected
    assert subscription.image_count == 0


def test_images_are_found_by_index_and_session(sessions):
    images = [stream.image for stream in sessions.streams]
    assert [sessions.subscription.image_at_index(index) for index in range(3)] == images
    with pytest.raises(IndexError):
        sessions.subscription.image_at_index(3)
    assert sessions.subscription.image_by_session_id(images[0].session_id) is images[0]


def test_every_kind_of_poll_reads_all_sessions(sessions):
    subscription, sums = sessions.subscription, np.zeros(5, np.int64)
    sessions.write()
    assert subscription.controlled_poll(lambda payload, header: None) == 3
    sessions.write()
    assert subscription.poll_kernel(count_bytes, sums) == 3
    assert sums[2] == sum(b"012")
    sessions.write()
    batch = FragmentBatch(8, MTU)
    assert subscription.poll_batch(batch, 2) == 2
    assert subscription.poll_batch(batch) == len(batch) == 1
    sessions.write()
    assert subscription.block_poll(lambda *block: None, 4096) == 3 * 64
    sessions.write()
    assert subscription.raw_poll(lambda *block: None, 4096) == 3 * 64
