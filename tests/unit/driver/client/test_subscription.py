"""Several sessions: each is polled first in turn, and the limit holds for all together."""

import gc

import numpy as np
import pytest

from tests.unit.driver.client.compiled_handlers import count_bytes
from tests.unit.driver.client.own_stream import MTU, STREAM_ID, OwnStream
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.kernels.python_method import IS_AVAILABLE


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


def test_sessions_are_polled_first_in_turn(sessions):
    seen = []
    for _ in range(5):
        sessions.write()
        seen.append(polled(sessions.subscription))
    assert seen == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]


def test_the_limit_applies_to_all_sessions_together_and_none_starves(sessions):
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


def numbers(sessions, poll, *limit):
    seen = []
    count = poll(lambda payload, header: seen.append(int(bytes(payload))), *limit)
    assert count == len(seen)
    return seen


@pytest.mark.parametrize("name", ["poll", "controlled_poll"])
def test_a_bound_poll_method_reads_images_that_are_added_and_removed(tmp_path, name):
    sessions = Sessions(tmp_path, 0)
    subscription = sessions.subscription
    getattr(subscription, name)(lambda payload, header: None)
    poll = getattr(subscription, name)
    for number in range(3):
        where = tmp_path / str(number)
        where.mkdir()
        sessions.streams.append(OwnStream(where))
        sessions.streams[-1].image.correlation_id = number
        sessions.write()
        before = subscription.images
        assert sorted(numbers(sessions, poll)) == list(range(len(before)))
        subscription.add_image(sessions.streams[-1].image)
        assert sorted(numbers(sessions, poll)) == [number]
        sessions.write()
        # The first poll binds the image's own polls, if they were not in the cache.
        assert sorted(numbers(sessions, poll, 10)) == list(range(number + 1))
    for number in (0, 2):
        subscription.remove_image(number)
        sessions.write()
        left = [image.correlation_id for image in subscription.images]
        assert sorted(numbers(sessions, poll)) == left
    subscription.images = ()
    assert numbers(sessions, poll) == []


def test_the_only_image_is_polled_natively(tmp_path):
    subscription = Sessions(tmp_path, 1).subscription
    if not IS_AVAILABLE:
        pytest.skip("no machine code here")
    for _ in range(2):
        polled(subscription)
    (image,) = subscription.images
    assert subscription._native_state.reader is image.native_state is not None
    subscription.remove_image(0)
    assert subscription._native_state.reader is None


def test_a_handler_may_remove_the_image_that_is_polled(tmp_path):
    sessions = Sessions(tmp_path, 1)
    polled(sessions.subscription)
    sessions.write(3)

    def handler(payload, header):
        seen.append(bytes(payload))
        sessions.subscription.remove_image(0).on_unavailable()
        sessions.streams.clear()
        gc.collect()

    seen = []
    assert sessions.subscription.poll(handler) == 1
    assert sessions.subscription.poll(handler) == 0
    assert seen == [b"0"]
