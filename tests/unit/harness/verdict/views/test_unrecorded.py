"""Positions in no recording are named in a passing verdict, and can be limited in `expect`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.harness.verdict.checks.archive.test_recording import killed, made
from tests.unit.harness.verdict.synthetic_run import TRAFFIC
from windtunnel.harness.scenario.resolved.case import CheckCase
from windtunnel.harness.verdict import judge as judge_module
from windtunnel.harness.verdict.core.finding import passed
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.views.unrecorded import (
    total_bytes,
    unrecorded_ranges,
    unrecorded_text,
)

__all__ = ["made"]
EQUAL = "recording_equals_published"


@pytest.fixture(autouse=True)
def only_the_check(monkeypatch):
    """Judge nothing else: the evidence has no processes and no applied events."""
    monkeypatch.setattr(judge_module, "GATES", {})
    monkeypatch.setattr(judge_module, "subject_lived", lambda evidence: [passed("lived", "")])


def verdict_of(made, **arguments):
    starts = made.frame_starts
    made.stretches = [(0, starts[40]), (starts[60], made.run.log.end_position)]
    expected = CheckCase(name=EQUAL, arguments=arguments)
    run = killed(made).run
    run.case = run.case.model_copy(update={"expect": (expected,)})
    return judge(made.write()), starts[40], starts[60]


def test_a_hole_between_two_recordings_is_on_the_first_line(made):
    verdict, first, after = verdict_of(made)
    assert verdict.outcome is Outcome.PASS, verdict.reason
    text = f"{after - first:,} bytes are in no recording: positions {first:,} to {after:,}"
    assert f"; {TRAFFIC} in the archive of b: {text}" in verdict.reason
    (finding,) = [each for each in verdict.checks if each.name == EQUAL]
    assert text in finding.text
    assert finding.facts["unrecorded_bytes"] == after - first


def test_a_stream_that_is_recorded_completely_has_no_such_text(made):
    expected = CheckCase(name=EQUAL, arguments={"unrecorded_at_most": "0B"})
    made.run.case = made.run.case.model_copy(update={"expect": (expected,)})
    verdict = judge(made.write())
    assert verdict.outcome is Outcome.PASS, verdict.reason
    assert "in no recording" not in verdict.reason


@pytest.mark.parametrize(("spare", "outcome"), [(0, Outcome.PASS), (-1, Outcome.FAIL)])
def test_unrecorded_bytes_can_be_limited(made, spare, outcome):
    _, first, after = verdict_of(made)
    verdict, *_ = verdict_of(made, unrecorded_at_most=f"{after - first + spare}B")
    assert verdict.outcome is outcome, verdict.reason
    assert ("the scenario permits" in verdict.reason) is (outcome is Outcome.FAIL)


def test_only_this_limit_belongs_to_the_check(made):
    verdict, *_ = verdict_of(made, undelivered_at_most="1GiB")
    assert verdict.outcome is Outcome.HARNESS


def test_the_text_names_the_first_of_several_ranges():
    text = "1,100 bytes are in no recording: positions 100 to 1,100 and 1 more"
    assert unrecorded_text([(100, 1_100), (2_000, 2_100)]) == text


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda two: tuple(sorted(two)))),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_ranges_are_those_that_no_recording_covers(recorded, begin, end):
    ranges = unrecorded_ranges(recorded, begin, end)
    covered = {at for first, last in recorded for at in range(first, last)}
    missing = [at for first, last in ranges for at in range(first, last)]
    assert missing == [at for at in range(begin, end) if at not in covered]
    assert total_bytes(ranges) == len(missing)
