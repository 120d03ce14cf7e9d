"""Datagrams of real Aeron drivers, processed by the engine and its reference implementation."""

import pytest

from tests.golden.reader import datagrams
from tests.naive.middlebox import NaiveMiddlebox
from tests.unit.harness.middlebox.synthetic_case import ByteEngine, case, fault
from windtunnel.harness.middlebox.relay.report import link_account

MS = 1_000_000
FAULTS = (
    fault("drop", 0.05),
    fault("drop", 0.2, ("SM", "NAK"), ("b->a",)),
    fault("swap", 0.05, ("DATA", "PAD")),
    fault("hold", 0.05, hold_ns=5 * MS),
    fault("duplicate", 0.05, ("DATA", "HEARTBEAT", "SETUP")),
)


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-concurrent-mtu8k"])
def test_effects_on_real_traffic_are_those_of_the_reference(golden_set):
    made = case(*FAULTS)
    driven, naive = ByteEngine(made, datagram_length_max=8192), NaiveMiddlebox(made)
    sent = []
    found = datagrams(golden_set)
    (port, *_) = {each.destination_port for each in found if each.payload[6] == 5}
    for number, datagram in enumerate(found):
        link = 0 if datagram.destination_port == port else 1
        now_ns = number * MS // 4
        sent += driven.release(now_ns)
        naive.release(now_ns)
        sent += driven.offer(datagram.payload, link, now_ns, b"")
        naive.offer(b"", datagram.payload, link, now_ns)
    sent += driven.release(10**12)
    naive.release(10**12)
    assert sent == naive.sent
    decisions = [{name: int(row[name]) for name in row.dtype.names} for row in driven.decisions]
    assert decisions == naive.decisions
    account = link_account(driven.engine, 0)
    assert account.unaccounted == 0
    assert "MALFORMED" not in account.frames
    if golden_set != "one-message":
        positional = [each for each in decisions if each["position"] >= 0]
        assert len(positional) > 100
        assert {each["action"] for each in decisions} == {1, 2, 3, 4}
        assert max(each["position"] for each in positional) > 500_000
