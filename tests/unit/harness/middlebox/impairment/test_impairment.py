"""The relay's impairments against their reference implementation and the configured values."""

import numpy as np
import pytest

from tests.naive.impairment import NaiveImpairment
from tests.unit.harness.middlebox.made import case, data
from windtunnel.harness.artifact.middlebox.ledger import Ledger, LinkAccount
from windtunnel.harness.middlebox.engine import held_frames as wait
from windtunnel.harness.middlebox.impairment import impairment as skies
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
WEATHERS = [
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


class Sky:
    """The impairments of one direction, with packets of one size."""

    def __init__(self, link="a->b", seed=11, **weather):
        self.asked = ImpairmentCase(link=link, **weather)
        made = case().model_copy(update={"impairments": (self.asked,), "seed": seed})
        self.impairments = skies.make_impairments(made, 256)
        self.link = ("a->b", "b->a").index(link)
        self.naive = NaiveImpairment(self.asked, seed, self.link)

    def take(self, packet, now_ns):
        buf = np.frombuffer(packet, dtype=np.uint8)
        skies.apply(
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
        while (slot := skies.next_slot(self.impairments, self.link, now_ns)) != wait.NONE:
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
@pytest.mark.parametrize("weather", WEATHERS, ids=lambda weather: "-".join(weather))
@pytest.mark.parametrize("link", ["a->b", "b->a"])
def test_does_as_its_naive_twin(weather, link):
    sky = Sky(link, **weather)
    now_ns = START_NS
    for index in range(400):
        now_ns += STEP_NS
        packet = packet_of(index)
        sky.take(packet, now_ns)
        sky.naive.take(packet, ENVELOPE_LENGTH, now_ns)
        assert sky.leave(now_ns) == sky.naive.leave(now_ns)
    assert sky.leave(NEVER) == sky.naive.leave(NEVER)
    account = sky.account
    assert account.received == 400
    assert account.unaccounted == 0
    assert account.waiting_at_end == 0
    assert (account.lost, account.duplicated) == (sky.naive.lost, sky.naive.doubled)
    assert (account.overflowed, account.corrupted) == (sky.naive.overflowed, sky.naive.damaged)
    assert account.sent == len(sky.naive.sent)
    gone = account.lost + account.overflowed
    assert sum(account.frames_lost.values()) == gone
    assert sum(account.frames_duplicated.values()) == account.duplicated
    assert account.frames_whole("DATA", 400) == account.whole


def test_each_weather_does_something():
    for weather in WEATHERS:
        sky = Sky(**weather)
        for index in range(400):
            sky.take(packet_of(index), START_NS + index * STEP_NS)
        account = sky.account
        befallen = account.lost + account.duplicated + account.corrupted + account.overflowed
        late = sky.impairments.held.counts[wait.HEAP] and "delay_ns" in weather
        assert befallen or late, weather


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("loss", [IID, BURSTS, FOUR], ids=lambda loss: loss.model)
def test_loses_as_many_in_bursts_as_long_as_asked_for(loss):
    sky = Sky(loss=loss)
    packet = packet_of(1)
    lost = np.zeros(60_000, dtype=np.int64)
    for index in range(len(lost)):
        before = sky.impairments.counts[0, skies.LOST]
        sky.take(packet, START_NS)
        lost[index] = sky.impairments.counts[0, skies.LOST] - before
        sky.leave(NEVER)
    low, high = loss_interval(loss, len(lost))
    assert low <= lost.sum() <= high
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost, [0]])))
    assert (edges[1::2] - edges[::2]).mean() == pytest.approx(loss.burst_length, rel=0.05)


def test_another_seed_is_other_weather_and_the_same_one_the_same():
    def fates(seed):
        sky = Sky(seed=seed, loss=IID)
        for index in range(200):
            sky.take(packet_of(index), START_NS + index)
        return sky.leave(NEVER)

    assert fates(1) == fates(1)
    assert fates(1) != fates(2)


def test_without_weather_a_direction_is_left_alone():
    sky = Sky("a->b", loss=IID)
    assert skies.is_on(sky.impairments, 0)
    assert not skies.is_on(sky.impairments, 1)


def test_netems_weather_is_not_the_relays():
    asked = (ImpairmentCase(link="a->b", rate_bits_per_s=10**6, queue_packets=9),)
    made = case().model_copy(update={"impairments": asked, "backend": "netem"})
    weather = skies.make_impairments(made, 2000)
    assert not skies.is_on(weather, 0)
    assert weather.netem[0] == 1
    assert weather.held.buf.size == 1


def test_packets_of_others_are_befallen_and_not_counted_as_ours():
    sky = Sky(loss=LossCase(model="iid", shares_ppb=(10**9,)))
    buf = np.zeros(64, dtype=np.uint8)
    skies.apply(sky.impairments, 0, buf, 0, 64, 0, START_NS)
    assert sky.impairments.counts[0, skies.OTHER_LOST] == 1
    assert sky.account.received == 0
    assert sky.leave(NEVER) == []


def test_a_full_waiting_room_is_told():
    sky = Sky(delay_ns=1_000_000)
    slots = len(sky.impairments.held.heap)
    for _ in range(slots + 3):
        sky.take(packet_of(1), START_NS)
    assert sky.account.no_room == 3
    assert sky.account.unaccounted == 0


@pytest.mark.parametrize(
    ("distribution", "deviation"), [("uniform", 3**-0.5), ("normal", 1.0), ("pareto", 0.82)]
)
def test_distributions_have_the_mean_and_the_spread_of_netems(distribution, deviation):
    shape = deviations(distribution)
    assert shape.mean() == pytest.approx(0.0, abs=0.04)
    assert shape.std() == pytest.approx(deviation, rel=0.02)
    assert np.all(np.diff(shape) >= 0)
    assert np.abs(shape).max() <= 4.0


def test_an_account_with_impairments_reads_back(tmp_path):
    sky = Sky(loss=IID, duplicate_ppb=10**8)
    for index in range(100):
        sky.take(packet_of(index), START_NS)
    link = LinkAccount(datagrams_in=100, datagrams_out=100, weather=sky.account)
    bare = LinkAccount(datagrams_in=1, datagrams_out=1)
    assert "weather" not in bare.as_document()
    ledger = Ledger(links={"a->b": link, "b->a": bare})
    ledger.write(tmp_path / "ledger.json")
    assert Ledger.read(tmp_path / "ledger.json") == ledger
