"""Results of runs that were executed as child processes."""

import json
import sys
import threading

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir, SuiteDir
from windtunnel.harness.exam import child_run

RUN = {
    "FAIL": {"checks": [("a", "FAIL"), ("b", "PASS"), ("a", "FAIL"), ("c", "FAIL")]},
    "PASS": {"checks": [("a", "PASS")]},
}


class Child:
    """Replacement for the child process, which writes the given files."""

    def __init__(self, leave, ends=True):
        self._leave, self._ends = leave, ends
        self.terminated = self.killed = False

    def __call__(self, name, argv, *, env, cwd, log):
        self.argv, self.environment = argv, env
        self._leave(log.parent)
        return self

    def wait(self, timeout_s):
        return 0 if self._ends or self.terminated else None

    def terminate(self):
        self.terminated = True

    def kill(self):
        self.killed = True

    def tail(self, lines):
        return "its last words"


def leaving(outcome):
    def leave(out):
        suite = SuiteDir(out / "20260101T000000Z-abcd")
        folder = RunDir(suite.path / "exam-x-s1")
        folder.make()
        row = SuiteRun(folder.path.name, "exam/x", 1, outcome, "the reason", 0, 1)
        Suite(suite.path.name, "netns", [], 0, runs=[row]).write(suite.document)
        checks = [
            {"name": name, "outcome": found}
            for name, found in RUN.get(outcome, {"checks": []})["checks"]
        ]
        write_document(folder.verdict, {"schema": "windtunnel-verdict/1", "checks": checks})

    return leave


def make(monkeypatch, tmp_path, child, mutant="some", stop=None, **options):
    monkeypatch.setattr(child_run, "LocalProcess", child)
    return child_run.execute_run(
        "exam/x", mutant, fidelity="netns", payload=tmp_path / "p", out=tmp_path / "out",
        stop=stop or threading.Event(), **options,
    )  # fmt: skip


def test_the_checks_that_said_no_are_named_once(monkeypatch, tmp_path):
    child = Child(leaving("FAIL"))
    run = make(monkeypatch, tmp_path, child)
    assert (run.outcome, run.reason, run.checks) == ("FAIL", "the reason", ["a", "c"])
    assert child.argv[-3:] == ["--mutant", "some", "--json"]
    assert run.command[:3] == ["windtunnel", "run", "exam/x"]
    assert child.killed


def test_a_run_has_the_seed_that_was_asked_for(monkeypatch, tmp_path):
    child = Child(leaving("PASS"))
    run = make(monkeypatch, tmp_path, child, seed=1)
    assert run.seed == 1
    at = child.argv.index("--seed")
    assert child.argv[at : at + 4] == ["--seed", "1", "--seeds", "1"]


def test_executions_are_read_from_a_file_that_the_run_is_given(monkeypatch, tmp_path):
    def leave(out):
        leaving("PASS")(out)
        (out / child_run.EXECUTIONS_FILE).write_bytes((17).to_bytes(8, sys.byteorder))

    child = Child(leave)
    assert make(monkeypatch, tmp_path, child).executions == 17
    named = child.environment[child_run.EXECUTIONS]
    assert named == str(tmp_path / "out" / child_run.EXECUTIONS_FILE)
    assert make(monkeypatch, tmp_path, Child(leaving("PASS"))).executions == 0


def test_a_run_that_leaves_nothing_is_our_fault(monkeypatch, tmp_path):
    run = make(monkeypatch, tmp_path, Child(lambda out: None))
    assert run.outcome == "HARNESS"
    assert "its last words" in run.reason


def test_a_suite_that_cannot_be_read_is_our_fault(monkeypatch, tmp_path):
    def leave(out):
        suite = SuiteDir(out / "20260101T000000Z-abcd")
        suite.path.mkdir()
        suite.document.write_text(json.dumps({"schema": "something-else/1"}))

    assert make(monkeypatch, tmp_path, Child(leave)).outcome == "HARNESS"


def test_it_is_asked_to_end_when_the_sitting_is_over(monkeypatch, tmp_path):
    stop = threading.Event()
    stop.set()
    child = Child(lambda out: None, ends=False)
    assert make(monkeypatch, tmp_path, child, stop=stop).outcome == "CANCELLED"
    assert child.terminated
    assert child.killed


def test_a_verdict_that_cannot_be_read_names_no_check(tmp_path):
    folder = RunDir(tmp_path)
    assert child_run.failed_checks(folder) == []
    folder.verdict.write_text("[]")
    assert child_run.failed_checks(folder) == []


def test_a_run_that_does_not_end_in_time_is_ended_and_says_so(monkeypatch, tmp_path):
    child = Child(lambda out: None, ends=False)
    run = make(monkeypatch, tmp_path, child, limit_s=0.0)
    assert child.terminated
    assert run.outcome == "HARNESS"
    assert "did not end within 0 s" in run.reason


def test_time_in_which_the_exam_was_stopped_does_not_count(monkeypatch, tmp_path):
    class Stopped(Child):
        """The exam is stopped for an hour while it waits for the first time."""

        waits = 0

        def wait(self, timeout_s):
            self.waits += 1
            now_s[0] += 3600.0 if self.waits == 1 else timeout_s
            return 0 if self.waits == 9 else None

    now_s = [0.0]
    monkeypatch.setattr(child_run.time, "monotonic", lambda: now_s[0])
    assert make(monkeypatch, tmp_path, Stopped(leaving("PASS")), limit_s=60.0).outcome == "PASS"
    short = Stopped(leaving("PASS"))
    assert make(monkeypatch, tmp_path, short, limit_s=1.0).outcome == "HARNESS"
    assert short.terminated
