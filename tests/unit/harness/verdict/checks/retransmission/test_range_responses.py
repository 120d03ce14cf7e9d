"""The responses of a sender of many ranges: their parts, their progress, and their count."""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import STEP_NS, Packet, SyntheticRun, make_run, nak
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.retransmission import range_responses
from windtunnel.harness.verdict.checks.retransmission.linger_times import SETTING as LINGER_SETTING
from windtunnel.harness.verdict.checks.retransmission.nak_response import (
    naks_answered_whole,
    retransmits_counted,
)
from windtunnel.harness.verdict.checks.retransmission.range_responses import (
    ANSWER_OF_RANGES_NS,
    LINGER_NS_MAX,
    SETTING,
    Retransmits,
    covered_ends,
    joined,
)
from windtunnel.harness.verdict.checks.retransmission.retransmit_spacing import (
    LINGER_NS,
    retransmits_spaced,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
ON, OFF = (f"|windtunnel.retransmit-ranges={each}" for each in ("true", "false"))
FIRST = 60
"""The first frame that the added NAKs ask for. It is long after the previous repair."""


def with_channel(run: SyntheticRun, more: str) -> SyntheticRun:
    """Add parameters to the publication's channel."""
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"channel": traffic.channel + more})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    return run


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    """A run without losses, so that all NAKs and retransmits are those that a test adds."""
    return with_channel(make_run(tmp_path, drops=False), ON)


def whole(run):
    return naks_answered_whole(Evidence(run.write()), run.traffic)


def spaced(run):
    return retransmits_spaced(Evidence(run.write()), run.traffic)


def counted(run, value):
    run.values["a/11"] = value
    (finding,) = retransmits_counted(Evidence(run.write()), [run.traffic])
    return finding


def sent_at(run, index):
    """Return the first transmission of a frame."""
    content = run.frame_bytes(index)
    return next(each for each in run.packets["a"] if each.payload == content)


def add_nak(run, first, end, after_ns=1):
    """Add a NAK for the frames [FIRST + first, FIRST + end) after all of them were sent."""
    begin = int(run.log.frames["position"][FIRST + first])
    content = nak(begin, run.frame_end(FIRST + end - 1) - begin)
    add(run, "b", content, "NAK", after_ns)


def resend(run, *indexes, after_ns=10):
    """Add retransmits, each a nanosecond after the previous one."""
    for number, index in enumerate(indexes):
        add(run, "a", run.frame_bytes(FIRST + index), "DATA", after_ns + number)


def add(run, source, content, kind, after_ns):
    seen = sent_at(run, FIRST + 8)
    ports = seen.ports if source == "a" else seen.ports[::-1]
    packet = Packet(seen.time_ns + after_ns, source, "b" if source == "a" else "a", ports, content,
                    kind)  # fmt: skip
    run.packets["a"].append(packet)


def test_the_frames_used_by_these_tests_are_in_one_term(run):
    begin, end = int(run.log.frames["position"][FIRST]), run.frame_end(FIRST + 8)
    assert begin // 65536 == (end - 1) // 65536
    assert sent_at(run, FIRST + 9).time_ns - sent_at(run, FIRST + 8).time_ns >= STEP_NS


@pytest.mark.parametrize(
    ("more", "peer", "setting", "is_allowed"),
    [
        (ON, "ours", "", True),
        (OFF, "ours", "", False),
        ("", "ours", "", False),
        ("", "ours", "true", True),
        ("", "ours", "false", False),
        (OFF, "ours", "true", False),
        (ON, "java", "true", False),
        (ON, "aeronmd:/opt/aeronmd", "", False),
    ],
)
def test_only_a_sender_with_the_mode_omits_ranges_in_progress(
    tmp_path, more, peer, setting, is_allowed
):
    run = with_channel(make_run(tmp_path, drops=False), more)
    settings = {SETTING: setting} if setting else {}
    run.manifest.subjects = {"a": SubjectFacts("publisher", peer, "1.53", settings)}
    nak_frame_then_range(run)
    assert whole(run).outcome is (PASS if is_allowed else FAIL)


def nak_frame_then_range(run):
    """Send a NAK for a frame, then one for it and its two neighbours."""
    add_nak(run, 1, 2)
    resend(run, 1)
    add_nak(run, 0, 3, after_ns=20)
    resend(run, 0, 2, after_ns=30)


