"""NAKs for all gaps at once: where they begin, and when they are repeated."""

import copy
import random

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run, nak
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    INITIAL_REPAIR_NS,
    NEVER_NS,
    SETTING,
    Earlier,
    earlier_naks,
    least_delays_ns,
    since_silence,
)
from windtunnel.harness.verdict.checks.retransmission.nak_checks import (
    naks_only_for_gaps,
    naks_paced,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

MS = 1_000_000
ON, OFF = (f"|windtunnel.nak-all-gaps={each}" for each in ("true", "false"))


def with_receive(run: SyntheticRun, more: str) -> SyntheticRun:
    """Add parameters to the subscriber's channel."""
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + more})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    return run


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return with_receive(make_run(tmp_path), ON)


def finding_of(run):
    return naks_only_for_gaps(Evidence(run.write()), run.traffic)


def pace(run):
    return naks_paced(Evidence(run.write()), run.traffic)


def gap(run, index):
    """Return a gap's NAK, the packets that repaired it, its frame, and its position."""
    position = run.decisions[index][12]
    frame = int(np.searchsorted(run.log.frames["position"], position))
    data = run.frame_bytes(frame)
    repairs = [each for each in run.packets["b"] if each.payload == data]
    return (
        [each for each in run.packets["b"] if each.kind == "NAK"][index],
        repairs,
        frame,
        position,
    )


def leave_open(run, index):
    """Remove the repair of a gap from the receiver's capture."""
    for each in gap(run, index)[1]:
        run.packets["b"].remove(each)


def measure_nothing(run):
    """Remove all repairs but that of the first gap, so that the receiver has measured nothing."""
    for index in range(1, len(run.decisions)):
        leave_open(run, index)


def repeat_nak(run, index, *after_ns):
    """Repeat a gap's NAK some time after the first one, and delay the repair until then."""
    first, repairs, _, _ = gap(run, index)
    for each in repairs:
        each.time_ns = first.time_ns + max(after_ns) + 1
    for offset_ns in after_ns:
        again = copy.copy(first)
        again.time_ns += offset_ns
        run.packets["b"].append(again)


def test_a_gap_may_be_requested_before_an_earlier_one_is_filled(run):
    leave_open(run, 2)
    assert finding_of(run).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("more", "peer", "setting", "is_allowed"),
    [
        (ON, "ours", "", True),
        (OFF, "ours", "", False),
        ("", "ours", "", False),
        ("", "ours", "true", True),
        ("", "ours", "false", False),
        (OFF, "ours", "true", False),
        (ON, "pyaeron", "", False),
        (ON, "java", "true", False),
        (ON, "aeronmd:/opt/aeronmd", "", False),
    ],
)
def test_only_a_receiver_with_the_mode_may_skip_a_gap(tmp_path, more, peer, setting, is_allowed):
    run = with_receive(make_run(tmp_path), more)
    settings = {SETTING: setting} if setting else {}
    run.manifest.subjects = {"b": SubjectFacts("subscriber", peer, "1.53", settings)}
    leave_open(run, 2)
    finding = finding_of(run)
    assert finding.outcome is (Outcome.PASS if is_allowed else Outcome.FAIL)
    assert ("skips an earlier gap" in finding.text) != is_allowed


@pytest.mark.parametrize("offset", [32, 64])
def test_a_nak_that_begins_within_a_gap_is_reported(run, offset):
    packet, _, frame, position = gap(run, 2)
    packet.payload = nak(position + offset, run.frame_end(frame) - position - offset)
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position + offset)
    assert "does not begin where an arrived frame ends" in finding.text


def test_one_nak_a_gap_is_paced(run):
    finding = pace(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"naks": 30, "holes": 30, "most_for_one": 1}


