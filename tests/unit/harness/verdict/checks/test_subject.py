"""Exits of processes: servers end normally on a shutdown request, all others in time."""

from signal import SIGBUS

import pytest

from tests.unit.harness.verdict.synthetic_run import TRAFFIC, SyntheticRun, make_run
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.subject import subject_lived
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

DRIVER, PUBLISHER, SUBSCRIBER = 0, 2, 3
"""Names of the processes in the synthetic run's manifest."""
DISK = "OSError: [Errno 28] No space left on device"


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def findings_of(run):
    return subject_lived(Evidence(run.write()))


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


def kill_a_driver(run, host):
    """Add a host event that the scenario specifies and that happens."""
    order = EventCase(
        id="crash",
        host=host,
        process="driver",
        trigger="delivered",
        at=1,
        action="kill",
        lasts_ns=1,
    )
    run.case = run.case.model_copy(update={"events": (order,)})
    run.folder.make()
    happened = [AppliedEvent("crash", host, "kill", ["driver"], 1, 2)]
    write_applied_events(run.folder.host_events, happened)


@pytest.mark.parametrize("code", [0, -15, 143])
def test_a_driver_that_ends_on_a_shutdown_request_passes(run, code):
    run.manifest.processes[DRIVER].exit_code = code
    assert only(findings_of(run)).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (-11, "was terminated by signal 11 (SIGSEGV)"),
        (1, "exited with code 1"),
        (-9, "9 (SIGKILL)"),
        (-40, "was terminated by signal 40"),
    ],
)
def test_a_driver_that_breaks_on_a_shutdown_request_fails(run, code, how):
    run.manifest.processes[DRIVER].exit_code = code
    run.manifest.processes[DRIVER].last_log_line = "an agent failed"
    finding = only(findings_of(run))
    assert (finding.outcome, finding.about, finding.kind) == (
        Outcome.FAIL,
        "a/driver",
        Kind.SAFETY,
    )
    assert (
        f"{how} after the shutdown request; its log hosts/a/driver.log ends with: an agent failed"
        in finding.text
    )


@pytest.mark.parametrize(("part", "where"), [("sender", " in its sender"), ("", "")])
def test_a_driver_that_crashed_in_a_simulation_has_a_virtual_time(run, part, where):
    driver = run.manifest.processes[DRIVER]
    driver.exit_code, driver.asked, driver.last_log_line = -11, False, ""
    driver.virtual_ns, driver.part = 0, part
    assert only(findings_of(run)).text == (
        f"a/driver was terminated by signal 11 (SIGSEGV){where} at 0 ms of virtual time, "
        "before the shutdown request"
    )


def test_a_failed_exercise_names_what_it_expected(run):
    text = "expected a connection within 15 s"
    run.manifest.processes.append(ProcessExit("a/exercise-spies", "exercise", 1, False, "", text))
    finding = only(findings_of(run))
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_a_missing_exercise_is_reported(run):
    run.case = run.case.model_copy(update={"exercises": ("spies",)})
    finding = only(findings_of(run))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "lists no exercise" in finding.text


def test_an_archive_that_breaks_on_a_shutdown_request_fails(run):
    run.manifest.processes.append(ProcessExit("b/archive", "archive", 1, True, "", ""))
    assert only(findings_of(run)).about == "b/archive"


def test_an_archive_that_ended_just_before_the_request_is_excused(run):
    run.manifest.processes.append(ProcessExit("b/archive", "archive", 124, True, "", ""))
    finding = only(findings_of(run))
    assert (finding.outcome, finding.kind, finding.conclusive) == (
        Outcome.FAIL,
        Kind.TIMEOUT,
        False,
    )


@pytest.mark.parametrize("asked", [True, False])
def test_an_archive_whose_files_could_not_be_kept_is_not_judged(run, asked):
    run.manifest.processes.append(ProcessExit("b/archive", "archive", 125, asked, "", ""))
    assert only(findings_of(run)).outcome is Outcome.HARNESS


