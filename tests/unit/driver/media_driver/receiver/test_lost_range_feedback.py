"""The NAKs of one duty cycle: how many, their ranges, and the limit per source."""

import struct

import pytest

from tests.naive import wire
from tests.sim.stream_pair import GAPS_OPEN, MS, NAK_RETRIES, NAKS_OUT, OLDEST_GAP, REPAIR_TIME
from tests.unit.driver.media_driver.receiving_rig import ReceivingRig, data, heartbeat
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import image_connections, lost_ranges

GAPS = 500
SLOT = 32
NAK_LENGTH = 28


@pytest.fixture
def rig(tmp_path):
    rig = ReceivingRig(tmp_path, more_mailboxes=1)
    rig.start()
    rig.state.images[0].is_nak_all_gaps = 1
    rig.state.images[0].nak_delay_ns, rig.state.images[0].nak_retry_ns = 1_000, 100_000
    return rig


def make_gaps(rig, count):
    """Deliver every second slot of a stream; all NAKs are due after 5 ms."""
    rig.state.images[0].nak_delay_ns = 5 * MS
    for gap in range(count):
        rig.deliver(data(2 * SLOT * gap + SLOT, 0))
        rig.turn()
    rig.turn()


def naks_of(datagrams):
    """Return (term offset, length) of each NAK, all of which are datagrams of their own."""
    found = [item for item in datagrams if item[6] == wire.NAK]
    assert all(len(item) == NAK_LENGTH for item in found)
    return [struct.unpack_from("<ii", item, 20) for item in found]


def test_the_naks_of_a_duty_cycle_are_sent_together_oldest_first(rig):
    make_gaps(rig, GAPS)
    assert naks_of(rig.turn(5 * MS - 1)) == []
    naks_sent, at_once = [], []
    while len(naks_sent) < GAPS:
        found = naks_of(rig.turn(1))
        naks_sent += found
        at_once.append(len(found))
    assert naks_sent == [(2 * SLOT * gap, SLOT) for gap in range(GAPS)]
    full, rest = divmod(GAPS, lost_ranges.RANGES_MAX)
    assert at_once == [lost_ranges.RANGES_MAX] * full + [rest]
    assert (rig.value(NAKS_OUT), rig.value(system_counters.NAKS_SENT)) == (GAPS, GAPS)


def test_each_connection_gets_its_naks_from_its_own_socket(rig):
    rig.add_transport(2, connection=1)
    rig.deliver(data(SLOT, 0), at=1)
    rig.deliver(data(3 * SLOT, 0), at=2)
    rig.turn()
    rig.turn(MS)
    rig.turn(MS)
    left = [(mailbox, *naks_of([item])) for mailbox, item in rig.sent if item[6] == wire.NAK]
    assert left == [(number, (at, SLOT)) for number in (1, 2) for at in (0, 2 * SLOT)]
    assert rig.value(NAKS_OUT) == 4


def test_repeated_naks_do_not_count_as_work(rig):
    rig.deliver(data(1024, 992))
    rig.turn()
    found, worked = [], []
    for _ in range(3_000):
        before = rig.value(NAKS_OUT)
        worked.append(rig.turn_work(MS))
        if rig.value(NAKS_OUT) > before:
            found.append(worked[-1])
    assert found[0] == (1, 1)
    assert len(found) > 2
    assert found[1:] == [(0, 0)] * (len(found) - 1)


def test_counters_show_retries_and_the_repair_time(rig):
    rig.deliver(data(1024, 992))
    rig.turn()
    rig.turn(MS)
    rig.turn(MS)
    assert (rig.value(NAKS_OUT), rig.value(NAK_RETRIES), rig.value(REPAIR_TIME)) == (1, 0, 0)
    rig.turn(332 * MS)
    assert (rig.value(NAKS_OUT), rig.value(NAK_RETRIES)) == (1, 0)
    rig.turn(MS)
    assert (rig.value(NAKS_OUT), rig.value(NAK_RETRIES)) == (2, 1)
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (1, 334 * MS)
    rig.deliver(data(0, 992))
    rig.turn(MS)
    rig.turn(MS)
    # The first measurement is from the first NAK.
    assert rig.value(REPAIR_TIME) == 335 * MS
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (0, 0)


def test_a_source_cannot_cause_more_naks_than_its_bytes_permit(rig):
    rig.deliver(*10 * [data(20_480, 992)])
    rig.turn()
    spare = int(rig.state.connections[0].unspent_bytes)
    assert 28_672 < spare <= image_connections.UNSPENT_BYTES_MAX_ALL_GAPS == 32_768
    make_gaps(rig, 10)
    rig.state.connections[0].status_bytes = 8
    rig.state.connections[0].unspent_bytes = 8 + 3 * NAK_LENGTH + 27
    assert len(naks_of(rig.turn(5 * MS))) == 3
    assert rig.state.connections[0].unspent_bytes == 8 + 27


def test_a_configured_control_address_is_sent_all_naks(rig):
    make_gaps(rig, 10)
    rig.state.endpoints[0].has_control = 1
    rig.state.connections[0].unspent_bytes = 0
    assert len(naks_of(rig.turn(5 * MS))) == 10


def test_an_image_with_one_active_gap_reserves_fewer_bytes(rig):
    rig.state.images[0].is_nak_all_gaps = 0
    rig.deliver(*10 * [data(0, 992)])
    rig.turn()
    assert rig.state.connections[0].unspent_bytes <= image_connections.UNSPENT_BYTES_MAX == 4_096


def test_no_naks_are_sent_after_the_stream_was_revoked(rig):
    rig.deliver(data(SLOT, 0))
    rig.turn()
    rig.turn(MS)
    rig.deliver(heartbeat(2 * SLOT, flags=0xF0))
    rig.turn()
    rig.state.images[0].nak_delay_ns = 0
    assert naks_of(rig.turn(1_000 * MS)) == []
