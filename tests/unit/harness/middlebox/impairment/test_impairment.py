"""The relay's impairments against their reference implementation and the configured values."""

import numpy as np
import pytest

from tests.naive.impairment import NaiveImpairment
from tests.unit.harness.middlebox.synthetic_case import case, data
from windtunnel.harness.artifact.middlebox.ledger import Ledger, LinkAccount
from windtunnel.harness.middlebox.engine import held_frames as wait
from windtunnel.harness.middlebox.impairment import impairment
from windtunnel.harness.middlebox.relay.report import impairment_account
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.jitter import deviations
from windtunnel.harness.verdict.gates.impairment_gates import loss_interval

ENVELOPE_LENGTH = 42
STEP_NS = 50_000
START_NS = 1_700_000_000_000_000_000
NEVER = wait.NEVER - 1
IID = LossCase(model="iid", shares_ppb=(50_000_000,))
BURSTS = LossCase(model="gilbert-elliott", shares_ppb=(20_000_000, 200_000_000, 10**9, 10**6))
FOUR = LossCase(
    model="four-state", shares_ppb=(20_000_000, 400_000_000, 300_000_000, 500_000_000, 10**7)
)
SETTINGS = [
    {"loss": IID},
    {"loss": BURSTS, "duplicate_ppb": 200_000_000},
    {"loss": FOUR, "corrupt_ppb": 50_000_000},
    {"delay_ns": 300_000, "jitter_ns": 200_000},
    {"delay_ns": 300_000, "jitter_ns": 100_000, "distribution": "normal"},
    {"delay_ns": 300_000, "jitter_ns": 100_000, "distribution": "pareto", "duplicate_ppb": 10**8},
    {"delay_ns": 400_000, "reorder_ppb": 250_000_000, "reorder_gap": 3},
    {"rate_bits_per_s": 10_000_000, "queue_packets": 5, "duplicate_ppb": 10**8},
    {"rate_bits_per_s": 10_000_000, "delay_ns": 200_000, "jitter_ns": 200_000, "loss": IID},
]


class ImpairedLink:
    """The impairments of one direction, with packets of one size."""

    def __init__(self, link="a->b", seed=11, **impairments):
        self.asked = ImpairmentCase(link=link, **impairments)
        made = case().model_copy(update={"impairments": (self.asked,), "seed": seed})
        self.impairments = impairment.make_impairments(made, 256)
        self.link = ("a->b", "b->a").index(link)
        self.naive = NaiveImpairment(self.asked, seed, self.link)

    def take(self, packet, now_ns):
        buf = np.frombuffer(packet, dtype=np.uint8)
        impairment.apply(
            self.impairments,
            self.link,
            buf,
            0,
            ENVELOPE_LENGTH,
            len(packet) - ENVELOPE_LENGTH,
            now_ns,
        )

    def leave(self, now_ns):
        waiting = self.impairments.held
        found = []
        while (slot := impairment.next_slot(self.impairments, self.link, now_ns)) != wait.NONE:
            length = waiting.records[slot]["frame_length"]
            found.append(waiting.buf[slot, :length].tobytes())
            wait.free_slot(waiting, slot)
        return found

    @property
    def account(self):
        return impairment_account(self.impairments, self.link)


def packet_of(index):
    return bytes(ENVELOPE_LENGTH) + data(index % 1000 * 64, fill=index)


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("impairments", SETTINGS, ids=lambda impairments: "-".join(impairments))
@pytest.mark.parametrize("link", ["a->b", "b->a"])
def test_agrees_with_the_reference(impairments, link):
    made = ImpairedLink(link, **impairments)
    now_ns = START_NS
    for index in range(400):
        now_ns += STEP_NS
        packet = packet_of(index)
        made.take(packet, now_ns)
        made.naive.take(packet, ENVELOPE_LENGTH, now_ns)
        assert made.leave(now_ns) == made.naive.leave(now_ns)
    assert made.leave(NEVER) == made.naive.leave(NEVER)
    account = made.account
    assert account.received == 400
    assert account.unaccounted == 0
    assert account.waiting_at_end == 0
    assert (account.lost, account.duplicated) == (made.naive.lost, made.naive.doubled)
    assert (account.overflowed, account.corrupted) == (made.naive.overflowed, made.naive.damaged)
    assert account.sent == len(made.naive.sent)
    missing = account.lost + account.overflowed
    assert sum(account.frames_lost.values()) == missing
    assert sum(account.frames_duplicated.values()) == account.duplicated
    assert account.frames_whole("DATA", 400) == account.whole


