"""Forged receivers take all receiver slots of a group."""

from pathlib import Path

import numpy as np

from tests.naive import wire
from tests.sim.fan_out import FanOut
from tests.sim.stream_pair import MS, SESSION_ID, SLOT, STREAM_ID, SUB_POS
from tests.sim.test_stream_pair import messages_of
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import (
    destination_tracker,
    flow_control,
    network_publication,
)

WINDOW = 32_768
TIMEOUT_NS = 400 * MS
FORGED_IDS = range(10_000, 10_000 + flow_control.RECEIVERS_MAX)
MESSAGES = [bytes([number]) * (1024 - 32) for number in range(160)]


class ForgedGroup(FanOut):
    """A fan-out whose sender receives status messages of some forged receivers each turn, in
    rotation."""

    def __init__(self, folder: Path) -> None:
        self.forged, self.forged_per_turn = 0, 8
        super().__init__(
            folder,
            destination_tracker.MANUAL,
            strategy=flow_control.MIN,
            poll_every=(1, 10**9),
            term_length=4 * WINDOW,
            window=WINDOW,
            turn_ns=MS,
        )
        self.flow = self.sender.flows[SLOT]
        self.flow["receiver_timeout_ns"] = TIMEOUT_NS
        self.sender.publications[SLOT]["connection_timeout_ns"] = TIMEOUT_NS

    def start(self) -> None:
        """Let the forged receivers take all slots before the real ones join."""
        while self.flow["receivers_count"] < len(FORGED_IDS):
            self.turn()
            assert self.turns < 1_000, "not all slots were taken"
        for number in range(len(self.listeners)):
            self.add_destination(number)
        while not all(pair.has_image for pair in self.listeners):
            self.turn()
            assert self.turns < 2_000, "no image was created"
        for _ in range(TIMEOUT_NS // MS):
            self.turn()  # Each listener sends its first status message.

    def turn(self) -> None:
        for _ in range(self.forged_per_turn):
            self.forge(FORGED_IDS[self.forged % len(FORGED_IDS)])
            self.forged += 1
        super().turn()

    def forge(self, receiver_id: int) -> None:
        """Send a status message of a receiver that has consumed everything sent so far."""
        log, position = self.source.log, self.sender_position
        term_id = log.initial_term_id + position // log.term_length
        offset = position % log.term_length
        kind, ids = wire.SM, (SESSION_ID, STREAM_ID)
        frame = wire.pack(
            "status_message", 36, 0, 0, kind, *ids, term_id, offset, WINDOW, receiver_id
        )
        buf = np.frombuffer(frame, np.uint8).copy()
        self._deliver(self.source, 0, self.source.names[1], buf)


def test_a_paused_reader_loses_nothing_while_forged_receivers_take_all_slots(tmp_path):
    group = ForgedGroup(tmp_path)
    group.start()
    paused = group.listeners[1]
    pending = list(reversed(MESSAGES))
    for _ in range(5 * TIMEOUT_NS // MS):
        while pending and group.source.offer(pending[-1]) > 0:
            pending.pop()
        group.turn()
    assert paused.value(SUB_POS) == 0
    assert group.sender_position <= WINDOW
    group.poll_every = (1, 1)
    group.publish(pending[::-1])
    for pair in group.listeners:
        assert messages_of(pair.received) == MESSAGES
        assert pair.value(system_counters.FLOW_CONTROL_OVER_RUNS) == 0
    assert group.flow["receivers_count"] == len(FORGED_IDS)


def test_a_publication_stays_connected_when_all_forged_receivers_fall_silent_at_once(tmp_path):
    group = ForgedGroup(tmp_path)
    group.start()
    group.forged_per_turn = 0
    words = group.sender.words
    for _ in range(3 * TIMEOUT_NS // MS):
        group.turn()
        assert network_publication.has_receivers_acquire(words, SLOT)
    assert group.flow["receivers_count"] == len(group.listeners)
