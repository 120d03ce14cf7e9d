"""A stream to two receivers, over lossy links and with a slow receiver."""

import random

import pytest

from tests.sim.fan_out import FanOut
from tests.sim.stream_pair import NAKS_OUT, RCV_POS, SUB_POS
from tests.sim.test_stream_pair import MESSAGES, messages_of
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import destination_tracker, flow_control

MANUAL, DYNAMIC = destination_tracker.MANUAL, destination_tracker.DYNAMIC


def lossy(seed, shares):
    rng = random.Random(seed)

    def impair(listener, direction, datagram):
        return [] if rng.random() < shares[listener] else [datagram]

    return impair


def start(fan, mode):
    for number in range(len(fan.listeners)):
        if mode == MANUAL:
            fan.add_destination(number)
    for _ in range(4):
        fan.turn()
    if mode == DYNAMIC:
        for number in range(len(fan.listeners)):
            fan.request_setup(number)
    while not all(pair.has_image for pair in fan.listeners):
        fan.turn()
        assert fan.turns < 50_000, "no receiver got an image"


@pytest.mark.parametrize("mode", [MANUAL, DYNAMIC])
def test_every_receiver_gets_all_messages(tmp_path, mode):
    fan = FanOut(tmp_path, mode)
    start(fan, mode)
    fan.publish(MESSAGES[:100])
    for pair in fan.listeners:
        assert messages_of(pair.received) == MESSAGES[:100]
        assert pair.value(NAKS_OUT) == 0
    assert fan.sender.endpoints[0]["destinations_count"] == 2


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(2))
def test_independent_losses_of_each_link_are_repaired_with_min_flow_control(tmp_path, seed):
    impair = lossy(seed, (0.02, 0.08))
    fan = FanOut(tmp_path, MANUAL, strategy=flow_control.MIN, impair=impair)
    start(fan, MANUAL)
    fan.publish(MESSAGES[:100])
    for pair in fan.listeners:
        assert messages_of(pair.received) == MESSAGES[:100]
        assert pair.value(NAKS_OUT) > 0
    assert fan.source.value(system_counters.RETRANSMITS_SENT) > 0


def test_min_flow_control_waits_for_the_slowest_receiver_without_over_runs(tmp_path):
    window = 16_384
    fan = FanOut(tmp_path, MANUAL, strategy=flow_control.MIN, poll_every=(1, 25), window=window)
    start(fan, MANUAL)
    lags = []
    turn = fan.turn

    def recorded_turn():
        turn()
        lags.append(fan.sender_position - fan.listeners[1].value(SUB_POS))

    fan.turn = recorded_turn
    # Frames that fill their terms: the limit may be passed by padding only, and there is none.
    messages = [bytes([number]) * (1024 - 32) for number in range(200)]
    fan.publish(messages)
    for pair in fan.listeners:
        assert messages_of(pair.received) == messages
        assert pair.value(NAKS_OUT) == 0
        assert pair.value(system_counters.FLOW_CONTROL_OVER_RUNS) == 0
        assert pair.value(RCV_POS) == fan.sender_position
    assert window // 2 < max(lags) <= window
    assert fan.source.value(system_counters.SENDER_FLOW_CONTROL_LIMITS) > 0


def test_max_flow_control_does_not_wait_for_a_slow_receiver(tmp_path):
    fan = FanOut(tmp_path, MANUAL, poll_every=(1, 10**9), window=16_384)
    start(fan, MANUAL)
    pending = list(reversed(MESSAGES[:100]))
    while pending or fan.source.value(SUB_POS) < fan.source.log.producer_position():
        while pending and fan.source.offer(pending[-1]) > 0:
            pending.pop()
        fan.turn()
        assert fan.turns < 50_000, "the slow receiver delays the fast one"
    assert messages_of(fan.source.received) == MESSAGES[:100]
    assert fan.listeners[1].value(SUB_POS) == 0
    assert fan.listeners[1].value(RCV_POS) < fan.sender_position
