"""The number of active transports in an image's log, compared with the capture."""

import signal
import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    TERM_LENGTH,
    data_header,
    make_run,
    status_message,
)
from windtunnel.harness.artifact.host.log_index import LogFacts, write_log_index
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.scenario.schema.host_event import TimeoutsCase
from windtunnel.harness.verdict.checks.logs.active_transports import transports_counted
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
AT = 3 * TERM_LENGTH + 140
MS = 1_000_000


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def finding_of(run, value):
    run.logs["b"][AT : AT + 4] = np.frombuffer(struct.pack("<i", value), np.uint8)
    return transports_counted(Evidence(run.write()), run.traffic)


def second_path(run, until=lambda index, count: True):
    """Let frames also arrive at another port of b, as long as a condition holds."""
    traffic = run.traffic.model_copy(update={"ports": (PORT, PORT + 1)})
    run.case = run.case.model_copy(update={"traffic": (traffic,)})
    arrived = [each for each in run.packets["b"] if each.source == "a"]
    for index, each in enumerate(arrived):
        if until(index, len(arrived)):
            ports = each.ports[0], PORT + 1
            run.packets["b"].append(replace(each, ports=ports))


def silence_before_last_status(run, pause_ns):
    """Let time pass before the last frames of the run."""
    last_ns = run.packets["a"][-1].time_ns
    for packets in run.packets.values():
        for each in packets:
            each.time_ns += pause_ns if each.time_ns > last_ns - 10 * MS else 0


@pytest.mark.parametrize(("value", "outcome"), [(1, PASS), (0, FAIL), (2, FAIL)])
def test_a_stream_on_one_path_has_one_transport(run, value, outcome):
    finding = finding_of(run, value)
    assert finding.outcome is outcome
    if outcome is FAIL:
        noun = "transport" if value == 1 else "transports"
        assert finding.text == (
            f"the log of the image has {value} active {noun}, expected 1 to 1 according to the "
            "capture"
        )


@pytest.mark.parametrize(("value", "outcome"), [(1, FAIL), (2, PASS), (3, FAIL)])
def test_two_paths_are_counted(run, value, outcome):
    second_path(run)
    assert finding_of(run, value).outcome is outcome


@pytest.mark.parametrize(("pause_ms", "highest"), [(100, 2), (399, 2), (601, 1), (2000, 1)])
def test_a_path_counts_until_it_has_been_silent_for_the_timeout(run, pause_ms, highest):
    timeouts = TimeoutsCase(image_liveness_ns=500 * MS)
    run.case = run.case.model_copy(update={"timeouts": timeouts})
    second_path(run, lambda index, count: index < count - 12)
    silence_before_last_status(run, pause_ms * MS)
    # Paths may have become silent after the end of the capture.
    found = [value for value in range(4) if finding_of(run, value).outcome is PASS]
    assert found == list(range(highest + 1))


@pytest.mark.parametrize(("beyond", "outcome"), [(32, PASS), (0, FAIL)])
def test_heartbeats_beyond_the_window_keep_no_path_active(run, beyond, outcome):
    timeouts = TimeoutsCase(image_liveness_ns=3000 * MS)
    run.case = run.case.model_copy(update={"timeouts": timeouts})
    status = [each for each in run.packets["b"] if each.kind == "SM"][-1]
    beat = [each for each in run.packets["b"] if each.kind == "HEARTBEAT"][-1]
    last_ns = max(each.time_ns for each in run.packets["b"])
    end = run.log.end_position
    payload = data_header(end + TERM_LENGTH // 2 + beyond, 0, 0xC0, frame_class.DATA)
    acknowledged = replace(status, time_ns=last_ns + 1, payload=status_message(end))
    run.packets["b"] += [
        acknowledged,
        *(replace(beat, time_ns=last_ns + at * 100 * MS, payload=payload) for at in range(1, 36)),
        replace(acknowledged, time_ns=last_ns + 3501 * MS),
    ]
    finding = finding_of(run, 0)
    assert finding.outcome is outcome, finding.text


def test_a_path_that_becomes_silent_after_the_last_status_message_may_count_or_not(run):
    timeouts = TimeoutsCase(image_liveness_ns=500 * MS)
    run.case = run.case.model_copy(update={"timeouts": timeouts})
    assert {value for value in range(3) if finding_of(run, value).outcome is PASS} == {0, 1}


def test_a_driver_that_was_killed_is_not_judged(run):
    run.manifest.processes[1].exit_code = -signal.SIGKILL
    assert finding_of(run, 0).text == "not compared: a driver of the host was killed"


def test_a_log_that_was_not_saved_is_not_judged(run):
    path = run.write()
    facts = [LogFacts("images", 6, 1 << 30, "expected at most 67108864 bytes")]
    write_log_index(run.folder.host("b").log_index, facts)
    finding = transports_counted(Evidence(path), run.traffic)
    assert finding.text == "not compared: a log of an image was too long to be saved"


def test_a_missing_log_is_inconclusive(run):
    path = run.write()
    run.folder.host("b").log_index.unlink()
    finding = transports_counted(Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
