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
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.verdict.checks.counters.client_heartbeats import heartbeats_of_clients
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
START_MS = START_NS // 1_000_000
COUNTER_ID, TYPE_ID, CLIENT = 90, 11, 4


@pytest.fixture
def run(tmp_path):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    return run


def look(run, steps_ms, last=(), ids=(CLIENT, CLIENT, 0)):
    """Judge a run in which the heartbeat of a client at b changes by each of the steps."""
    path = run.write()
    files = run.folder.host("b")
    values = [*(START_MS + np.cumsum([0, *steps_ms])).tolist(), *last]
    rows = [(START_NS + at, COUNTER_ID, TYPE_ID, CLIENT, each) for at, each in enumerate(values)]
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
    finding = look(run, steps_ms)
    assert finding.outcome is PASS
    assert finding.text == "the heartbeats of 1 clients are their own"


def test_a_closed_client_is_0(run):
    assert look(run, [500, 500], last=(0,)).outcome is PASS


def test_heartbeats_that_somebody_else_writes_are_reported(run):
    finding = look(run, [500, 16, 484, 449])
    assert finding.outcome is FAIL
    assert finding.text.startswith("the heartbeat of client 4 changed 2 times within less than 450")
    assert look(run, [500, 449]).outcome is FAIL


def test_a_heartbeat_that_falls_is_reported(run):
    finding = look(run, [500, -1])
    assert finding.outcome is FAIL
    assert finding.text == "the heartbeat of client 4 fell by 1 ms"


def test_in_real_time_nothing_is_compared(run):
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert look(run, [16, 16, 16]).text.startswith("not compared: in real time")


def test_missing_evidence_is_inconclusive(run):
    path = run.write()
    run.folder.host("a").counters.unlink()
    found = heartbeats_of_clients(Evidence(path), list(run.case.traffic))
    assert found[0].outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("ids", [(CLIENT, CLIENT, 1), (CLIENT, CLIENT + 1, 0)])
@pytest.mark.parametrize("fidelity", ["sim", "netns"])
def test_other_ids_than_the_clients_are_reported(run, ids, fidelity):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    finding = look(run, [500], ids=ids)
    assert finding.outcome is FAIL
    assert f"owner and reference id {ids}, expected {(CLIENT, CLIENT, 0)}" in finding.text