def test_a_workload_that_was_asked_to_end_may_report_it(run):
    run.manifest.processes[PUBLISHER].asked = True
    run.manifest.processes[PUBLISHER].exit_code = 143
    assert only(findings_of(run)).outcome is Outcome.PASS


def test_a_process_killed_by_a_host_event_is_no_failure(run):
    run.manifest.processes[DRIVER].exit_code = -9
    kill_a_driver(run, "a")
    assert only(findings_of(run)).outcome is Outcome.PASS


def test_an_event_excuses_no_other_process(run):
    run.manifest.processes[DRIVER].exit_code = -9
    kill_a_driver(run, "b")
    assert only(findings_of(run)).about == "a/driver"


@pytest.mark.parametrize("index", [DRIVER, SUBSCRIBER])
def test_a_process_that_ignores_a_shutdown_request_fails_and_excuses_nothing(run, index):
    late = run.manifest.processes[index]
    late.asked, late.exit_code, late.late_s = True, -9, 60.0
    finding = only(findings_of(run))
    assert (finding.outcome, finding.about, finding.kind) == (
        Outcome.FAIL,
        late.name,
        Kind.LIVENESS,
    )
    assert "did not end within 60 s of the shutdown request" in finding.text
    verdict = judge(run.path)
    assert verdict.outcome is Outcome.FAIL
    assert next(each for each in verdict.gates if each.name == "manifest_complete").outcome is (
        Outcome.PASS
    )


@pytest.mark.parametrize("code", [3, 120])
@pytest.mark.parametrize("asked", [False, True])
def test_a_workload_that_failed_with_a_harness_error_is_not_the_subjects_fault(run, code, asked):
    # The disk was full, so the workload could not write its data, and the publisher timed out.
    reader, publisher = run.manifest.processes[SUBSCRIBER], run.manifest.processes[PUBLISHER]
    reader.exit_code, reader.asked, reader.last_log_line = code, asked, f"subscriber: {DISK}"
    publisher.exit_code = 124
    run.manifest.complete, run.manifest.stopped = False, "b/subscriber-one ended"
    run.messages = run.messages[:50]
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    document.write_text(document.read_text().replace('"error": null', f'"error": "{DISK}"'))
    verdict = judge(path)
    assert verdict.outcome is Outcome.HARNESS, verdict.reason
    assert verdict.reason == (
        f"manifest_complete: b/subscriber-one failed with a harness error: subscriber: {DISK}"
    )


def test_the_exit_code_of_a_driver_is_always_its_own_fault(run):
    run.manifest.processes[DRIVER].exit_code = 3
    assert judge(run.write()).outcome is Outcome.FAIL


CNC_PROBLEM = "/dev/shm/aeron/cnc.dat: cnc version: expected major version 0, found 0x10000"
TRUNCATED = "it was truncated while it was read"


@pytest.mark.parametrize(
    ("code", "why"), [(4, CNC_PROBLEM), (-SIGBUS, TRUNCATED), (128 + SIGBUS, TRUNCATED)]
)
def test_a_driver_whose_file_is_invalid_fails(run, code, why):
    exits = ProcessExit("b/sampler", "sampler", code, False, "", CNC_PROBLEM)
    run.manifest.processes.append(exits)
    finding = only(findings_of(run))
    assert (finding.outcome, finding.about, finding.conclusive) == (Outcome.FAIL, "b/driver", True)
    assert finding.text == f"b/driver has written an invalid cnc.dat: {why}"


@pytest.mark.parametrize("driver", ["shared", "embedded"])
def test_applications_that_share_a_driver_may_have_made_its_file_invalid(run, driver):
    one = ApplicationCase(id="one", host="b", command=("x",), stop_within_ns=1, driver=driver)
    run.case = run.case.model_copy(update={"applications": (one,)})
    run.manifest.processes.append(ProcessExit("b/sampler", "sampler", 4, False, "", CNC_PROBLEM))
    (finding,) = [each for each in findings_of(run) if each.about == "b/driver"]
    text = "an application that shares the driver may have done it"
    assert (text in finding.text) == (driver == "shared")
