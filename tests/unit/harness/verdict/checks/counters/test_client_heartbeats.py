"""Heartbeat counters of clients: written by the clients alone."""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import START_NS, make_run
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    read_counters,
    read_samples,
    write_counters,
)
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.counters.client_heartbeats import heartbeats_of_clients
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
START_MS = START_NS // 1_000_000
INTERVAL_NS = 500_000_000
STEPPED_NS = START_NS + INTERVAL_NS * 3 // 2
COUNTER_ID, TYPE_ID, CLIENT = 90, 11, 4


@pytest.fixture
def run(tmp_path):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    return run


def finding_of(run, steps_ms, last=(), ids=(CLIENT, CLIENT, 0)):
    """Judge a run in which the heartbeat of a client at b changes by each of the steps."""
    path = run.write()
    files = run.folder.host("b")
    values = [*(START_MS + np.cumsum([0, *steps_ms])).tolist(), *last]
    times_ns = START_NS + INTERVAL_NS * np.arange(len(values))
    rows = [
        (at_ns, COUNTER_ID, TYPE_ID, CLIENT, each)
        for at_ns, each in zip(times_ns, values, strict=True)
    ]
    samples = np.concatenate([read_samples(files.counter_samples), np.array(rows, COUNTER_SAMPLE)])
    write_records(files.counter_samples, samples)
    label = "client-heartbeat: id=4"
    facts = CounterFacts(COUNTER_ID, TYPE_ID, *ids, label, "", values[-1])
    write_counters(files.counters, [*read_counters(files.counters), facts])
    found = heartbeats_of_clients(Evidence(path), list(run.case.traffic))
    assert [(each.about, each.outcome) for each in found[:1]] == [("a", PASS)]
    return found[1]


@pytest.mark.parametrize("steps_ms", [[], [500, 512, 2000], [450], [12, 500, 450]])
def test_heartbeats_each_half_second_are_a_pass(run, steps_ms):
    finding = finding_of(run, steps_ms)
    assert finding.outcome is PASS
    assert finding.text == "each of 1 heartbeat counters was written only by its client"


def test_a_closed_client_is_0(run):
    assert finding_of(run, [500, 500], last=(0,)).outcome is PASS


def test_heartbeats_from_another_writer_are_reported(run):
    finding = finding_of(run, [500, 16, 484, 449])
    assert finding.outcome is FAIL
    assert finding.text.startswith("the heartbeat of client 4 changed 2 times within less than 450")
    assert finding_of(run, [500, 449]).outcome is FAIL


def test_a_heartbeat_that_falls_is_reported(run):
    finding = finding_of(run, [500, -1])
    assert finding.outcome is FAIL
    assert finding.text == "the heartbeat of client 4 fell by 1 ms"


def step_clock(run, host, step_ms):
    """Let an event step a host's clock between the second heartbeat and the third one."""
    event = EventCase(
        id="ntp", host=host, process="driver", trigger="after", at=1, action="step_clock",
        lasts_ns=0, step_ns=step_ms * 1_000_000,
    )  # fmt: skip
    run.case = run.case.model_copy(update={"events": (event,)})
    applied = AppliedEvent("ntp", host, "step_clock", ["driver"], STEPPED_NS, STEPPED_NS)
    write_applied_events(run.folder.host_events, [applied])


@pytest.mark.parametrize("step_ms", [8_000, -3_600_000, -490])
def test_a_step_of_the_hosts_clock_is_not_a_heartbeat(run, step_ms):
    step_clock(run, "b", step_ms)
    assert finding_of(run, [500, 500 + step_ms, 500]).outcome is PASS
    assert finding_of(run, [500, 500 + step_ms, 500, 500 + step_ms]).outcome is (
        PASS if step_ms > 0 else FAIL
    )


def test_a_step_of_another_hosts_clock_explains_nothing(run):
    step_clock(run, "a", -1000)
    assert finding_of(run, [500, -500, 500]).outcome is FAIL


def test_in_real_time_nothing_is_compared(run):
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert finding_of(run, [16, 16, 16]).text.startswith("not compared: in real time")


def test_missing_evidence_is_inconclusive(run):
    path = run.write()
    run.folder.host("a").counters.unlink()
    found = heartbeats_of_clients(Evidence(path), list(run.case.traffic))
    assert found[0].outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("ids", [(CLIENT, CLIENT, 1), (CLIENT, CLIENT + 1, 0)])
@pytest.mark.parametrize("fidelity", ["sim", "netns"])
def test_other_ids_than_the_clients_are_reported(run, ids, fidelity):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    finding = finding_of(run, [500], ids=ids)
    assert finding.outcome is FAIL
    assert f"owner and reference id {ids}, expected {(CLIENT, CLIENT, 0)}" in finding.text
