"""Streams that are closed directly after their last message, on a path with high loss."""

import random
from collections import deque
from contextlib import contextmanager

import numpy as np
import pytest

from tests.unit.driver.media_driver.invoked_driver import MS, SECOND, STREAM, Lab
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.publication import AddExclusivePublication, RemovePublication
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription
from windtunnel.driver.media import link

SEEDS = 1_000
ONE_WAY_NS, STEP_NS = 125 * MS, 10 * MS
LOSS = 0.1
LENGTH = 100 * 1024
ENDPOINT = "aeron:udp?endpoint=10.0.0.1:20121"
CHANNEL = f"{ENDPOINT}|term-length=512k|linger=1s"
# A machine's first run compiles every kernel of the driver.
pytestmark = pytest.mark.timeout(900)


class LossyLab(Lab):
    """A driver that sends to itself: each datagram arrives 125 ms later, or is lost."""

    def __init__(self, directory, clock, **settings):
        self.in_flight = deque()
        self.rng = random.Random(0)
        super().__init__(directory, clock, **settings)

    def _carry(self):
        now_ns = self.clock.now_ns()
        name, buf = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8)
        for index in np.flatnonzero(self.links.mailboxes["is_open"]).tolist():
            box = self.links.mailboxes[index]
            while True:
                length, name_length = link.take(self.links, index, name, buf, 0, buf.size)
                if length == link.NOTHING:
                    break
                if self.rng.random() >= LOSS:
                    target = link.find(self.links, name, name_length)
                    source = box.local.copy(), int(box.local_length)
                    arrival = (now_ns + ONE_WAY_NS, target, *source, buf[:length].copy())
                    self.in_flight.append(arrival)
        while self.in_flight and self.in_flight[0][0] <= now_ns:
            _, target, source, source_length, datagram = self.in_flight.popleft()
            if target != link.NOTHING:
                link.deliver(self.links, target, source, source_length, datagram, 0, datagram.size)


@contextmanager
def lossy_lab(folder, **settings):
    lab = LossyLab(
        folder / "aeron",
        ManualClock(),
        client_liveness_timeout_ns=1_000_000 * SECOND,
        publication_unblock_timeout_ns=2_000_000 * SECOND,
        timer_interval_ns=100 * MS,
        **settings,
    )
    lab.client = lab.next_id()
    try:
        yield lab
    finally:
        lab.close()


def until(lab, is_done, limit_ns=120 * SECOND):
    """Take turns until a condition holds, and return whether it did within the limit."""
    for _ in range(limit_ns // STEP_NS):
        if is_done():
            return True
        lab.turn(1, STEP_NS)
    return False


def transfer(lab, seed, channel):
    """Publish a stream, close it at once, and read it; return whether all of it arrived."""
    lab.rng, stream = random.Random(seed), STREAM + seed
    subscription, _ = lab.add(AddSubscription, ENDPOINT, stream)
    publication, (ready,) = lab.add(AddExclusivePublication, channel, stream)
    publication_log = lab.open_log(ready.log_file_name)
    images = []

    def has_image():
        images.extend(item for item in lab.take() if isinstance(item, AvailableImage))
        return bool(images) and lab.value(ready.limit_counter_id) > 0

    assert until(lab, has_image)
    image = lab.open_log(images[0].log_file_name)
    end = lab.publish(publication_log, LENGTH)
    lab.post(
        RemovePublication.TYPE_ID,
        RemovePublication(lab.client, lab.next_id(), publication, False).encode(),
    )
    rebuilt = lab.counters.find(5, images[0].correlation_id)
    assert rebuilt is not None
    files = publication_log.path, image.path

    def is_over():
        lab.set_value(images[0].subscriber_position_id, lab.value(rebuilt))
        return lab.value(rebuilt) == end or not files[0].exists()

    assert until(lab, is_over)
    is_whole = lab.value(rebuilt) == end
    if is_whole:
        assert image.log[:end].tobytes() == publication_log.log[:end].tobytes()
    lab.request(RemoveSubscription(lab.client, lab.next_id(), subscription))
    assert until(lab, lambda: not any(path.exists() for path in files))
    lab.take()
    return is_whole


@pytest.mark.parametrize("seeds", [SEEDS // 100, pytest.param(SEEDS, marks=pytest.mark.full)])
def test_a_closed_publication_with_ranges_stays_until_its_tail_has_arrived(tmp_path, seeds):
    with lossy_lab(tmp_path) as lab:
        channel = f"{CHANNEL}|windtunnel.retransmit-ranges=true"
        lost = [seed for seed in range(seeds) if not transfer(lab, seed, channel)]
    assert lost == []


def test_a_closed_publication_without_ranges_loses_its_tail_as_in_aeron(tmp_path):
    with lossy_lab(tmp_path) as lab:
        assert not all(transfer(lab, seed, CHANNEL) for seed in range(SEEDS // 100))
