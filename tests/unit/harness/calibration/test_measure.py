"""Figures of a synthetic delivery, compared with results counted by hand."""

import numpy as np
import pytest

from tests.naive.loss import losses_of
from tests.unit.harness.dissect.capture.test_checksum import capture_of
from tests.unit.harness.dissect.capture.test_pcap import ethernet, ipv4, udp
from windtunnel.harness.artifact.run.calibration import Calibration, Measure
from windtunnel.harness.calibration import measure, probe
from windtunnel.harness.calibration.floors import Baseline, baseline_of, measures, problems
from windtunnel.harness.calibration.measure import Delivery, match_captures
from windtunnel.harness.calibration.plan import Impairment, impairments
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase

MS = 1_000_000
QUIET = Baseline(100_000, 200_000, is_known=True)
LOSS = LossCase(model="gilbert-elliott", shares_ppb=(5 * 10**7, 2 * 10**8, 10**9, 0))


def made(numbers, sent=10, delay_ns=MS, step_ns=100_000):
    sent_ns = np.arange(sent, dtype=np.int64) * step_ns
    numbers = np.array(numbers, dtype=np.int64)
    return Delivery(sent_ns, numbers, sent_ns[numbers] + delay_ns, 0)


def lossy(loss, packets=50_000, seed=3):
    chance = np.random.default_rng(seed).random((2, packets))
    return made(np.flatnonzero(losses_of(loss, chance) == 0), sent=packets)


def row(found, quantity):
    return next(each for each in found if each.quantity == quantity)


def test_two_captures_are_joined_by_number():
    frames = [ethernet(0x0800, ipv4(udp(probe.frame(number)))) for number in range(4)]
    near = read_capture_bytes(capture_of(*frames))
    far = read_capture_bytes(capture_of(frames[0], frames[2], frames[2]))
    found = match_captures(near, far, "10.0.0.1")
    assert len(near.frames) == 4
    assert found.numbers.tolist() == [0, 2, 2]
    assert measure.lost(found).tolist() == [False, True, False, True]


def test_probes_fill_terms_without_a_gap():
    first, last = probe.frame(255), probe.frame(256)
    assert len(first) == len(last) == probe.FRAME_LENGTH
    assert probe.HEADER.unpack_from(first)[4:8:3] == (65_536 - 256, 0)
    assert probe.HEADER.unpack_from(last)[4:8:3] == (0, 1)


def test_bursts_are_unbroken_runs():
    missing = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    found = measure.burst_length(missing)
    assert found.value == 2.0
    assert found.samples == 3
    assert found.low < 2.0 < found.high


def test_the_first_of_several_copies_counts():
    found = made([0, 1, 1, 2], sent=3)
    found.arrived_ns[2] += 5 * MS
    assert measure.delays_ns(found).tolist() == [MS, MS, MS]


def test_quantiles_lie_within_their_order_statistics():
    values = np.arange(1000, dtype=np.int64)
    found = measure.quantile(values, 0.5)
    assert found.value == 500
    assert 440 < found.low < 500 < found.high < 560


def test_a_packet_that_arrives_early_overtakes_all_that_it_passes():
    part, distance = measure.reordering(made([5, 0, 1, 2, 3, 4, 6, 7, 8, 9]))
    assert part.value == pytest.approx(0.1)
    assert distance.value == 5.0


def test_a_delivery_without_packets_has_no_figures():
    found = made([], sent=5)
    assert measure.bits_per_s(found).samples == 0
    assert measure.quantile(measure.delays_ns(found), 0.5).samples == 0


def test_the_requested_impairments_hold():
    asked = Impairment("loss", ImpairmentCase(link="a->b", loss=LOSS), 50_000)
    found = measures(asked, lossy(LOSS), QUIET, "relay")
    assert [each.holds for each in found] == [True, True]
    assert row(found, "burst length").asked == pytest.approx(5.0)


def test_shorter_bursts_at_the_same_rate_are_detected():
    alone = LossCase(model="iid", shares_ppb=(2 * 10**8,))
    asked = Impairment("loss", ImpairmentCase(link="a->b", loss=LOSS), 50_000)
    found = measures(asked, lossy(alone), QUIET, "relay")
    assert row(found, "loss rate").holds
    assert not row(found, "burst length").holds


