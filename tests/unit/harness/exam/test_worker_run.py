"""Results of runs that workers of an exam executed."""

import threading
from contextlib import closing

import pytest

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.exam import worker_run
from windtunnel.harness.exam.mutant import NONE, load_all
from windtunnel.harness.exam.mutation_switch import EXECUTIONS, VARIABLE
from windtunnel.harness.exam.worker_run import EXECUTIONS_FILE, WorkerRuns, failed_checks
from windtunnel.harness.orchestrate.event import RunEvent
from windtunnel.harness.orchestrate.run.one_run import RunResult
from windtunnel.harness.scenario.loader import load_scenario

CHECKS = {
    "FAIL": [("a", "FAIL"), ("b", "PASS"), ("a", "FAIL"), ("c", "FAIL")],
    "PASS": [("a", "PASS")],
}
MUTANTS = load_all()[:2]
SECOND = MUTANTS[1].name
SCENARIO = "exam/loss"
EVENT = RunEvent("phase", 0, 1, SCENARIO, 1, "")


class FakeWorker:
    """Replacement for a worker process, which sends these messages and then ends."""

    def __init__(self, messages, during=lambda spec: None):
        self.connection = self
        self._during, self._messages = during, list(messages)
        self.specs, self.is_ended = [], False
        self.index = None

    def assign(self, index, spec):
        self.index = index
        self.specs.append(spec)
        spec.folder.make()
        self._during(spec)

    def poll(self, timeout_s):
        return not self._messages or self._messages[0] is not None

    def recv(self):
        if not self._messages:
            raise EOFError
        return self._messages.pop(0)

    def request_end(self):
        self.is_ended = True

    def reap(self, timeout_s):
        return -9


