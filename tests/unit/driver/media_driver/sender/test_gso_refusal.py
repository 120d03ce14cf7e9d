"""GSO on a route that refuses it: single datagrams instead, for a while, on that endpoint only."""

import errno
import os
import random
import socket

import numpy as np
import pytest

from tests.sim.stream_pair import MS, SLOT
from tests.unit.driver.media_driver.invoked_driver import TO_PEER, lab_with_long_timeouts
from tests.unit.driver.media_driver.sending_rig import SendingRig
from windtunnel.driver.base import handoff
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.cnc.error_log import TEXTS_PER_KIND_MAX, read_errors
from windtunnel.driver.command.publication import AddPublication
from windtunnel.driver.media import transport
from windtunnel.driver.media.link import NO_LINKS
from windtunnel.driver.media.system_message import UDP_GRO_OPTION
from windtunnel.driver.media_driver.sender import send_route, sender_state

SO_NO_CHECK = 11
FRAME_LENGTH = 1024
OTHER = 1
"""A second endpoint."""
SECOND = NS_PER_SECOND


class Path:
    """A connected pair of sockets; without checksums the sending one refuses GSO."""

    def __init__(self):
        self.receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiving.setsockopt(*UDP_GRO_OPTION, 1)
        self.receiving.setblocking(False)
        self.receiving.bind(("127.0.0.1", 0))
        self.sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sending.connect(self.receiving.getsockname())
        self.inbox = transport.make_receive_batch(8, 65_536)

    def refuse(self, refuses=True):
        self.sending.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, int(refuses))

    def messages(self):
        """How many messages arrived: one if GSO was used."""
        return transport.receive(self.receiving.fileno(), self.inbox, NO_LINKS)

    def close(self):
        self.receiving.close()
        self.sending.close()


@pytest.fixture
def paths():
    opened = [Path(), Path()]
    yield opened
    for each in opened:
        each.close()


@pytest.fixture
def rig(tmp_path, paths):
    """A publication whose log begins with four frames, and two endpoints on real sockets."""
    rig = SendingRig(tmp_path)
    rig.offer(*[FRAME_LENGTH - 32] * 4)
    rig.state.agent[0].gso_enabled = 1
    for slot, path in enumerate(paths):
        rig.state.endpoints[slot].fd = path.sending.fileno()
    return rig


def send(rig, endpoint_slot, now_ns, count=4):
    rig.record.endpoint = endpoint_slot
    for index in range(count):
        address = rig.pair.log.address + FRAME_LENGTH * index
        transport.set_outgoing(rig.state.outbox, index, address, FRAME_LENGTH)
    assert send_route.send_gathered(rig.state, SLOT, count, now_ns) == count


def test_a_refusal_ends_gso_for_its_endpoint_only_and_for_a_while(rig, paths):
    paths[0].refuse()
    send(rig, 0, 0)
    assert paths[0].messages() == 4
    send(rig, OTHER, 0)
    assert paths[OTHER].messages() == 1
    paths[0].refuse(False)
    send(rig, 0, send_route.GSO_RETRY_INTERVAL_NS - 1)
    assert paths[0].messages() == 4
    send(rig, 0, send_route.GSO_RETRY_INTERVAL_NS)
    assert paths[0].messages() == 1
    send(rig, 0, send_route.GSO_RETRY_INTERVAL_NS + 1)
    assert paths[0].messages() == 1


@pytest.mark.parametrize("seed", range(10))
def test_gso_is_used_and_counted_as_a_naive_reference_does(rig, paths, seed):
    chance = random.Random(seed)
    now_ns, reported = 0, []
    refuses, retry_ns, refusals = [False, False], [0, 0], [0, 0]
    for _ in range(60):
        now_ns += chance.choice((0, MS, SECOND, 4 * SECOND, 10 * SECOND))
        slot = chance.randrange(2)
        if chance.random() < 0.4:
            refuses[slot] = not refuses[slot]
            paths[slot].refuse(refuses[slot])
        count = chance.choice((1, 2, 4))
        send(rig, slot, now_ns, count)
        is_tried = count > 1 and now_ns >= retry_ns[slot]
        if is_tried and refuses[slot]:
            retry_ns[slot] = now_ns + 10 * SECOND
            refusals[slot] += 1
        is_gso = is_tried and not refuses[slot]
        assert paths[slot].messages() == (1 if is_gso else count)
        assert rig.state.endpoints.gso_refusals[:2].tolist() == refusals
        reported += rig.events(2)
    assert sorted(reported) == [
        (sender_state.GSO_REFUSED, slot) for slot in range(2) if refusals[slot] > 0
    ]


def test_a_refusal_that_could_not_be_queued_is_reported_with_the_next(rig, paths):
    paths[0].refuse()
    record = handoff.make_record()
    while handoff.put(rig.state.events, record):
        pass
    send(rig, 0, 0)
    while handoff.take(rig.state.events, record):
        pass
    send(rig, 0, send_route.GSO_RETRY_INTERVAL_NS)
    ((event, slot, error),) = rig.events(3)
    assert (event, slot) == (sender_state.GSO_REFUSED, 0)
    assert -error in (errno.EINVAL, errno.EIO, errno.EMSGSIZE)


def test_gso_that_is_turned_off_is_never_tried(rig, paths):
    rig.state.agent[0].gso_enabled = 0
    paths[0].refuse()
    send(rig, 0, 0)
    assert paths[0].messages() == 4
    assert rig.state.endpoints[0].gso_refusals == 0


def test_the_conductor_records_a_refusal_with_its_channel_and_setting(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        driver.add(AddPublication, TO_PEER)
        record = handoff.make_record()
        for slot in (0, 7):
            record[:3] = (sender_state.GSO_REFUSED, slot, -errno.EIO)
            assert handoff.put(driver.driver.conductor._resources.sender.events, record)
        driver.turn()
        (entry,) = read_errors(driver.cnc.error_log)
        for part in (TO_PEER, os.strerror(errno.EIO), "WINDTUNNEL_UDP_OFFLOAD=false"):
            assert part in entry.text


def test_refusals_of_many_channels_leave_room_in_the_error_log(tmp_path):
    count = 3 * TEXTS_PER_KIND_MAX
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        record = handoff.make_record()
        for slot in range(count):
            driver.add(AddPublication, TO_PEER.replace("10.0.0.2", f"10.0.1.{slot}"))
            record[:3] = (sender_state.GSO_REFUSED, slot, -errno.EIO)
            assert handoff.put(driver.driver.conductor._resources.sender.events, record)
            driver.turn()
        found = read_errors(driver.cnc.error_log)
    assert sum(entry.observation_count for entry in found) == count
    assert len(found) == TEXTS_PER_KIND_MAX + 1


def test_a_new_endpoint_in_a_slot_starts_with_gso(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        endpoints = driver.driver.conductor._resources.sender.endpoints
        endpoints[0].gso_retry_ns = np.int64(1 << 62)
        driver.add(AddPublication, TO_PEER)
        assert endpoints[0].gso_retry_ns == 0
