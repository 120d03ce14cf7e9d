"""Undelivered messages are named in a passing verdict, and can be limited in `expect`."""

import pytest

from tests.unit.harness.verdict.synthetic_run import TRAFFIC, make_run
from windtunnel.harness.scenario.resolved.case import CheckCase
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge


def with_checks(run, *checks):
    run.case = run.case.model_copy(update={"expect": checks})
    return run


def missing(run):
    """Return number and bytes of the planned messages that the subscriber's records lack."""
    received = {position for position, _ in run.messages}
    lengths = run.plan.lengths.tolist()
    lost = [
        length
        for end, length in zip(run.log.message_ends.tolist(), lengths, strict=True)
        if end not in received
    ]
    return len(lost), sum(lost)


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path, reliable=False)


def test_losses_of_an_unreliable_stream_are_on_the_first_line(run):
    count, lost_bytes = missing(run)
    assert count
    verdict = judge(with_checks(run, CheckCase(name="delivered_intact", arguments={})).write())
    assert verdict.outcome is Outcome.PASS, verdict.reason
    text = f"{TRAFFIC}: {count} of {run.plan.count} messages ({lost_bytes:,} bytes)"
    assert f"{text} were not delivered" in verdict.reason
    assert verdict.reason.count("were not delivered") == 1


def test_a_stream_without_losses_has_no_such_text(tmp_path):
    run = make_run(tmp_path)
    assert missing(run) == (0, 0)
    expected = CheckCase(name="delivered_unbroken", arguments={})
    assert "delivered" not in judge(with_checks(run, expected).write()).reason


@pytest.mark.parametrize(("spare", "outcome"), [(0, Outcome.PASS), (-1, Outcome.FAIL)])
def test_undelivered_bytes_can_be_limited(run, spare, outcome):
    _, lost_bytes = missing(run)
    arguments = {"undelivered_at_most": f"{lost_bytes + spare}B"}
    expected = CheckCase(name="delivered_intact", arguments=arguments)
    verdict = judge(with_checks(run, expected).write())
    assert verdict.outcome is outcome, verdict.reason
    assert ("the scenario permits" in verdict.reason) is (outcome is Outcome.FAIL)


def test_an_invalid_limit_is_not_the_drivers_fault(run):
    expected = CheckCase(name="delivered_intact", arguments={"undelivered_at_most": "some"})
    verdict = judge(with_checks(run, expected).write())
    assert verdict.outcome is Outcome.HARNESS
    assert "some" in verdict.reason
