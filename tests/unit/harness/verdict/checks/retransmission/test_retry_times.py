"""A NAK that is repeated too late, with NAKs for all gaps."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.naive import smoothed_time
from windtunnel.harness.verdict.checks.retransmission import retry_model
from windtunnel.harness.verdict.checks.retransmission.all_gaps import INITIAL_REPAIR_NS
from windtunnel.harness.verdict.checks.retransmission.retry_model import GAPS_MAX, Lost
from windtunnel.harness.verdict.checks.retransmission.retry_times import early_retry, late_retry
from windtunnel.harness.verdict.views.pauses import Pauses

MS = 1_000_000
ASSUMED = INITIAL_REPAIR_NS // MS
END = 10_000
NEVER = 1 << 60


def check_late(gaps, naks, others=(), least=0, is_group=True):
    """Check that NAKs are not late, see `checked`."""
    wire, lost = checked(gaps, naks, others)
    return late_retry(
        wire, lost, Pauses(*np.zeros((2, 0), np.int64)),
        least_ns=least * MS, slack_ns=MS // 2, is_group=is_group,
    )  # fmt: skip


def check_early(gaps, naks, others=(), least=0):
    """Check that NAKs of one receiver are not early, see `checked`."""
    return early_retry(*checked(gaps, naks, others), least_ns=least * MS)


def checked(gaps, naks, others=()):
    """Return gaps {(begin, end): when it was filled} and NAKs (time, begin, end), in milliseconds.

    `others` are frames that arrived (time, position).
    """
    places = np.array([begin for begin, _ in gaps], dtype=np.int64)
    came_ns = np.array([came * MS if came < NEVER else came for came in gaps.values()])
    naks = np.array(sorted(naks), dtype=np.int64).reshape(-1, 3)
    filled = [(came, begin) for (begin, _), came in gaps.items() if came < NEVER]
    arrived = np.array(sorted([*filled, *others]), dtype=np.int64).reshape(-1, 2)
    frames = np.zeros(len(arrived), [("time_ns", "<i8")])
    frames["time_ns"] = arrived[:, 0] * MS
    feedback = np.array([(END * MS,)], [("time_ns", "<i8")])
    # A heartbeat each 100 ms.
    beats_ns = np.arange(0, END, 100, dtype=np.int64) * MS
    wire = SimpleNamespace(
        feedback_sent=feedback,
        arrived=SimpleNamespace(frames=frames, starts=arrived[:, 1], ends=arrived[:, 1] + 32),
        heartbeat_times_ns=beats_ns,
    )
    return wire, Lost(places, came_ns, (naks[:, 0] * MS).astype(np.int64), naks[:, 1], naks[:, 2])


def test_without_losses_no_retry_is_late():
    assert check_late({}, []) == ""


@pytest.mark.parametrize("retry", [11, 39])
def test_a_retry_within_three_repair_times_is_a_pass(retry):
    gaps = {(0, 32): 10, (64, 96): 60}
    naks = [(0, 0, 32), (1, 64, 96), (retry, 64, 96)]
    assert (check_late(gaps, naks) == "") == (retry <= 31)


@pytest.mark.parametrize("retry", [61, 62])
def test_a_group_also_has_the_minimum_margin(monkeypatch, retry):
    monkeypatch.setattr(retry_model, "DEVIATION_NS_MIN", 50 * MS)
    gaps = {(0, 32): 10, (64, 96): 900}
    naks = [(0, 0, 32), (1, 64, 96), *((at, 64, 96) for at in range(retry, 900, 60))]
    assert (check_late(gaps, naks) == "") == (retry <= 61)


def test_a_retry_that_is_late_is_reported():
    gaps = {(0, 32): 10, (64, 96): 900}
    found = check_late(gaps, [(0, 0, 32), (1, 64, 96), (100, 64, 96)])
    assert found == (
        "NAK 2 for position 64 was not sent until 30500000 ns after the one before, while it was "
        "missing: the repairs until then allow a shorter delay"
    )


def test_a_gap_that_is_never_requested_again_is_reported():
    assert check_late({(0, 32): 10, (64, 96): NEVER}, [(0, 0, 32), (1, 64, 96)]).startswith(
        "NAK 2 for"
    )


def test_delays_double_with_each_nak():
    naks = [(0, 0, 32), (1, 64, 96), (31, 64, 96), (91, 64, 96), (211, 64, 96)]
    assert check_late({(0, 32): 10, (64, 96): 400}, naks) == ""
    assert check_late({(0, 32): 10, (64, 96): 452}, naks).startswith("NAK 5 for position 64")


def test_until_the_first_repair_its_time_is_assumed():
    assert check_late({(0, 32): ASSUMED}, [(0, 0, 32)]) == ""
    late = {(0, 32): ASSUMED + 20}
    assert check_late(late, [(0, 0, 32)]).startswith(
        "NAK 2 for position 0 was not sent until 333500000"
    )
    assert check_late(late, [(0, 0, 32), (ASSUMED, 0, 32)]) == ""
    # The first repair replaces the assumption for a NAK that was sent before it.
    gaps = {(0, 32): 20, (64, 96): 90}
    naks = [(0, 0, 32), (1, 64, 96)]
    assert check_late(gaps, naks, is_group=False).startswith("NAK 2 for position 64")
    assert check_late(gaps, [*naks, (61, 64, 96)], is_group=False) == ""


def test_a_repair_in_the_range_of_the_nak_restarts_the_delay():
    gaps = {(0, 32): 10, (128, 160): 55}
    naks = [(0, 0, 32), (1, 64, 160)]
    assert check_late(gaps, naks).startswith("NAK 2 for position 128")
    assert check_late(gaps, naks, others=[(30, 64)]) == ""


def test_a_configured_delay_is_the_minimum():
    gaps = {(0, 32): 10, (64, 96): 90}
    assert check_late(gaps, [(0, 0, 32), (1, 64, 96)], least=100) == ""


@pytest.mark.parametrize("took_ms", [[10], [10, 10], [10] * 12, [10, 30, 10, 25], [300, 100]])
def test_with_one_receiver_the_timeout_is_that_of_rfc_6298(took_ms):
    """Each gap is repaired after one NAK, and the last one is never repaired."""
    gaps, naks = {}, []
    for number, took in enumerate(took_ms):
        gaps[64 * number, 64 * number + 32] = 500 * number + took
        naks.append((500 * number, 64 * number, 64 * number + 32))
    last, asked = 64 * len(took_ms), 500 * len(took_ms)
    gaps[last, last + 32] = NEVER
    smoothed, deviation = smoothed_time.smoothed([each * MS for each in took_ms])
    timeout = smoothed + max(4 * deviation, smoothed // 16, MS)
    lost = [*naks, (asked, last, last + 32)]
    found = check_late(gaps, lost, is_group=False)
    assert found.startswith(f"NAK 2 for position {last} was not sent until ")
    waited = float(found.split(" until ")[1].split()[0])
    assert waited == pytest.approx(1.02 * timeout + MS / 2, 1e-6)


def repaired(took_ms):
    """Return gaps that were repaired after one NAK each, and their NAKs, and where the next ones
    begin: (gaps, NAKs, position, time).
    """
    gaps, naks = {}, []
    for number, took in enumerate(took_ms):
        gaps[64 * number, 64 * number + 32] = 500 * number + took
        naks.append((500 * number, 64 * number, 64 * number + 32))
    return gaps, naks, 64 * len(took_ms), 500 * len(took_ms)


@pytest.mark.parametrize("took_ms", [[40], [40, 40], [40] * 12, [40, 90, 40, 75], [300, 100]])
def test_a_retry_is_early_before_the_timeout_of_rfc_6298(took_ms):
    gaps, naks, last, asked = repaired(took_ms)
    gaps[last, last + 32] = NEVER
    smoothed, deviation = smoothed_time.smoothed([each * MS for each in took_ms])
    timeout_ms = (smoothed + max(4 * deviation, smoothed // 16, MS)) / MS
    least_ms = 0.995 * timeout_ms - 0.15
    asked_once = [*naks, (asked, last, last + 32)]
    late_enough, too_early = (asked + math.ceil(least_ms) + each for each in (0, -1))
    assert check_early(gaps, [*asked_once, (late_enough, last, last + 32)]) == ""
    found = check_early(gaps, [*asked_once, (too_early, last, last + 32)])
    assert found.startswith(f"NAK 2 for position {last} was sent {(too_early - asked) * MS} ns ")
    # The next delay is twice as long.
    again = [*asked_once, (late_enough, last, last + 32)]
    second = late_enough + math.ceil(2 * least_ms + 0.15)
    assert check_early(gaps, [*again, (second, last, last + 32)]) == ""
    assert check_early(gaps, [*again, (second - 2, last, last + 32)]).startswith("NAK 3 for")


def test_until_the_first_repair_a_retry_is_early_before_its_assumed_time():
    gaps = {(0, 32): 400, (64, 96): NEVER}
    naks = [(0, 0, 32), (0, 64, 96), (ASSUMED - 1, 64, 96)]
    assert check_early(gaps, naks).startswith("NAK 2 for position 64")
    assert check_early(gaps, [*naks[:2], (ASSUMED, 64, 96)]) == ""
    # The first repair replaces the assumption, also for NAKs that were sent before it.
    gaps[0, 32] = 20
    assert check_early(gaps, [*naks[:2], (60, 64, 96)]) == ""
    assert check_early(gaps, [*naks[:2], (59, 64, 96)]).startswith("NAK 2 for position 64")


def test_a_configured_delay_is_the_least():
    gaps, naks, last, asked = repaired([10])
    gaps[last, last + 32] = NEVER
    retried = [*naks, (asked, last, last + 32), (asked + 60, last, last + 32)]
    assert check_early(gaps, retried) == ""
    assert check_early(gaps, retried, least=61).startswith("NAK 2 for")


def test_the_end_of_a_silence_ends_the_doublings():
    gaps, naks, last, asked = repaired([40])
    gaps[last, last + 32] = NEVER
    retried = [*naks, (asked, last, last + 32), (asked + 230, last, last + 32)]
    retried.append((asked + 360, last, last + 32))
    wire, lost = checked(gaps, retried)
    assert early_retry(wire, lost, least_ns=0).startswith("NAK 3 for")
    beats_ns = wire.heartbeat_times_ns
    in_silence = (beats_ns > asked * MS) & (beats_ns < (asked + 300) * MS)
    wire.heartbeat_times_ns = beats_ns[~in_silence]
    assert early_retry(wire, lost, least_ns=0) == ""


def test_a_frame_that_arrives_with_its_nak_leaves_the_wider_limit():
    gaps, naks, last, asked = repaired([40])
    gaps[last, last + 32] = asked + 200
    once = [*naks, (asked, last, last + 32)]
    assert check_early(gaps, [*once, (asked + 60, last, last + 32)]).startswith("NAK 2 for")
    # It was asked for and arrived at the same time, so its repair may have been measured.
    gaps[last + 64, last + 96] = asked - 100
    unsure = [(asked - 100, last + 64, last + 96), *once]
    assert check_early(gaps, [*unsure, (asked + 60, last, last + 32)]) == ""
    late = [(asked + 140, last, last + 32)]
    assert check_late(gaps, [*once, *late], is_group=False).startswith("NAK 2 for")
    assert check_late(gaps, [*unsure, *late], is_group=False) == ""


def test_naks_on_two_paths_leave_at_the_same_time():
    gaps, naks, last, asked = repaired([40])
    gaps[last, last + 32] = NEVER
    assert check_early(gaps, [*naks, *[(asked, last, last + 32)] * 2]) == ""


def test_a_frame_at_the_begin_of_a_gap_restarts_its_delay():
    """The first of three frames of a NAK's range arrives, then the third, and the second is asked
    for again.
    """
    gaps, naks, last, asked = repaired([40, 40])
    begin = asked + 45
    gaps |= {(last, last + 32): begin, (last + 32, last + 64): NEVER, (last + 64, last + 96): begin}
    once = [*naks, (asked, last, last + 96)]
    timeout_ms = timeout([40, 40, 45])
    least = math.ceil(45 + 0.995 * timeout_ms - 0.15)
    assert check_early(gaps, [*once, (asked + least, last + 32, last + 64)]) == ""
    found = check_early(gaps, [*once, (asked + least - 1, last + 32, last + 64)])
    assert found.startswith(f"NAK 2 for position {last + 32} was sent ")
    # It is late after the same time.
    most = math.floor(45 + 1.02 * timeout_ms + 0.5)
    on_time, too_late = ([*once, (asked + most + more, last + 32, last + 64)] for more in (0, 1))
    gaps[last + 32, last + 64] = asked + most + 10
    assert check_late(gaps, on_time, is_group=False) == ""
    assert check_late(gaps, too_late, is_group=False).startswith(f"NAK 2 for position {last + 32}")


def timeout(took_ms):
    smoothed, deviation = smoothed_time.smoothed([each * MS for each in took_ms])
    return (smoothed + max(4 * deviation, smoothed // 16, MS)) / MS


def test_frames_after_a_gap_do_not_restart_its_delay():
    gaps, naks, last, asked = repaired([40, 40])
    gaps |= {(last, last + 32): NEVER, (last + 32, last + 64): asked + 45}
    once = [*naks, (asked, last, last + 64)]
    least = math.ceil(0.995 * timeout([40, 40]) - 0.15)
    assert check_early(gaps, [*once, (asked + least, last, last + 32)]) == ""
    assert check_early(gaps, [*once, (asked + least - 1, last, last + 32)]).startswith("NAK 2 for")


def test_with_more_gaps_than_rows_only_the_wider_limit_holds():
    gaps, naks, last, asked = repaired([40])
    gaps[last, last + 32] = NEVER
    retried = [*naks, (asked, last, last + 32), (asked + 60, last, last + 32)]
    assert check_early(gaps, retried).startswith("NAK 2 for")
    for row in range(GAPS_MAX):
        gaps[last + 32 * (row + 1), last + 32 * (row + 2)] = asked + 1
    assert check_early(gaps, retried) == ""
