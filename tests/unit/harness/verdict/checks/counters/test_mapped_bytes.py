"""The counter of mapped bytes, compared with the lengths of the log buffers."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    read_samples,
)
from windtunnel.harness.artifact.host.log_index import LogFacts, write_log_index
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.counters import mapped_bytes
from windtunnel.harness.verdict.checks.counters.mapped_bytes import mapped_bytes_counted
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
BASE, ONE, OTHER = 10_000, 300, 500
COUNTER_ID = 35
MISSING = Missing("a file", "is missing")


@pytest.fixture
def run(tmp_path):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    return run


def finding_of(run, values, lengths=(ONE, OTHER)):
    """Judge a run in which host a has these samples, and log buffers of these lengths."""
    path = run.write()
    for host in ("a", "b"):
        files = run.folder.host(host)
        own = values if host == "a" else (BASE, BASE + ONE, BASE)
        rows = [(index, COUNTER_ID, 0, COUNTER_ID, value) for index, value in enumerate(own)]
        before = read_samples(files.counter_samples)
        added = np.array(rows, dtype=COUNTER_SAMPLE)
        write_records(files.counter_samples, np.concatenate([added, before]))
        held = lengths if host == "a" else (ONE,)
        logs = [LogFacts("images", index, length, "") for index, length in enumerate(held)]
        write_log_index(files.log_index, logs)
    found = mapped_bytes_counted(Evidence(path), list(run.case.traffic))
    assert [each.about for each in found] == ["a", "b"]
    assert found[1].outcome is PASS
    return found[0]


def test_a_damaged_list_of_logs_is_named(run):
    path = run.write()
    run.folder.host("a").log_index.write_text("[")
    found, _ = mapped_bytes_counted(Evidence(path), list(run.case.traffic))
    assert found.outcome is Outcome.HARNESS
    assert found.text.startswith("hosts/a/logs.json: cannot be parsed: ")


@pytest.mark.parametrize(
    "values",
    [
        (BASE, BASE + ONE + OTHER, BASE),
        (BASE, BASE + ONE, BASE + ONE + OTHER, BASE + OTHER, BASE),
        (BASE, BASE + ONE, BASE, BASE + OTHER, BASE),
        # The first log buffer is unmapped while the second one is mapped.
        (BASE, BASE + ONE, BASE + OTHER, BASE),
    ],
)
def test_each_log_buffer_is_counted_while_it_is_mapped(run, values):
    finding = finding_of(run, values)
    assert finding.outcome is PASS, finding.text
    assert finding.text == "800 bytes of 2 log buffers"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((BASE,), "the counter rose by 0, expected 800"),
        ((BASE, BASE + 801, BASE), "the counter rose by 801, expected 800"),
        ((BASE, BASE + 800, BASE + 300, BASE + 600, BASE), "the counter rose by 1100"),
        ((BASE, BASE + 800), "the counter ended at 10800, expected its first value 10000"),
        ((BASE, BASE + 800, BASE - 800), "the counter fell to 9200, expected at least"),
    ],
)
def test_bytes_without_a_log_buffer_are_reported(run, values, text):
    finding = finding_of(run, values)
    assert finding.outcome is FAIL
    assert finding.text.startswith(text)


def test_the_only_log_buffer_of_a_stream_is_counted_completely(run):
    assert finding_of(run, (BASE, BASE + ONE, BASE), lengths=(ONE,)).outcome is PASS
    finding = finding_of(run, (BASE, BASE + ONE - 1, BASE), lengths=(ONE,))
    assert finding.outcome is FAIL
    assert finding.text.startswith("the counter rose by 299, expected 300")


@pytest.mark.parametrize("peer", ["aeronmd:/opt/aeronmd", "java"])
def test_other_drivers_are_not_judged(run, peer):
    run.manifest.subjects = {"a": SubjectFacts("publisher", peer, "1.53", {})}
    finding = finding_of(run, (BASE,))
    assert finding.outcome is PASS
    assert finding.text.startswith("not compared: aeron-")


def test_in_real_time_nothing_is_compared(run):
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert finding_of(run, (BASE,)).text.startswith("not compared: in real time")


def test_missing_evidence_is_inconclusive(run):
    path = run.write()
    run.folder.host("a").log_index.unlink()
    found = mapped_bytes_counted(Evidence(path), list(run.case.traffic))
    assert found[0].outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("spans", "follow"),
    [
        ({"p": (1, 9), "q": (2, 8)}, False),
        ({"p": (1, 3), "q": (3, 8)}, False),
        ({"p": (1, 3), "q": (4, 8)}, True),
        ({"q": (4, 8), "p": (1, 3)}, True),
        ({"p": (1, 0), "q": (4, 8)}, False),
        ({"p": (1, 3)}, False),
        ({}, False),
    ],
)
def test_a_log_buffer_may_be_mapped_while_that_of_an_ended_stream_is_unmapped(spans, follow):
    facts = {name: SimpleNamespace(started_ns=a, ended_ns=b) for name, (a, b) in spans.items()}
    # Host a publishes p and reads q; nothing is known about another stream.
    evidence = SimpleNamespace(
        publisher=lambda each: facts.get("p", MISSING) if each.id == "p" else MISSING,
        subscriber=lambda each: facts.get("q", MISSING),
    )
    ends = {"p": "b", "q": "a", "x": "b"}
    streams = [SimpleNamespace(id=name, to_host=host) for name, host in ends.items()]
    assert mapped_bytes._follow_each_other(evidence, "a", streams) is follow


@pytest.mark.parametrize(("follow", "outcome"), [(True, PASS), (False, FAIL)])
def test_a_hidden_log_buffer_is_reported_unless_streams_follow_each_other(
    run, monkeypatch, follow, outcome
):
    two = tuple(run.traffic.model_copy(update={"id": each}) for each in ("x", "y"))
    monkeypatch.setattr(mapped_bytes, "_follow_each_other", lambda *_: follow)
    run.case = run.case.model_copy(update={"traffic": (run.traffic, *two)})
    finding = finding_of(run, (BASE, BASE + ONE, BASE))
    assert finding.outcome is outcome
