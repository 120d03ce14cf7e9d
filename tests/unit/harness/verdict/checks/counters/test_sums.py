"""Counters of a driver that summarize other counters, or its error log."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.host.host_facts import ErrorObservation, write_error_log
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.counters.sums import system_counters_add_up
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
ERRORS, SHORT, LIMITS = "a/15", "a/16", "a/18"


@pytest.fixture
def run(tmp_path):
    run = make_run(tmp_path)
    exercises = ("image-rejection",)
    run.case = run.case.model_copy(update={"fidelity": "sim", "exercises": exercises})
    run.values |= {"snd-bpe": 3, LIMITS: 3, ERRORS: 5}
    return run


def finding_of(run, counts=(4, 1), text="onPublicationError: reason"):
    path = run.write()
    for host in ("a", "b"):
        own = counts if host == "a" else ()
        errors = [ErrorObservation(count, 1, 2, text) for count in own]
        write_error_log(run.folder.host(host).cnc_errors, errors)
    found = system_counters_add_up(Evidence(path), list(run.case.traffic))
    assert [each.about for each in found] == ["a", "b"]
    assert found[1].outcome is PASS
    return found[0]


def test_counters_that_add_up_are_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is PASS
    assert finding.text == "3 flow control limits, 5 errors"


def test_a_damaged_error_log_is_named(run):
    path = run.write()
    run.folder.host("a").cnc_errors.write_text("[")
    found, _ = system_counters_add_up(Evidence(path), list(run.case.traffic))
    assert found.outcome is Outcome.HARNESS
    assert found.text.startswith("hosts/a/cnc-errors.json: cannot be parsed: ")


@pytest.mark.parametrize("value", [2, 4])
def test_other_limits_than_those_of_the_publications_are_reported(run, value):
    run.values[LIMITS] = value
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == f"counter 'system 18' is {value}, expected 3, the sum of snd-bpe"


@pytest.mark.parametrize("counts", [(4,), (4, 2), ()])
def test_other_errors_than_those_of_the_log_are_reported(run, counts):
    finding = finding_of(run, counts)
    assert finding.outcome is FAIL
    text = f"counter 'system 15' is 5, expected {sum(counts)}, the length of the error log"
    assert finding.text == text


@pytest.mark.parametrize(
    "text", ["(-13) image rejected\nonPublicationError", "(-1) invalid channel", "AssertionError"]
)
def test_an_error_that_no_exercise_causes_is_reported(run, text):
    finding = finding_of(run, text=text)
    assert finding.outcome is FAIL
    first = text.partition("\n")[0]
    assert finding.text.startswith(f"the error log has an error without a known cause: {first}")


def test_a_rejection_has_a_cause_if_the_exercise_runs(run):
    assert finding_of(run, text="onPublicationError: registrationId=1").outcome is PASS
    run.case = run.case.model_copy(update={"exercises": ()})
    assert finding_of(run, text="onPublicationError: registrationId=1").outcome is FAIL


@pytest.mark.parametrize(
    ("more", "driver", "is_right"),
    [("", "ours", False), ("|so-sndbuf=4k", "ours", True), ("", "pyaeron", True)],
)
def test_a_send_is_short_only_with_a_small_buffer(run, more, driver, is_right):
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"channel": traffic.channel + more})
    run.case = run.case.model_copy(update={"traffic": (changed,), "exercises": ()})
    run.values[ERRORS] = 0
    run.manifest.subjects = {"a": SubjectFacts("publisher", driver)}
    run.values[SHORT] = 2
    finding = finding_of(run, ())
    assert (finding.outcome is PASS) == is_right
    assert is_right or "'system 16' is 2, expected 0, because no socket" in finding.text


def test_in_real_time_nothing_is_compared(run):
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert finding_of(run, ()).text.startswith("not compared: in real time")


@pytest.mark.parametrize("name", ["counters", "cnc_errors"])
def test_missing_evidence_is_inconclusive(run, name):
    finding_of(run)
    getattr(run.folder.host("a"), name).unlink()
    found = system_counters_add_up(Evidence(run.path), list(run.case.traffic))
    assert found[0].outcome is Outcome.INCONCLUSIVE