def judged(outcome):
    def write(spec):
        checks = [{"name": name, "outcome": each} for name, each in CHECKS[outcome]]
        document = {"schema": "windtunnel-verdict/1", "checks": checks}
        write_document(spec.folder.verdict, document)

    return [EVENT, RunResult(outcome, "the reason", 0, 1)], write


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Return a function that executes a run with the next of some workers."""

    def execute(*workers, mutant=SECOND, stop=None, limit_s=60.0, seed_index=0, runs=None):
        left = list(workers)
        monkeypatch.setattr(worker_run, "Worker", lambda count, variables: left.pop(0))
        payload = tmp_path / "payload"
        payload.write_bytes(b"payload")
        runs = runs or WorkerRuns(MUTANTS, {"sim": {"PYTHONPATH": "/tree"}}, payload)
        stop = stop or threading.Event()
        with closing(runs):
            return runs.execute(
                SCENARIO, mutant, "sim", tmp_path / "out", stop, seed_index, limit_s
            )

    return execute


def test_the_checks_that_failed_are_named_once(make):
    worker = FakeWorker(*judged("FAIL"))
    run = make(worker)
    assert (run.outcome, run.reason, run.checks) == ("FAIL", "the reason", ["a", "c"])
    assert run.command[:3] == ["windtunnel", "run", SCENARIO]
    assert run.command[-2:] == ["--mutant", SECOND]
    assert run.folder == str(worker.specs[0].folder.path)
    suite = Suite.read(SuiteDir(worker.specs[0].folder.path.parent).document)
    assert [each.outcome for each in suite.runs] == ["FAIL"]
    assert worker.is_ended


@pytest.mark.parametrize(("name", "number"), [(NONE, "0"), (SECOND, "2")])
def test_a_mutant_is_active_in_the_processes_of_its_run(make, tmp_path, name, number):
    worker = FakeWorker(*judged("PASS"))
    make(worker, mutant=name)
    (spec,) = worker.specs
    planted = [each for each in spec.tested if each.mutant]
    assert {each.mutant for each in planted} == {name}
    assert len(planted) == (2 if name == NONE or MUTANTS[1].side == "both" else 1)
    for each in planted:
        assert each.environment[VARIABLE] == number
        assert each.environment[EXECUTIONS] == str(tmp_path / "out" / EXECUTIONS_FILE)
        # The worker itself has the others, so that it can fork the simulator.
        assert "PYTHONPATH" not in each.environment


@pytest.mark.parametrize(("fidelity", "is_inherited"), [("sim", True), ("netns", False)])
def test_all_processes_of_a_simulated_run_have_the_mutated_driver(
    monkeypatch, tmp_path, fidelity, is_inherited
):
    started = []

    def start(count, variables):
        started.append(variables)
        return worker

    worker = FakeWorker(*judged("PASS"))
    monkeypatch.setattr(worker_run, "Worker", start)
    payload, tree = tmp_path / "payload", {"PYTHONPATH": "/tree"}
    payload.write_bytes(b"payload")
    with closing(WorkerRuns(MUTANTS, {fidelity: tree}, payload)) as runs:
        runs.execute(SCENARIO, SECOND, fidelity, tmp_path, threading.Event(), 0, 60.0)
    assert started == [tree if is_inherited else {}]
    planted = next(each for each in worker.specs[0].tested if each.mutant)
    assert ("PYTHONPATH" in planted.environment) != is_inherited


def test_seeds_count_from_the_first_one_of_the_scenario(make):
    first = load_scenario(worker_run.SCENARIOS / f"{SCENARIO}.yaml").seeds.root
    worker = FakeWorker(*judged("PASS"))
    assert make(worker, seed_index=2).seed == first + 2
    assert worker.specs[0].seed == first + 2


def test_executions_are_read_from_a_file_that_the_run_is_given(make):
    messages, write = judged("PASS")

    def during(spec):
        write(spec)
        file = spec.folder.path.parent.parent / EXECUTIONS_FILE
        file.write_bytes((17).to_bytes(8, "little"))

    assert make(FakeWorker(messages, during)).executions == 17
    assert make(FakeWorker(messages, write)).executions == 0


def test_a_worker_that_dies_is_a_harness_error(make):
    run = make(FakeWorker([EVENT]))
    assert run.outcome == "HARNESS"
    assert "ended with exit code -9" in run.reason


def test_a_worker_is_reused_unless_it_died(monkeypatch, tmp_path):
    messages, write = judged("PASS")
    workers = [FakeWorker(messages * 2, write), FakeWorker(messages, write)]
    left = list(workers)
    monkeypatch.setattr(worker_run, "Worker", lambda count, variables: left.pop(0))
    payload = tmp_path / "payload"
    payload.write_bytes(b"payload")
    with closing(WorkerRuns(MUTANTS, {"sim": {}}, payload)) as runs:
        outcomes = [
            runs.execute(SCENARIO, NONE, "sim", tmp_path / "out", threading.Event(), 0, 60.0)
            for _ in range(4)
        ]
    assert [each.outcome for each in outcomes] == ["PASS", "PASS", "HARNESS", "PASS"]
    assert [len(each.specs) for each in workers] == [3, 1]


def test_a_run_is_cancelled_when_the_exam_ends(make):
    stop = threading.Event()
    stop.set()
    worker = FakeWorker([None])
    assert make(worker, stop=stop).outcome == "CANCELLED"
    assert worker.is_ended


def test_a_run_that_does_not_end_in_time_is_ended_and_reported(make):
    worker = FakeWorker([None])
    run = make(worker, limit_s=-1.0)
    assert run.outcome == "HARNESS"
    assert "did not end within" in run.reason
    assert worker.is_ended


def test_time_in_which_the_exam_was_stopped_does_not_count(make, monkeypatch):
    class Stopped(FakeWorker):
        """A connection during whose first poll the exam is stopped for an hour."""

        polls = 0

        def poll(self, timeout_s):
            self.polls += 1
            now_s[0] += 3600.0 if self.polls == 1 else timeout_s
            return self.polls > 9

    now_s = [0.0]
    monkeypatch.setattr(worker_run.time, "monotonic", lambda: now_s[0])
    assert make(Stopped(*judged("PASS")), limit_s=60.0).outcome == "PASS"
    assert make(Stopped(*judged("PASS")), limit_s=1.0).outcome == "HARNESS"


def test_a_verdict_that_cannot_be_read_names_no_check(tmp_path):
    folder = RunDir(tmp_path)
    assert failed_checks(folder) == []
    folder.verdict.write_text("[]")
    assert failed_checks(folder) == []
