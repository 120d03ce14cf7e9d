"""Times without an image, in which no status message is due."""

import pytest

from tests.unit.harness.verdict.checks.flow_control.test_status_message_checks import messages, wait
from tests.unit.harness.verdict.synthetic_run import SESSION_ID, STEP_NS, SyntheticRun, make_run
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.artifact.host.application import Part
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import (
    status_messages_on_time,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.images import without_image
from windtunnel.harness.verdict.views.pauses import NEVER_NS

FAIL, PASS = Outcome.FAIL, Outcome.PASS


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def image(joined_ns, left_ns, session=SESSION_ID):
    return Part(session, 0, 0, False, joined_ns, left_ns)


def ranges_of(run, evidence, *parts):
    evidence.subscriber(run.traffic).parts.extend(parts)
    found = without_image(evidence, run.traffic, SESSION_ID)
    return list(zip(found.starts_ns.tolist(), found.ends_ns.tolist(), strict=True))


def test_one_image_of_a_stream_that_does_not_rejoin_is_not_known(run):
    assert ranges_of(run, Evidence(run.write())) == []


def test_times_between_images_and_after_the_last_one(run):
    parts = image(100, 200), image(250, 300), image(210, 220, session=7)
    found = ranges_of(run, Evidence(run.write()), *parts)
    assert found[0] == (200, 250)
    assert found[1][0] == 300
    assert found[1][1] == NEVER_NS


def test_a_killed_driver_has_no_image_before_the_client_joins_the_next_one(run):
    evidence = happen(
        run,
        pause(120, 130, action="kill"),
        pause(260, 270),
        pause(265, 270, action="kill", host="a"),
        pause(270, 280, action="kill", processes=["subscriber"]),
        pause(50, 60, action="kill"),
    )
    found = ranges_of(run, evidence, image(100, 200), image(250, 300))
    assert found[0] == (120, 250)
    assert found[1][0] == 300


@pytest.mark.parametrize(("left_ms", "outcome"), [(210, PASS), (310, FAIL)])
def test_no_status_message_is_due_without_an_image(run, left_ms, outcome):
    last_ns = messages(run)[5].time_ns
    wait(run, last_ns, 1000 * STEP_NS)
    evidence = Evidence(run.write())
    parts = image(0, last_ns + left_ms * STEP_NS), image(last_ns + 990 * STEP_NS, run.now_ns)
    evidence.subscriber(run.traffic).parts.extend(parts)
    finding = status_messages_on_time(evidence, run.traffic)
    assert finding.outcome is outcome, finding.text
