"""A receiver against a real sender: two paths, rejected images, CUBIC, and a member of a
group.
"""

import random

import numpy as np
import pytest

from tests.sim.stream_pair import (
    HWM,
    MS,
    NAKS_OUT,
    RCV_POS,
    SND_POS,
    SUB_POS,
    TO_RECEIVER,
    TO_SENDER,
    StreamPair,
    fill,
)
from windtunnel.driver.cnc import counters
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.image import congestion_control, cubic, nak_delay
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.wire import frame_type, header

MESSAGES = [bytes([i & 0xFF]) * (1 + (i * 7919) % 5000) for i in range(120)]
MTU = 1408
RTT_ID, WINDOW_ID = 60, 61


def kind_of(datagram):
    return int(header.frame_type(np.frombuffer(bytes(datagram), np.uint8).copy(), 0))


def messages_of(received):
    complete, part = [], b""
    for _, flags, payload in received:
        if flags < 0:
            continue
        part = payload if flags & 0x80 else part + payload
        if flags & 0x40:
            complete.append(part)
    return complete


class TwoPaths(StreamPair):
    """Every datagram of the sender takes two paths with different losses to two destinations.

    Control frames of both come from the first's address, to which the sender is connected.
    """

    def __init__(self, folder, shares, seed):
        self.shares, self.rng = shares, random.Random(seed)
        self.replies = [0, 0]
        super().__init__(folder, more_mailboxes=1)

    def _add_subscription(self):
        fill(self.receiver.endpoints[0], fd=-1, receiver_id=99)
        self.send_command(self.receiver.commands, receiver_state.ADD_ENDPOINT, 0)
        self.send_command(self.receiver.commands, receiver_state.ADD_INTEREST, 0, 1001, 0, 0)
        for connection, mailbox in enumerate((1, 2)):
            fill(
                self.receiver.endpoints[mailbox],
                fd=link.FIRST_FD - mailbox,
                connection=connection,
            )
            self.send_command(self.receiver.commands, receiver_state.ADD_ENDPOINT, mailbox)

    def _carry(self, origin, direction):
        origins = (origin,) if direction == TO_RECEIVER else (1, 2)
        for mailbox in origins:
            for datagram in self._taken(mailbox):
                self.wire.append((direction, bytes(datagram)))
                if direction == TO_SENDER:
                    self.replies[mailbox - 1] += 1
                    link.deliver(self.links, 0, self.names[1], 16, datagram, 0, datagram.size)
                    continue
                for target, share in zip((1, 2), self.shares, strict=True):
                    if kind_of(datagram) != frame_type.DATA or self.rng.random() >= share:
                        name = self.names[0]
                        link.deliver(self.links, target, name, 16, datagram, 0, datagram.size)

    def _taken(self, mailbox):
        name, buf, found = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8), []
        while True:
            length, _ = link.take(self.links, mailbox, name, buf, 0, buf.size)
            if length == link.NOTHING:
                return found
            found.append(buf[:length].copy())


@pytest.mark.parametrize("shares", [(0.05, 0.3), (1.0, 0.05), (0.0, 1.0)])
def test_a_stream_on_two_lossy_paths_is_complete(tmp_path, shares):
    pair = TwoPaths(tmp_path, shares, 11)
    pair.publish(MESSAGES)
    assert messages_of(pair.received) == MESSAGES
    end = pair.log.producer_position()
    assert [pair.value(i) for i in (SND_POS, RCV_POS, HWM, SUB_POS)] == [end] * 4
    assert all(pair.replies)


def test_losses_of_one_path_are_repaired_by_the_other_with_few_naks(tmp_path):
    one_path, both_paths = tmp_path / "alone", tmp_path / "together"
    naks = []
    for folder, shares in ((one_path, (0.1, 1.0)), (both_paths, (0.1, 0.0))):
        folder.mkdir()
        pair = TwoPaths(folder, shares, 5)
        pair.publish(MESSAGES)
        naks.append(pair.value(NAKS_OUT))
    assert naks[0] > 20
    assert naks[1] < naks[0] // 4


