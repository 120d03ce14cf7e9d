"""Rewritten source ports: every endpoint of a case gets its replies, or an error is reported."""

import struct

import numpy as np
import pytest

from tests.unit.harness.middlebox.synthetic_case import (
    A_TO_B,
    B_TO_A,
    ByteEngine,
    case,
    fault,
    with_more,
)
from windtunnel.harness.middlebox.__main__ import _errors
from windtunnel.harness.middlebox.engine.readdress import make_rewritten_ports, set_ports
from windtunnel.harness.scenario.schema.model import TRAFFIC_MAX

NEW, ORIGINAL = 40_001, 54_321


def many_streams(count, *ports):
    """Return a case of many streams on different ports, and a rule for each new source port."""
    rules = [
        with_more(fault("readdress", name=f"rule-{port}"), source_port=port)
        for port in ports or (NEW,)
    ]
    made = case(*rules)
    traffic = tuple(
        made.traffic[0].model_copy(
            update={"id": f"t{index}", "ordinal": index, "port": 20_000 + index}
        )
        for index in range(count)
    )
    return made.model_copy(update={"traffic": traffic})


def passed(known, link, source, destination, new=0):
    """Return the ports of a datagram after the relay."""
    header = np.frombuffer(struct.pack(">HHHH", source, destination, 8, 0), dtype=np.uint8).copy()
    set_ports(known, header, 0, 8, link, new)
    return struct.unpack(">HH", header[:4].tobytes())


@pytest.mark.parametrize("count", [1, 65, TRAFFIC_MAX])
def test_replies_to_each_stream_of_a_case_are_rewritten(count):
    known = make_rewritten_ports(many_streams(count))
    for index in range(count):
        peer = 20_000 + index
        assert passed(known, A_TO_B, ORIGINAL + index, peer, NEW) == (NEW, peer)
    for index in range(count):
        peer = 20_000 + index
        assert passed(known, B_TO_A, peer, NEW) == (peer, ORIGINAL + index)
    assert known.overflows.tolist() == [0, 0]


def test_replies_to_each_new_port_of_each_stream_are_rewritten():
    ports = (40_001, 40_002, 40_003)
    known = make_rewritten_ports(many_streams(TRAFFIC_MAX, *ports))
    pairs = [(new, 20_000 + index) for new in ports for index in range(TRAFFIC_MAX)]
    for number, (new, peer) in enumerate(pairs):
        passed(known, A_TO_B, 1000 + number, peer, new)
    for number, (new, peer) in enumerate(pairs):
        assert passed(known, B_TO_A, peer, new) == (peer, 1000 + number)


def test_datagrams_whose_replies_cannot_be_rewritten_are_reported():
    made = many_streams(1)
    known = make_rewritten_ports(made)
    room = known.pairs.shape[1]
    for index in range(room + 2):
        assert passed(known, A_TO_B, ORIGINAL, 10_000 + index, NEW) == (NEW, 10_000 + index)
    assert known.overflows.tolist() == [2, 0]
    assert passed(known, B_TO_A, 10_000 + room, NEW) == (10_000 + room, NEW)
    assert [each for each in errors_of(made, known) if "2 datagrams" in each and "replies" in each]


def test_no_error_is_reported_if_all_ports_are_recorded():
    made = many_streams(3)
    assert errors_of(made, make_rewritten_ports(made)) == []


def errors_of(made, known):
    class Silent:
        counts = np.zeros((2, 7), dtype=np.int64)
        link_counts = np.zeros((2, 3), dtype=np.int64)
        rewritten_ports = known

    return _errors(ByteEngine(made).engine, Silent(), [])