def test_each_impairment_has_an_effect():
    for impairments in SETTINGS:
        made = ImpairedLink(**impairments)
        for index in range(400):
            made.take(packet_of(index), START_NS + index * STEP_NS)
        account = made.account
        affected = account.lost + account.duplicated + account.corrupted + account.overflowed
        late = made.impairments.held.counts[wait.HEAP] and "delay_ns" in impairments
        assert affected or late, impairments


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("loss", [IID, BURSTS, FOUR], ids=lambda loss: loss.model)
def test_loss_rate_and_burst_length_are_the_configured_ones(loss):
    made = ImpairedLink(loss=loss)
    packet = packet_of(1)
    lost = np.zeros(60_000, dtype=np.int64)
    for index in range(len(lost)):
        before = made.impairments.counts[0, impairment.LOST]
        made.take(packet, START_NS)
        lost[index] = made.impairments.counts[0, impairment.LOST] - before
        made.leave(NEVER)
    low, high = loss_interval(loss, len(lost))
    assert low <= lost.sum() <= high
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost, [0]])))
    assert (edges[1::2] - edges[::2]).mean() == pytest.approx(loss.burst_length, rel=0.05)


def test_equal_seeds_give_equal_effects_and_other_seeds_others():
    def outcomes(seed):
        made = ImpairedLink(seed=seed, loss=IID)
        for index in range(200):
            made.take(packet_of(index), START_NS + index)
        return made.leave(NEVER)

    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)


def test_a_direction_without_impairments_is_not_affected():
    made = ImpairedLink("a->b", loss=IID)
    assert impairment.is_on(made.impairments, 0)
    assert not impairment.is_on(made.impairments, 1)


def test_impairments_of_netem_are_not_the_relays():
    asked = (ImpairmentCase(link="a->b", rate_bits_per_s=10**6, queue_packets=9),)
    made = case().model_copy(update={"impairments": asked, "backend": "netem"})
    impairments = impairment.make_impairments(made, 2000)
    assert not impairment.is_on(impairments, 0)
    assert impairments.netem[0] == 1
    assert impairments.held.buf.size == 1


def test_other_packets_are_affected_and_counted_separately():
    made = ImpairedLink(loss=LossCase(model="iid", shares_ppb=(10**9,)))
    buf = np.zeros(64, dtype=np.uint8)
    impairment.apply(made.impairments, 0, buf, 0, 64, 0, START_NS)
    assert made.impairments.counts[0, impairment.OTHER_LOST] == 1
    assert made.account.received == 0
    assert made.leave(NEVER) == []


def test_a_full_heap_is_counted():
    made = ImpairedLink(delay_ns=1_000_000)
    slots = len(made.impairments.held.heap)
    for _ in range(slots + 3):
        made.take(packet_of(1), START_NS)
    assert made.account.no_room == 3
    assert made.account.unaccounted == 0


@pytest.mark.parametrize(
    ("distribution", "deviation"), [("uniform", 3**-0.5), ("normal", 1.0), ("pareto", 0.82)]
)
def test_distributions_have_the_mean_and_the_spread_of_those_of_netem(distribution, deviation):
    shape = deviations(distribution)
    assert shape.mean() == pytest.approx(0.0, abs=0.04)
    assert shape.std() == pytest.approx(deviation, rel=0.02)
    assert np.all(np.diff(shape) >= 0)
    assert np.abs(shape).max() <= 4.0


def test_an_account_with_impairments_is_read_back_as_written(tmp_path):
    made = ImpairedLink(loss=IID, duplicate_ppb=10**8)
    for index in range(100):
        made.take(packet_of(index), START_NS)
    link = LinkAccount(datagrams_in=100, datagrams_out=100, impairments=made.account)
    bare = LinkAccount(datagrams_in=1, datagrams_out=1)
    assert "impairments" not in bare.as_document()
    ledger = Ledger(links={"a->b": link, "b->a": bare})
    ledger.write(tmp_path / "ledger.json")
    assert Ledger.read(tmp_path / "ledger.json") == ledger