def test_a_rejected_image_stays_at_its_position_while_its_sender_continues(tmp_path):
    pair = StreamPair(tmp_path)
    pair.publish(MESSAGES[:20])
    before = [pair.value(i) for i in (RCV_POS, HWM, SUB_POS)]
    pair.receiver.reasons[0, 1, :4] = np.frombuffer(b"full", np.uint8)
    pair.send_command(pair.receiver.commands, receiver_state.REJECT_IMAGE, 0, 4, 1)
    pair.turn()
    pair.wire.clear()
    for message in MESSAGES[20:40]:
        pair.offer(message)
    for _ in range(8_000):
        pair.turn()
    assert [pair.value(i) for i in (RCV_POS, HWM, SUB_POS)] == before
    replies = {kind_of(datagram) for direction, datagram in pair.wire if direction == TO_SENDER}
    assert replies == {frame_type.ERR}


def use_cubic(pair):
    """Let the image use CUBIC, whose congestion window reacts to losses."""
    rec = pair.receiver.images[0]
    rec.congestion_control, rec.mtu = congestion_control.CUBIC, MTU
    cubic.fill(
        rec,
        initial_rtt_ns=100_000,
        is_measuring_rtt=True,
        is_tcp_mode=False,
        rtt_id=RTT_ID,
        window_id=WINDOW_ID,
        now_ns=pair.now_ns,
    )


def windows_of(pair):
    return [
        int.from_bytes(datagram[24:28], "little")
        for direction, datagram in pair.wire
        if direction == TO_SENDER and kind_of(datagram) == frame_type.SM and not datagram[5]
    ]


@pytest.mark.full
def test_a_cubic_window_shrinks_at_a_loss_and_grows_back(tmp_path):
    lost = []

    def impair(direction, datagram):
        is_data = direction == TO_RECEIVER and kind_of(datagram) == frame_type.DATA
        if is_data and any(datagram[:4]) and lost_now:
            lost.append(lost_now.pop())
            return []
        return [datagram]

    lost_now = []
    pair = StreamPair(tmp_path, term_length=1 << 20, impair=impair)
    while not pair.has_image:
        pair.turn()
    use_cubic(pair)
    largest = pair.window // MTU * MTU
    pair.publish(MESSAGES)
    grown = counters.get(pair.values, WINDOW_ID)
    lost_now = [1]
    pair.wire.clear()
    pair.publish([*MESSAGES, *MESSAGES])
    assert lost == [1]
    shrunk = min(windows_of(pair))
    assert shrunk == int(grown // MTU * 0.8) * MTU < grown <= largest
    for _ in range(200_000):
        if counters.get(pair.values, WINDOW_ID) == largest:
            break
        pair.turn()
    assert counters.get(pair.values, WINDOW_ID) == largest
    assert 0 < pair.value(RTT_ID) <= 2 * pair.turn_ns
    assert messages_of(pair.received) == [*MESSAGES, *MESSAGES, *MESSAGES]


@pytest.mark.parametrize("is_group", [False, True])
def test_a_member_of_a_group_repairs_losses_with_equal_naks_for_equal_seeds(tmp_path, is_group):
    naks = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        (tmp_path / name).mkdir()
        pair, times = grouped_pair(tmp_path / name, seed if is_group else None)
        pair.publish(MESSAGES)
        assert messages_of(pair.received) == MESSAGES
        assert len(times) == pair.value(NAKS_OUT) > 0
        naks.append(times)
    assert naks[0] == naks[1]
    assert (naks[0] != naks[2]) == is_group


def grouped_pair(folder, seed):
    """Return a pair whose receiver is a member of a group, and the times of its NAKs."""
    rng, times = random.Random(9), []

    def impair(direction, datagram):
        if kind_of(datagram) == frame_type.NAK:
            times.append(pair.now_ns)
        is_data = direction == TO_RECEIVER and kind_of(datagram) == frame_type.DATA
        return [] if is_data and rng.random() < 0.05 else [datagram]

    pair = StreamPair(folder, impair=impair, turn_ns=MS // 4)
    while not pair.has_image:
        pair.turn()
    if seed is not None:
        nak_delay.fill_backoff(pair.receiver.images[0], 10 * MS, 10, seed)
    return pair, times


def test_the_connections_of_a_removed_image_are_cleared(tmp_path):
    pair = TwoPaths(tmp_path, (0.0, 0.0), 1)
    pair.publish(MESSAGES[:5])
    pair.send_command(pair.receiver.commands, receiver_state.REMOVE_IMAGE, 0, 0)
    pair.has_image = False
    pair.turn()
    rows = pair.receiver.connections[: image.CONNECTIONS_MAX]
    assert not rows.is_known.any()
    assert not rows.control_length.any()