def test_an_answer_without_its_end_is_too_short(run):
    add_nak(run, 0, 3)
    resend(run, 0, 1)
    finding = whole(run)
    assert (finding.outcome, finding.facts["short"]) == (FAIL, 1)


@pytest.mark.parametrize(("per_turn", "outcome"), [(2, PASS), (3, FAIL)])
def test_only_a_full_turn_divides_an_answer(run, monkeypatch, per_turn, outcome):
    """New data is sent between the parts."""
    monkeypatch.setattr(range_responses, "DATAGRAMS_PER_TURN", per_turn)
    add_nak(run, 0, 3)
    resend(run, 0, 1)
    resend(run, 2, after_ns=STEP_NS + 10)
    assert whole(run).outcome is outcome
    assert counted(run, 1).outcome is (PASS if per_turn == 2 else FAIL)


def test_other_ranges_of_the_same_turn_count_for_its_end(run, monkeypatch):
    monkeypatch.setattr(range_responses, "DATAGRAMS_PER_TURN", 3)
    add_nak(run, 0, 1)
    add_nak(run, 2, 5)
    resend(run, 0, 2, 3)
    resend(run, 4, after_ns=STEP_NS + 10)
    assert whole(run).outcome is PASS
    assert counted(run, 2).outcome is PASS


@pytest.mark.parametrize(("value", "outcome"), [(2, FAIL), (3, PASS), (4, FAIL)])
def test_a_nak_may_request_the_ranges_beside_one_in_progress(run, value, outcome):
    nak_frame_then_range(run)
    assert counted(run, value).outcome is outcome


@pytest.mark.parametrize(("value", "outcome"), [(0, FAIL), (1, PASS), (2, FAIL)])
def test_an_answer_to_one_nak_is_one_range(run, value, outcome):
    add_nak(run, 0, 3)
    resend(run, 0, 1, 2)
    assert counted(run, value).outcome is outcome


@pytest.mark.parametrize(("value", "outcome"), [(0, FAIL), (1, PASS), (2, PASS), (3, FAIL)])
def test_adjacent_ranges_of_two_naks_may_look_like_one(run, value, outcome):
    add_nak(run, 0, 1)
    add_nak(run, 1, 3)
    resend(run, 0, 1, 2)
    assert counted(run, value).outcome is outcome


@pytest.mark.parametrize(("value", "outcome"), [(2, PASS), (3, FAIL)])
def test_a_range_may_end_where_the_data_ended_when_its_nak_came(run, value, outcome):
    """The first NAK extends beyond the data sent, and the second one asks for the rest."""
    step = sent_at(run, FIRST + 1).time_ns - sent_at(run, FIRST + 8).time_ns
    add_nak(run, 0, 6, after_ns=step + 1)
    add_nak(run, 0, 6)
    resend(run, 0, 1, 2)
    assert counted(run, value).outcome is (PASS if value == 2 else outcome)


@pytest.mark.parametrize(("more", "outcome"), [("", PASS), (ON, FAIL)])
def test_a_nak_for_elsewhere_does_not_end_the_linger(tmp_path, more, outcome):
    run = with_channel(make_run(tmp_path, drops=False), more)
    for number in range(3):
        add_nak(run, 0, 1, after_ns=1 + number * 100)
        resend(run, 0, after_ns=10 + number * 100)
        add_nak(run, 4, 5, after_ns=20 + number * 100)
        resend(run, 4, after_ns=30 + number * 100)
    finding = spaced(run)
    assert finding.outcome is outcome
    assert LINGER_NS == 10_000_000