def test_too_few_bursts_are_not_judged():
    asked = Impairment("loss", ImpairmentCase(link="a->b", loss=LOSS), 300)
    lengths = [2] * 10 + [16]
    lost = [20 * at + each for at, length in enumerate(lengths) for each in range(length)]
    found = measures(asked, made(sorted(set(range(300)) - set(lost)), sent=300), QUIET, "relay")
    assert row(found, "burst length").floor == ""
    assert row(found, "burst length").holds
    assert "too few" in problems(found)[0]
    assert problems(measures(asked, lossy(LOSS), QUIET, "relay")) == []


def test_a_rate_is_judged_by_a_sender_that_offers_more():
    limited = ImpairmentCase(link="a->b", rate_bits_per_s=1_000_000, queue_packets=9)
    asked = Impairment("rate", limited, 100)
    same = measures(asked, made(range(100), sent=100), QUIET, "relay")
    assert row(same, "rate").asked is None
    slowed = made(range(100), sent=100)
    slowed.arrived_ns[:] = np.arange(100) * 3 * MS
    found = row(measures(asked, slowed, QUIET, "relay"), "rate")
    assert found.asked == 1.0
    assert found.delivered == pytest.approx(8 * 298 / 3000, rel=1e-6)


def test_another_rate_is_detected():
    other = LossCase(model="gilbert-elliott", shares_ppb=(7 * 10**7, 2 * 10**8, 10**9, 0))
    asked = Impairment("loss", ImpairmentCase(link="a->b", loss=LOSS), 50_000)
    found = measures(asked, lossy(other), QUIET, "relay")
    assert not row(found, "loss rate").holds
    assert row(found, "burst length").holds


@pytest.mark.parametrize(("late_ns", "holds"), [(299_000, True), (301_000, False)])
def test_the_relays_added_delay_has_a_floor(late_ns, holds):
    asked = Impairment("delay", ImpairmentCase(link="a->b", delay_ns=5 * MS), 100)
    passed = made(range(100), sent=100, delay_ns=5 * MS + round(QUIET.p50_ns) + late_ns)
    found = measures(asked, passed, QUIET, "relay")
    assert row(found, "added delay p50").holds is holds
    assert row(found, "added delay p50").delivered == pytest.approx(5 + late_ns / MS)
    assert all(each.floor == "" for each in measures(asked, passed, QUIET, "netem"))


@pytest.mark.parametrize("baseline", [Baseline(), Baseline(1.0, 3.0 * MS, is_known=True)])
def test_on_a_busy_machine_no_delay_is_judged(baseline):
    asked = Impairment("delay", ImpairmentCase(link="a->b", delay_ns=5 * MS), 100)
    found = measures(asked, made(range(100), sent=100), baseline, "relay")
    assert baseline.problem
    assert all(each.holds and not each.floor for each in found)


def test_a_link_without_impairments_loses_nothing():
    baseline = Impairment("baseline", None, 10)
    assert row(measures(baseline, made(range(10)), QUIET, "relay"), "loss rate").holds
    assert not row(measures(baseline, made(range(9)), QUIET, "relay"), "loss rate").holds
    assert baseline_of(made(range(10))).p50_ns == MS


def test_every_kind_of_impairment_has_a_round():
    rounds = impairments()
    assert rounds[0].settings is None
    asked = [each.settings.model_dump(exclude_defaults=True) for each in rounds[1:]]
    wanted = set(ImpairmentCase.model_fields) - {"link"}
    assert set().union(*asked) - {"link"} == wanted


def test_a_calibration_is_read_back_as_written(tmp_path):
    one = Measure("delay", "p50", "ms", 5.0, 5.1, 5.0, 5.2, 100, "within 0.3 ms")
    found = Calibration("relay", "6.1", 1000, 7, 1, [one], ["rate: why"])
    found.write(tmp_path / "calibration.json")
    assert Calibration.read(tmp_path / "calibration.json") == found
    assert Calibration.read(tmp_path / "none.json") is None
