"""`judge` and `report` end normally if any value in any document of a run folder is replaced.

    refused at reading     a DocumentError that names the file
    accepted               the judge evaluates it: no gate or check raises an exception

A sample of the accepted ones is judged and reported, which takes much longer than reading.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.harness.middlebox.synthetic_case import case as made_case
from tests.unit.harness.verdict.synthetic_run import make_run
from tests.unit.harness.verdict.synthetic_times import write_times
from tests.unit.reports.synthetic_suite import make_suite
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.host.application import Part, PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.counter_sample import read_counters
from windtunnel.harness.artifact.host.host_event import (
    AppliedEvent,
    read_applied_events,
    write_applied_events,
)
from windtunnel.harness.artifact.host.host_facts import (
    CaptureFacts,
    ErrorObservation,
    SnmpFacts,
    read_error_log,
    write_error_log,
)
from windtunnel.harness.artifact.host.log_index import read_log_index
from windtunnel.harness.artifact.host.pressure import Pressure
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import Ledger, PortAccount, RuleAccount
from windtunnel.harness.artifact.middlebox.netem import NetemAccount, NetemLink
from windtunnel.harness.artifact.run.agreement import Agreement
from windtunnel.harness.artifact.run.manifest import Manifest, ProcessExit, SubjectFacts
from windtunnel.harness.artifact.run.matrix import Matrix, MatrixCell, MatrixPeer
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run.suite import ScenarioResult, Suite, SuiteRun
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import (
    LinkChange,
    LinkChanges,
    LinkCounts,
    LinkRequest,
    LinkRequests,
    read_changes,
)
from windtunnel.harness.verdict.judge import judge
from windtunnel.reports.matrix_page import write_matrix_page
from windtunnel.reports.page import write_run_report, write_suite_report

NEST = 150
WRONG = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "minus one": "-1",
    "2**70": str(1 << 70),
    "2**62": str(1 << 62),
    "float": "1.5",
    "nan": "NaN",
    "infinity": "1e999",
    "digits": "9" * 5000,
    "empty text": '""',
    "surrogate": '"\\ud800"',
    "control": '"\\u001b[2J../../x"',
    "empty list": "[]",
    "list": "[1, null]",
    "empty object": "{}",
    "object": '{"a": null}',
    "nest": "[" * NEST + "]" * NEST,
}
MARK = "the value to be replaced"
JUDGED_MAX = 60
"""Number of accepted documents that are judged."""

READERS: dict[str, Callable[[Path], object]] = {
    "run.json": Manifest.read,
    "case.json": Case.read,
    "ledger.json": Ledger.read,
    "netem.json": NetemAccount.read,
    "host-events.json": read_applied_events,
    "link-requests.json": LinkRequests.read,
    "link-changes.json": lambda path: read_changes(path, made_case()),
    "replay.json": Agreement.read,
    "simulation.json": Simulation.read,
    "suite.json": Suite.read,
    "matrix.json": Matrix.read,
    "counters.json": read_counters,
    "cnc-errors.json": read_error_log,
    "snmp.json": SnmpFacts.read,
    "pressure.json": Pressure.read,
    "logs.json": read_log_index,
    "a.json": CaptureFacts.read,
    "publisher-one.json": PublisherFacts.read,
    "subscriber-one.json": SubscriberFacts.read,
    "recorder-one.json": RecorderFacts.read,
    "verdict.json": read_verdict,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder with every kind of document."""
    made = make_run(tmp_path_factory.mktemp("hostile") / "run")
    made.manifest.subjects = {"a": SubjectFacts("publisher", "ours", "1.53")}
    made.manifest.versions = {"windtunnel": "0.1"}
    made.manifest.errors = ["none"]
    made.links["a->b"].impairments = ImpairmentAccount(frames_lost={"DATA": 0}, late_ns={"p50": 1})
    folder = RunDir(made.write())
    write_times(made, *([made.now_ns] * made.plan.count for _ in range(2)))
    Ledger(made.links, {"lose-data": RuleAccount(9, 9)}, {"a": PortAccount()}).write(folder.ledger)
    NetemAccount({"a->b": NetemLink("eth0", ["delay"], {"limit": 1})}).write(folder.netem)
    events = [AppliedEvent("freeze", "b", "pause", ["driver"], 1, 2)]
    write_applied_events(folder.host_events, events)
    impairments = ImpairmentCase(link="a->b", loss=LossCase(model="iid", shares_ppb=(1,)))
    LinkRequests(requests=(LinkRequest(number=1, impairments=(impairments,)),)).write(
        folder.link_requests
    )
    change = LinkChange(number=1, at_ns=1, impairments=impairments, counts=LinkCounts(received=1))
    LinkChanges(changes=(change,)).write(folder.link_changes)
    frame = {"action": "drop", "link": "a->b", "frame_type": "DATA", "stream_id": 1, "order": 1}
    Agreement("other", 2, 1, 0, [frame]).write(folder.replay)
    exits = [ProcessExit("a/driver", "driver", 0, True, "", "")]
    Simulation("00", 1, 1, 1, exits=exits).write(folder.simulation)
    write_error_log(folder.host("a").cnc_errors, [ErrorObservation(1, 1, 2, "text")])
    part = vars(Part(1, 0, 64, True, 1, 2))
    facts = SubscriberFacts.read(folder.host("b").subscriber("one").document)
    facts.parts = [part]
    facts.write(folder.host("b").subscriber("one").document)
    recording = {"recording_id": 0, "session_id": 1, "start_position": 0, "stop_position": 64}
    recorder = RecorderFacts(1, 1, 2, None, [{**recording, "told_position": 64}])
    recorder.write(folder.host("b").recorder("one").document)
    done = SuiteRun("run", "made/by-hand", 7, "PASS", "", 1, 2)
    result = ScenarioResult("made/by-hand", "PASS", "1 of 1", 1, 0, 0, 0.0, 0.1, None)
    Suite("s", "netns", ["x"], 1, 2, 0, [done], [result], ["x"]).write(folder.path / "suite.json")
    cell = MatrixCell("made/by-hand", "ours", "ours", "suite", 1, "PASS", "", 1, [done])
    peers = [MatrixPeer("ours", "1.53")]
    matrix = Matrix("m", "netns", ["x"], 1, ["ours"], ["ours"], 1, 2, 0, peers, [cell])
    matrix.write(folder.path / "matrix.json")
    (row,) = judge(folder.path).results
    assert row.stalled_ns is not None
    return folder