def responses(*rows):
    """Return responses, each (start, end, time in ns, number of its series, place of its end)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    starts, ends, times_ns, runs, places = columns
    return Retransmits(starts, ends, times_ns, starts * 0, runs, places)


def test_parts_are_joined_in_any_number():
    found = joined(responses((0, 64, 1, 1, 64), (64, 128, 2, 2, 64), (128, 130, 3, 3, 2)))
    assert (found.starts.tolist(), found.ends.tolist()) == ([0], [130])


@pytest.mark.parametrize("second", [(63, 99, 2, 2, 30), (65, 99, 2, 2, 30)])
def test_a_part_that_does_not_continue_is_an_answer_of_its_own(second):
    found = joined(responses((0, 64, 1, 1, 64), second))
    assert found.starts.tolist() == [0, second[0]]


def test_a_part_before_the_end_of_a_turn_is_not_continued():
    found = joined(responses((0, 63, 1, 1, 63), (63, 99, 2, 2, 30)))
    assert (found.starts.tolist(), found.ends.tolist()) == ([0, 63], [63, 99])


@pytest.mark.parametrize(
    ("earlier_ns", "end"), [(5, 20), (LINGER_NS_MAX, 20), (LINGER_NS_MAX + 1, 10)]
)
def test_a_range_that_was_sent_within_the_linger_time_is_in_progress(earlier_ns, end):
    found = responses((10, 20, 0, 1, 10), (0, 10, earlier_ns, 2, 10))
    assert covered_ends(found).tolist() == [20, end]


def test_a_range_that_is_sent_later_in_another_series_does_not_count():
    found = responses((0, 10, 0, 1, 10), (10, 20, 5, 2, 10))
    assert covered_ends(found).tolist() == [10, 20]
    same = responses((0, 10, 0, 1, 10), (30, 40, 3, 1, 20), (10, 20, 5, 1, 30))
    assert covered_ends(same).tolist() == [20, 40, 20]


@pytest.mark.parametrize(
    ("fidelity", "after_ns", "outcome"),
    [
        ("sim", 10, PASS),
        ("sim", ANSWER_OF_RANGES_NS - 10, PASS),
        ("sim", ANSWER_OF_RANGES_NS + 10, FAIL),
        ("netns", ANSWER_OF_RANGES_NS + 10, PASS),
    ],
)
def test_in_a_simulation_an_answer_has_a_time(run, fidelity, after_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    add_nak(run, 0, 2)
    resend(run, 0, 1, after_ns=after_ns)
    finding = whole(run)
    assert finding.outcome is outcome, finding.text
    if outcome is FAIL:
        position = int(run.log.frames["position"][FIRST])
        assert finding.text == f"a NAK for position {position} was not answered within 5000000 ns"


@pytest.mark.parametrize(("paused_ns", "outcome"), [(9, PASS), (8, FAIL)])
def test_a_paused_driver_answers_later(run, paused_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    add_nak(run, 0, 2)
    resend(run, 0, 1, after_ns=ANSWER_OF_RANGES_NS + 19)
    began_ns = sent_at(run, FIRST + 8).time_ns + 5
    paused = pause(began_ns, began_ns + paused_ns, host="a")
    finding = naks_answered_whole(happen(run, paused), run.traffic)
    assert finding.outcome is outcome, finding.text


def test_in_a_simulation_a_recent_retransmit_is_an_answer(run):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    add_nak(run, 0, 1)
    resend(run, 0)
    add_nak(run, 0, 1, after_ns=ANSWER_OF_RANGES_NS)
    assert whole(run).outcome is PASS
    add_nak(run, 1, 2, after_ns=20)
    assert whole(run).outcome is FAIL


@pytest.mark.parametrize(("again_ns", "outcome"), [(9_900_000, PASS), (10_300_000, FAIL)])
def test_in_a_simulation_a_nak_is_ignored_only_within_the_linger_time(run, again_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    add_nak(run, 0, 1)
    resend(run, 0, after_ns=100)
    add_nak(run, 0, 1, after_ns=100 + again_ns)
    assert whole(run).outcome is outcome
    resend(run, 0, after_ns=200 + again_ns)
    assert whole(run).outcome is PASS


@pytest.mark.parametrize(
    ("fidelity", "setting", "again_ns", "outcome"),
    [
        ("sim", "", 8_900_000, FAIL),
        ("sim", "", 9_000_000, PASS),
        ("netns", "", 8_900_000, PASS),
        ("sim", "5ms", 3_900_000, FAIL),
        ("sim", "5ms", 4_000_000, PASS),
        ("sim", "unreadable", 3_900_000, PASS),
    ],
)
def test_in_a_simulation_no_frame_is_retransmitted_within_the_linger_time(
    run, fidelity, setting, again_ns, outcome
):
    drivers = {"a": {LINGER_SETTING: setting}} if setting else {}
    run.case = run.case.model_copy(update={"fidelity": fidelity, "drivers": drivers})
    add_nak(run, 0, 2)
    resend(run, 0, 1)
    add_nak(run, 1, 3, after_ns=again_ns)
    resend(run, 1, 2, after_ns=10 + 1 + again_ns)
    finding = spaced(run)
    assert finding.outcome is outcome
    position = int(run.log.frames["position"][FIRST + 1])
    assert (finding.position == position) == (outcome is FAIL)
