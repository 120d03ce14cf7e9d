"""Our driver and the real one beside each other: each kind of channel, with and without loss.

    good    the drivers face each other directly; nothing is lost, so nothing is asked for twice
    bad     links lose 5 % of all frames in both directions, and bring 10 % of the data out of order

What became of a stream is recorded three times, by each driver's counters and by the links between
them: they must agree, and the frames that were lost must be those that the seed names.
"""

import pytest

from tests.peer.bad_link import TO_FAR
from tests.peer.driver_facts import ERRORS, OVER_RUNS, RETRANSMITS_SENT
from tests.peer.impairments import BAD, data_bytes, expected_losses
from tests.peer.layouts import KINDS, TERM_LENGTH
from tests.peer.passage import NAK_BACKOFF_NS, NAK_DELAY_NS, NAK_DELAYS_A_RETRY, passage
from tests.peer.streams import MESSAGES
from windtunnel.harness.dissect.driver_files import counter_key as counter

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

SEED = 2_026
DIRECTIONS = [("ours", "real"), ("real", "ours")]
TERMS_MIN = 5


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("drivers", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("kind", KINDS)
def test_without_loss_nothing_is_asked_for_twice(tmp_path, kind, drivers):
    with passage(tmp_path, kind, drivers, clients=drivers) as made:
        check_delivery(made)
        assert (made.naks_sent(), made.naks_heard()) == (0, 0)
        assert made.near.total(RETRANSMITS_SENT) == 0
        assert made.near.total(counter.RETRANSMITTED_BYTES) == 0


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("clients", ["own", "crossed"])
@pytest.mark.parametrize("drivers", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_link_is_repaired(tmp_path, kind, drivers, clients):
    clients = drivers if clients == "own" else drivers[::-1]
    with passage(tmp_path, kind, drivers, clients, BAD, SEED) as made:
        check_delivery(made)
        for index, link in enumerate(made.layout.links):
            check_repair(link, SEED + index)
        check_naks(made, kind)
        check_retransmits(made)


def check_delivery(made):
    """Every reader has every byte in order, every position is the last, and nobody complains."""
    assert [reader.messages for reader in made.readers] == [MESSAGES] * len(made.readers)
    assert made.publication.position > TERMS_MIN * TERM_LENGTH
    assert set(made.positions()) == {made.publication.position}
    assert sum(made.near.values(counter.SENDER_NAKS_RECEIVED)) == made.naks_heard()
    by_image = [side.values(counter.RECEIVER_NAKS_SENT) for side in made.sides]
    assert sum(map(sum, by_image)) == made.naks_sent()
    for side in made.sides:
        assert side.errors() == []
        totals = [side.total(each) for each in (ERRORS, OVER_RUNS, counter.INVALID_PACKETS)]
        assert totals == [0, 0, 0]


def check_repair(link, seed):
    """The link was as bad as ordered, and took nothing but what it was ordered to take."""
    assert link.balances()
    assert link.lost_at_first() == expected_losses(seed)
    data = link.frames(TO_FAR, "DATA")
    assert min(data["dropped"], data["swapped"], data["held"]) > 5
    assert data["frames_in"] == data["frames_out"] + data["dropped"]


def check_naks(made, kind):
    """A receiver asks for a gap when it opens, when its extent changes, and after each retry delay.

    It opens at a frame that was struck, and every other of its frames changes it once, by coming.
    There is therefore one NAK for each of the struck at most, and all others are a delay apart. The
    delay of a group is random: three quarters of the most on average, and half in any long sum.
    """
    links, receivers = made.layout.links, len(made.readers)
    struck = sum(link.positions_struck for link in links) * receivers // len(links)
    delay_ns = NAK_DELAY_NS * NAK_DELAYS_A_RETRY if kind == "unicast" else NAK_BACKOFF_NS // 2
    retries_max = receivers * (made.elapsed_ns // delay_ns)
    assert 0 < made.naks_sent() <= struck + retries_max


def check_retransmits(made):
    """All that was lost at first was sent again, and only because it was asked for."""
    lost = set().union(*(link.lost_at_first() for link in made.layout.links))
    assert made.near.total(counter.RETRANSMITTED_BYTES) >= data_bytes(lost) > 0
    assert 0 < made.near.total(RETRANSMITS_SENT) <= made.naks_heard()
