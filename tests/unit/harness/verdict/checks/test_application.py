"""The judge's findings about applications, by their ends and their logs."""

import pytest

from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.run.manifest import (
    CANNOT_START,
    LOG_LOST,
    LOG_TOO_LONG,
    NOT_READY,
    ProcessExit,
)
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.application import applications_ran
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

SERVER = ApplicationCase(id="one", host="b", command=("x",), stop_within_ns=1, ready_log="up")
CLIENT = SERVER.model_copy(update={"ends_by_itself": True, "ready_within_ns": 2_000_000_000})


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def ended(run, application, code, *, asked, name="b/application-one", **more):
    """Return the findings about an application that ended in this way."""
    run.case = run.case.model_copy(update={"applications": (application,)})
    log = "hosts/b/application-one.log"
    run.manifest.processes.append(ProcessExit(name, "application", code, asked, log, "bye", **more))
    return applications_ran(Evidence(run.write()))


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


@pytest.mark.parametrize("code", [0, -15, 143])
def test_an_application_that_ends_on_request_passes(run, code):
    assert only(ended(run, SERVER, code, asked=True)).outcome is Outcome.PASS


@pytest.mark.parametrize("code", [0, -7, 135])
def test_only_the_expected_exit_code_passes(run, code):
    application = SERVER.model_copy(update={"exit_code": 135})
    found = only(ended(run, application, code, asked=True))
    assert found.outcome is (Outcome.FAIL if code == 0 else Outcome.PASS)


@pytest.mark.parametrize(
    ("application", "code", "asked", "text"),
    [
        (SERVER, 0, False, "b/application-one ended with exit code 0 before it was asked to end"),
        (SERVER, -9, True, "was ended by signal 9, expected exit code 0 or 143; its log hosts/b/a"),
        (CLIENT, 1, False, "b/application-one ended with exit code 1, expected exit code 0; its l"),
        (CLIENT, -11, False, "b/application-one was ended by signal 11, expected exit code 0"),
    ],
)
def test_another_end_is_the_fault_of_the_application(run, application, code, asked, text):
    found = only(ended(run, application, code, asked=asked))
    assert (found.outcome, found.at_fault, found.about) == (
        Outcome.FAIL,
        AtFault.APPLICATION,
        "one",
    )
    assert text in found.text
    assert judge(run.path).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("problem", "outcome", "at_fault", "text"),
    [
        (CANNOT_START, Outcome.INCONCLUSIVE, AtFault.SCENARIO, "cannot be started: bye"),
        (LOG_LOST, Outcome.INCONCLUSIVE, AtFault.MACHINE, "is incomplete: it could not be written"),
        (LOG_TOO_LONG, Outcome.FAIL, AtFault.APPLICATION, "was killed, because its log became"),
        (NOT_READY, Outcome.FAIL, AtFault.APPLICATION, "was not ready within 2s: no line of"),
    ],
)
def test_a_problem_is_named(run, problem, outcome, at_fault, text):
    found = only(ended(run, CLIENT, 125, asked=False, problem=problem))
    assert (found.outcome, found.at_fault) == (outcome, at_fault)
    assert text in found.text


def test_a_lost_log_is_also_reported_for_a_killed_application(run):
    found = ended(run, SERVER, -9, asked=True, problem=LOG_LOST)
    assert [each.outcome for each in found] == [Outcome.INCONCLUSIVE]
    assert judge(run.path).outcome is Outcome.INCONCLUSIVE


def test_an_application_that_had_to_be_killed_fails(run):
    found = only(ended(run, SERVER, -9, asked=True, late_s=0.5))
    assert found.outcome is Outcome.FAIL
    assert "did not end within 0.5 s of SIGTERM, and was killed" in found.text


def test_an_application_without_time_to_end_by_itself_is_inconclusive(run):
    found = only(ended(run, CLIENT, -15, asked=True))
    assert found.outcome is Outcome.INCONCLUSIVE


def test_an_application_that_does_not_end_by_itself_fails_at_the_end_of_the_budget(run):
    run.manifest.overran = "the budget of 1 s is exceeded"
    found = only(ended(run, CLIENT, -15, asked=True))
    assert (found.outcome, found.conclusive) == (Outcome.FAIL, False)


@pytest.mark.parametrize(("host", "outcome"), [("b", Outcome.PASS), ("a", Outcome.FAIL)])
def test_only_an_event_on_its_host_may_kill_it(run, host, outcome):
    order = EventCase(
        id="crash", host=host, process="application", trigger="after", at=1, action="kill",
        lasts_ns=1,
    )  # fmt: skip
    run.case = run.case.model_copy(update={"events": (order,)})
    run.folder.make()
    happened = [AppliedEvent("crash", host, "kill", ["application"], 1, 2)]
    write_applied_events(run.folder.host_events, happened)
    assert only(ended(run, SERVER, -9, asked=True)).outcome is outcome


def test_a_successor_is_judged_too(run):
    run.manifest.processes.append(ProcessExit("b/application-one", "application", 0, True, "", ""))
    found = only(ended(run, SERVER, 1, asked=True, name="b/application-one#2"))
    assert "b/application-one#2 ended with exit code 1" in found.text


def test_an_application_that_is_not_in_the_manifest_is_missing(run):
    found = only(ended(run, SERVER, 0, asked=True, name="a/application-one"))
    assert (found.outcome, found.evidence) == (Outcome.INCONCLUSIVE, ("run.json",))


@pytest.mark.parametrize(
    ("log", "outcome", "text"),
    [
        ("up\nan Exception\nException\n", Outcome.FAIL, "first in line 2 of hosts/b/application-o"),
        ("up\nan exception\nExceptio", Outcome.PASS, ""),
        (None, Outcome.INCONCLUSIVE, "is missing"),
    ],
)
def test_the_log_must_not_contain_a_text(run, log, outcome, text):
    application = SERVER.model_copy(update={"log_never": ("Exception",)})
    if log is not None:
        file = run.folder.host("b").application("one").log
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(log)
    found = only(ended(run, application, 0, asked=True))
    assert found.outcome is outcome
    assert text in found.text
