"""The datagrams that a simulated host may send."""

from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.harness.simulator import datagram_limit
from windtunnel.harness.simulator.datagram_limit import (
    DATAGRAMS,
    DATAGRAMS_PER_MESSAGE,
    DATAGRAMS_PER_S,
    TooManyDatagrams,
    planned_messages,
    require_few_datagrams,
)
from windtunnel.harness.simulator.world import world_state
from windtunnel.harness.simulator.world.virtual_time import START_NS


def traffic(messages, subscribers=1, destinations=0):
    return SimpleNamespace(
        total_bytes=100 * messages,
        shortest_bytes=100,
        longest_bytes=100,
        subscribers=["b"] * subscribers,
        destinations=["aeron:udp"] * destinations,
    )


def world(sent, *traffics, seconds=0.0):
    ports = np.zeros((len(sent), 4), np.int64)
    ports[:, world_state.RECEIVED_FROM] = sent
    hosts = [SimpleNamespace(name="abc"[index]) for index in range(len(sent))]
    return SimpleNamespace(
        between=SimpleNamespace(ports=ports),
        case=SimpleNamespace(traffic=traffics, hosts=hosts),
        now_ns=START_NS + int(seconds * 1e9),
    )


@pytest.mark.parametrize(
    ("one", "messages"),
    [
        (traffic(1_000), 2_000),
        (traffic(1_000, subscribers=3), 4_000),
        (traffic(1_000, subscribers=3, destinations=7), 8_000),
    ],
)
def test_each_message_counts_once_for_each_receiver_and_the_publisher(one, messages):
    case = SimpleNamespace(traffic=[one, traffic(10)])
    assert planned_messages(case) == pytest.approx(messages + 20, rel=0.01)


def test_the_limit_grows_with_time_and_messages():
    limit = DATAGRAMS + 2 * DATAGRAMS_PER_S
    require_few_datagrams(world([limit, 0], seconds=2))
    with pytest.raises(TooManyDatagrams, match=rf"host b sent {limit + 1} datagrams in 2\.000 s"):
        require_few_datagrams(world([0, limit + 1], seconds=2))
    more = traffic(100_000)
    limit += DATAGRAMS_PER_MESSAGE * planned_messages(SimpleNamespace(traffic=[more]))
    require_few_datagrams(world([0, limit], more, seconds=2))
    with pytest.raises(TooManyDatagrams, match=f"at most {limit}"):
        require_few_datagrams(world([0, limit + 1], more, seconds=2))


def test_a_world_without_hosts_has_no_datagrams():
    require_few_datagrams(world([]))


def test_a_driver_that_sends_in_each_turn_exceeds_it_within_seconds():
    turns_per_s = 1_000_000
    assert datagram_limit.DATAGRAMS / (turns_per_s - DATAGRAMS_PER_S) < 2