def _paths(value, path=()) -> Iterator[tuple]:
    """Yield the path of each value; within a list, only of its first two and its last item."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _paths(value[key], (*path, key))
    if isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from _paths(value[index], (*path, index))


def _replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


@dataclass(frozen=True)
class Change:
    """A value of a document, and its replacement."""

    document: str
    path: tuple
    wrong: str

    def text(self, marked: str) -> str:
        """Return the changed document, given the one in which the value is marked."""
        return marked.replace(json.dumps(MARK), WRONG[self.wrong])


def _marked(original: str, path: tuple) -> str:
    return json.dumps(_replaced(json.loads(original), path, MARK))


def _documents(run: RunDir) -> dict[str, Path]:
    """Return one document of each kind."""
    return {each.name: each for each in sorted(run.path.rglob("*.json"), reverse=True)}


@pytest.fixture(scope="module")
def refusals(run, tmp_path_factory, request):
    """Return for each change what reading the document raised, or nothing if it was accepted.

    `--full` makes all changes; otherwise each value is replaced by every fourth wrong value.
    """
    step = 1 if request.config.getoption("full") else 4
    wrongs = list(WRONG)
    judge(run.path)  # The verdict of an earlier test may be that of a changed document.
    found = _documents(run)
    folder = tmp_path_factory.mktemp("read")
    refusals = {}
    for name, read in READERS.items():
        original = found[name].read_text()
        for index, path in enumerate(_paths(json.loads(original))):
            marked = _marked(original, path)
            for wrong in wrongs[index % step :: step]:
                change = Change(name, path, wrong)
                (folder / name).write_text(change.text(marked))
                refusals[change] = _refusal(read, folder / name)
    return refusals


def _refusal(read: Callable[[Path], object], file: Path) -> str:
    """Return the text of the DocumentError, or any other exception, or an empty string."""
    try:
        read(file)
    except DocumentError as error:
        return str(error)
    except Exception as error:
        return f"no DocumentError: {error!r}"
    return ""


def test_reading_either_accepts_a_document_or_names_it(run, refusals):
    assert set(_documents(run)) - {"b.json"} == set(READERS)
    for change, message in refusals.items():
        assert not message or message.startswith(f"{change.document}: "), (change, message)
        assert len(message) < 500, (change, message)


def _in_turn(run: RunDir, refusals: dict[Change, str], most: int) -> Iterator[Change]:
    """Replace files by a sample of the accepted documents, one after the other."""
    judge(run.path)  # The verdict of an earlier test may be that of a changed document.
    accepted = [change for change, message in refusals.items() if not message]
    for change in random.Random(1).sample(accepted, min(most, len(accepted))):
        file = _documents(run)[change.document]
        before = file.read_bytes()
        file.write_text(change.text(_marked(before.decode(), change.path)))
        try:
            yield change
        finally:
            file.write_bytes(before)


def test_the_judge_evaluates_every_document_that_it_reads(run, refusals):
    for what in _in_turn(run, refusals, JUDGED_MAX):
        verdict = judge(run.path)
        for each in (*verdict.gates, *verdict.checks):
            assert "the judge raised" not in each.text, (what, each.text)


def test_the_judge_names_a_damaged_document(run):
    for file in (run.manifest, run.case, run.ledger):
        before = file.read_bytes()
        file.write_text('{"schema": ' + "[" * 200_000)
        try:
            verdict = judge(run.path)
            texts = [each.text for each in (*verdict.gates, *verdict.checks)]
            assert str(verdict.outcome) in ("INCONCLUSIVE", "HARNESS")
            assert [each for each in texts if file.name in each], texts
            assert not [each for each in texts if "the judge raised" in each], texts
        finally:
            file.write_bytes(before)


def test_the_report_shows_every_document_that_it_reads(run, refusals):
    for _ in _in_turn(run, refusals, JUDGED_MAX):
        write_run_report(run.path).read_text(encoding="utf-8")


def test_the_report_of_a_suite_and_of_a_matrix_names_what_it_cannot_read(tmp_path):
    suite = make_suite(tmp_path / "suite", outcomes=("PASS",))
    (made,) = suite.runs()
    for file in (made.manifest, made.verdict, made.ledger, made.case, suite.document):
        before = file.read_bytes()
        for what, text in (("nest", "[" * 200_000), ("types", '{"schema": 7, "runs": 7}')):
            file.write_text(text)
            page = write_suite_report(suite.path).read_text(encoding="utf-8")
            assert f"{file.name}: " in page, (file.name, what)
        file.write_bytes(before)
    (tmp_path / "matrix.json").write_text('{"schema": "windtunnel-matrix/1", "cells": [{}]}')
    with pytest.raises(DocumentError, match=r"matrix\.json: "):
        write_matrix_page(tmp_path)
