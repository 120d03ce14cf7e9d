"""This driver and the real one: each kind of channel, with and without loss.

    good    the drivers are connected directly; nothing is lost, so there are no NAKs
    bad     links lose 5 % of all frames in both directions, and reorder 10 % of the data

The counters of both drivers and those of the links between them must agree, and the lost frames
must be those that the seed determines.
"""

import pytest

from tests.peer.bad_link import TO_FAR
from tests.peer.driver_facts import ERRORS, OVER_RUNS, RETRANSMITS_SENT
from tests.peer.impairments import BAD, data_bytes, expected_losses
from tests.peer.layouts import KINDS, TERM_LENGTH
from tests.peer.streams import MESSAGES
from tests.peer.transfer import NAK_BACKOFF_NS, NAK_DELAY_NS, NAK_DELAYS_A_RETRY, start_transfer
from windtunnel.harness.dissect.driver_files import counter_key as counter

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

SEED = 2_026
DIRECTIONS = [("ours", "real"), ("real", "ours")]
TERMS_MIN = 5


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("drivers", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("kind", KINDS)
def test_without_loss_no_naks_are_sent(tmp_path, kind, drivers):
    with start_transfer(tmp_path, kind, drivers, clients=drivers) as transfer:
        check_delivery(transfer)
        assert (transfer.naks_sent(), transfer.naks_received()) == (0, 0)
        assert transfer.near.total(RETRANSMITS_SENT) == 0
        assert transfer.near.total(counter.RETRANSMITTED_BYTES) == 0


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("clients", ["own", "crossed"])
@pytest.mark.parametrize("drivers", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_link_is_repaired(tmp_path, kind, drivers, clients):
    clients = drivers if clients == "own" else drivers[::-1]
    with start_transfer(tmp_path, kind, drivers, clients, BAD, SEED) as transfer:
        check_delivery(transfer)
        for index, link in enumerate(transfer.layout.links):
            check_repair(link, SEED + index)
        check_naks(transfer, kind)
        check_retransmits(transfer)


def check_delivery(transfer):
    """Assert that all bytes were read in order, all positions are final, and no errors logged."""
    assert [reader.messages for reader in transfer.readers] == [MESSAGES] * len(transfer.readers)
    assert transfer.publication.position > TERMS_MIN * TERM_LENGTH
    assert set(transfer.positions()) == {transfer.publication.position}
    assert sum(transfer.near.values(counter.SENDER_NAKS_RECEIVED)) == transfer.naks_received()
    by_image = [side.values(counter.RECEIVER_NAKS_SENT) for side in transfer.sides]
    assert sum(map(sum, by_image)) == transfer.naks_sent()
    for side in transfer.sides:
        assert side.errors() == []
        totals = [side.total(each) for each in (ERRORS, OVER_RUNS, counter.INVALID_PACKETS)]
        assert totals == [0, 0, 0]


def check_repair(link, seed):
    """Assert that the link had the requested faults and no others."""
    assert link.is_balanced()
    assert link.lost_at_first() == expected_losses(seed)
    data = link.frames(TO_FAR, "DATA")
    assert min(data["dropped"], data["swapped"], data["held"]) > 5
    assert data["frames_in"] == data["frames_out"] + data["dropped"]


def check_naks(transfer, kind):
    """A receiver sends a NAK when a gap opens, when its extent changes, and after each retry delay.

    A gap opens at a frame with a fault, and changes once for each other of its frames that arrives.
    There is therefore at most one NAK per fault, and all others are a delay apart. The delay of a
    group is random: three quarters of the maximum on average, and at least half in a long sum.
    """
    links, receivers = transfer.layout.links, len(transfer.readers)
    faults = sum(link.fault_count for link in links) * receivers // len(links)
    delay_ns = NAK_DELAY_NS * NAK_DELAYS_A_RETRY if kind == "unicast" else NAK_BACKOFF_NS // 2
    retries_max = receivers * (transfer.elapsed_ns // delay_ns)
    assert 0 < transfer.naks_sent() <= faults + retries_max


def check_retransmits(transfer):
    """Assert that all lost data was retransmitted, and only because of NAKs."""
    lost = set().union(*(link.lost_at_first() for link in transfer.layout.links))
    assert transfer.near.total(counter.RETRANSMITTED_BYTES) >= data_bytes(lost) > 0
    assert 0 < transfer.near.total(RETRANSMITS_SENT) <= transfer.naks_received()