@pytest.mark.parametrize(
    ("after_ms", "more", "outcome"),
    [
        (328, "", Outcome.PASS),  # A time slice of 5 ms is tolerated.
        (327, "", Outcome.FAIL),
        (999, "|nak-delay=10ms", Outcome.PASS),
        (994, "|nak-delay=10ms", Outcome.FAIL),
    ],
)
def test_the_first_retry_waits_for_the_assumed_or_the_configured_time(run, after_ms, more, outcome):
    measure_nothing(with_receive(run, more))
    repeat_nak(run, 0, after_ms * MS)
    finding = pace(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == gap(run, 0)[3]
        assert f"was sent {after_ms * MS} ns after the previous one" in finding.text
        expected_ns = 1000 * MS if more else INITIAL_REPAIR_NS
        assert f"expected at least {expected_ns} ns" in finding.text
        assert "1 NAKs were too early" in finding.text


def test_a_retry_for_a_part_of_the_gap_waits_as_well(run):
    """The second NAK begins within the range of the first one."""
    measure_nothing(run)
    leave_open(run, 0)
    packet, _, frame, position = gap(run, 0)
    again = copy.copy(packet)
    packet.payload = nak(position - 64, run.frame_end(frame) - position + 64)
    again.time_ns += 20 * MS
    run.packets["b"].append(again)
    assert "NAK 2 for position" in pace(run).text


def test_receivers_of_a_group_are_paced_too(run):
    (traffic,) = run.case.traffic
    group = traffic.model_copy(update={"channel": traffic.channel + "|control-mode=manual"})
    run.case = run.case.model_copy(update={"traffic": (group,)})
    assert pace(run).outcome is Outcome.PASS
    measure_nothing(run)
    repeat_nak(run, 0, 300 * MS)
    assert pace(run).outcome is Outcome.FAIL


def delays(counts, *, last_ns, repairs=((0, 50), (10, 40), (20, 90)), configured_ns=0, at_ms=1000):
    """Return the minimum delays in ms of NAKs at `at_ms`, given (time of a NAK, its repair time) in
    ms.
    """
    times = np.array([each for each, _ in repairs] + [at_ms] * len(counts), dtype=np.int64) * MS
    took = np.array([each for _, each in repairs] + [10**6] * len(counts), dtype=np.int64) * MS
    earlier = Earlier(
        np.array([0] * len(repairs) + list(counts), dtype=np.int64),
        np.array([NEVER_NS] * len(repairs) + [each * MS for each in last_ns], dtype=np.int64),
    )
    found = least_delays_ns(times, times + took, earlier, earlier.counts, configured_ns)
    assert not found[: len(repairs)].any()
    return (found[len(repairs) :] / MS).tolist()


def test_the_delay_is_the_shortest_repair_time_until_the_previous_nak():
    assert delays([1, 1], last_ns=[50, 500]) == [40, 40]
    assert delays([1], last_ns=[75], repairs=((0, 70), (9, 90), (99, 1))) == [70]
    assert delays([1], last_ns=[500], configured_ns=60 * MS) == [60]


def test_a_first_repair_that_is_longer_does_not_replace_the_assumption():
    """After an outage of NAKs it was 2.4 s, and the judge once expected a doubled delay of 2 s."""
    assert delays([1, 3], last_ns=[40, 2390], repairs=((0, 2400),), at_ms=9000) == [333, 4 * 333]


def test_the_first_repair_replaces_the_assumption_for_earlier_naks():
    assert delays([1], last_ns=[40], at_ms=49) == [333]
    assert delays([1], last_ns=[40], at_ms=50) == [50]
    # Later ones do not: the retry of a NAK is scheduled once.
    repairs = ((0, 50), (60, 10))
    assert delays([1, 1, 1], last_ns=[49, 69, 70], repairs=repairs) == [50, 50, 10]


def test_a_repair_time_above_two_seconds_counts_as_two():
    assert delays([1], last_ns=[9_000], repairs=((0, 2_001),)) == [2_000]
    assert delays([1], last_ns=[9_000], repairs=((0, 1_999),)) == [1_999]


def test_the_delay_doubles_up_to_a_limit():
    counts = [1, 2, 3, 6, 7, 8, 100]
    found = delays(counts, last_ns=[500] * len(counts))
    assert found == [40 * factor for factor in (1, 2, 4, 32, 64, 64, 64)]
    assert delays([2, 3], last_ns=[9_000] * 2, repairs=((0, 1_500),)) == [3_000, 5_000]


@pytest.mark.parametrize("seed", range(20))
def test_earlier_naks_are_those_that_cover_the_first_byte(seed):
    rng = random.Random(seed)
    naks = []
    for time_ns in range(rng.randrange(1, 60)):
        start = rng.randrange(40)
        naks.append((time_ns, start, start + rng.randrange(-2, 12)))
    found = earlier_naks(*(np.array(column, dtype=np.int64) for column in zip(*naks, strict=True)))
    for index, (_, start, _) in enumerate(naks):
        covering = [time for time, begin, end in naks[:index] if begin <= start < end]
        assert found.counts[index] == len(covering)
        assert found.last_ns[index] == max(covering, default=NEVER_NS)


def test_the_doublings_begin_again_after_a_silence():
    """Packets arrive until 1 s and from 1.2 s on; a silence of 199 ms is too short."""
    packets_ns = np.array([0, 100, 1_000, 1_200, 1_300, 1_499]) * MS
    packets_ns[2] = 299 * MS
    times_ns = np.array([50, 250, 350, 1_199, 1_200, 1_250, 1_600]) * MS
    starts = np.zeros(len(times_ns), dtype=np.int64)
    assert since_silence(times_ns, starts, starts + 32, packets_ns).tolist() == [
        0, 1, 2, 3, 0, 1, 2,
    ]  # fmt: skip
    assert since_silence(times_ns, starts, starts + 32, packets_ns[:1]).tolist() == list(range(7))


def test_retries_after_a_silence_wait_for_the_time_of_one_repair(run):
    """The third NAK is sent 400 ms after the second one, so it waits for the doubled time unless a
    packet has ended a silence between them.
    """
    measure_nothing(run)
    repeat_nak(run, 0, 340 * MS, 740 * MS)
    assert pace(run).outcome is Outcome.FAIL
    first_ns = gap(run, 0)[0].time_ns
    run.packets["b"] = [
        each
        for each in run.packets["b"]
        if each.kind == "NAK" or not first_ns + 400 * MS < each.time_ns < first_ns + 610 * MS
    ]
    assert pace(run).outcome is Outcome.FAIL
    late = copy.copy(next(each for each in run.packets["b"] if each.kind == "HEARTBEAT"))
    late.time_ns = first_ns + 620 * MS
    run.packets["b"].append(late)
    assert pace(run).outcome is Outcome.PASS


def test_no_naks_have_no_earlier_ones():
    nothing = np.zeros(0, dtype=np.int64)
    assert len(since_silence(nothing, nothing, nothing, nothing)) == 0
    assert len(earlier_naks(nothing, nothing, nothing).counts) == 0
