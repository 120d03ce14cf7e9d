"""A reader that joined late or was cut off: its stretch must have no hole and no wrong byte."""

import pytest

from harness.verdict.evidence import Evidence
from harness.verdict.outcome import Outcome
from harness.verdict.stretch import delivered_unbroken
from tests.unit.harness.verdict.made_run import make_run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def look(run):
    return delivered_unbroken(Evidence(run.write()), run.traffic)


def test_the_whole_stream_is_a_stretch(run):
    assert look(run).outcome is Outcome.PASS


def test_a_beginning_is_a_stretch(run):
    del run.messages[7:]
    finding = look(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["delivered"] == 7


def test_a_hole_is_named(run):
    del run.messages[7]
    finding = look(run)
    assert (finding.outcome, finding.message, finding.stands) == (Outcome.FAIL, 7, True)


def test_a_missing_first_message_is_named(run):
    del run.messages[0]
    assert (look(run).outcome, look(run).message) == (Outcome.FAIL, 0)


def test_a_wrong_byte_is_named(run):
    position, content = run.messages[5]
    run.messages[5] = (position, bytes([content[0] ^ 1]) + content[1:])
    finding = look(run)
    assert (finding.outcome, finding.message, finding.byte_offset) == (Outcome.FAIL, 5, 0)


def test_one_too_many_is_named(run):
    run.messages.append(run.messages[-1])
    assert look(run).outcome is Outcome.FAIL


def test_nothing_delivered_shows_nothing(run):
    run.messages.clear()
    assert look(run).outcome is Outcome.INCONCLUSIVE
