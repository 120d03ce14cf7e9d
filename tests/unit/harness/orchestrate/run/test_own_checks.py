"""Own checks are executed in a process with limits, and each possible end is a result."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.run.own_checks import OwnChecks
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run import own_checks

HEAD = "import os, pathlib, signal, subprocess, sys\nfrom windtunnel.harness.checks import check\n"
S = 1_000_000_000


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return RunDir(make_run(tmp_path_factory.mktemp("runs") / "one").write())


@pytest.fixture
def execute(tmp_path, run_dir):
    def execute(body, *, within_ns=20 * S, allow=True):
        text = "".join(
            f"@check\ndef {name}(evidence):\n    {each}\n" for name, each in body.items()
        )
        (tmp_path / "checks.py").write_text(HEAD + text)
        budget = SimpleNamespace(checks_ns=within_ns)
        spec = SimpleNamespace(
            scenario=SimpleNamespace(checks=("checks.py",), budget=budget),
            scenario_file=tmp_path / "own.yaml",
            folder=run_dir,
            allow_commands=allow,
        )
        own_checks.execute(spec)
        found = OwnChecks.read(run_dir.own_checks)
        assert found is not None
        (file,) = found.files
        assert not run_dir.own_check_results(0).exists()
        return file.error, {each.name: (each.outcome, *each.texts) for each in file.checks}

    return execute


def test_results_are_stored_and_output_is_kept(execute, run_dir):
    body = "print('looked', flush=True); return f'{len(list(evidence.frames(\"a\")))} frames'"
    error, found = execute({"feed": body, "calm": "return None"})
    count = int(found["feed"][1].split()[0])
    assert count > 100
    assert (error, found["calm"]) == ("", ("PASS",))
    assert run_dir.own_check_log(0).read_text() == "looked\n"


def test_nothing_is_executed_unless_that_is_allowed(execute, tmp_path):
    mark = tmp_path / "executed"
    body = {"feed": f"open({str(mark)!r}, 'w')"}
    assert execute(body, allow=False) == ("checks.py: its execution is not allowed", {})
    assert not mark.exists()
    execute(body)
    assert mark.exists()


def test_a_check_that_ends_by_a_signal_without_a_name_is_a_result(execute, monkeypatch):
    # Without a process namespace, whose first process ignores the signal.
    monkeypatch.setattr(own_checks.privileges, "effective_capabilities", lambda: 0)
    number = signal.SIGRTMIN + 1
    error, found = execute({"feed": f"os.kill(os.getpid(), {number})"})
    how = f"ended the process by signal {number}; see own-checks-0.log"
    assert (error, found["feed"]) == ("", ("HARNESS", f"checks.py:3: {how}"))


def test_an_endless_check_is_killed_at_the_limit(execute):
    began_s = time.monotonic()
    error, found = execute(
        {"first": "return None", "feed": "\n    while True: pass", "last": "return None"},
        within_ns=S // 2,
    )
    assert time.monotonic() - began_s < 30
    assert error == ""
    assert found == {
        "first": ("PASS",),
        "feed": ("HARNESS", "checks.py:6: did not end within 500ms"),
        "last": (
            "HARNESS", "checks.py:10: was not executed, because feed did not end within 500ms",
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("os._exit(7)", "checks.py:3: ended the process with exit code 7; see own-checks-0.log"),
        ("import ctypes; ctypes.string_at(1)",
         "checks.py:3: ended the process by SIGSEGV; see own-checks-0.log"),
        ("while True: print('x' * 100_000)", "checks.py:5: OSError: [Errno 27] File too"),
        ("a = []\n    while True: a.append(bytes(1 << 28))", "checks.py:6: MemoryError"),
    ],
)  # fmt: skip
def test_a_check_that_takes_too_much_or_crashes_is_named(execute, run_dir, body, text):
    error, found = execute({"feed": body})
    assert error == ""
    outcome, described = found["feed"]
    assert outcome == "HARNESS"
    assert described.startswith(text)
    assert run_dir.own_check_log(0).stat().st_size <= 4 << 20


def test_has_no_secrets_and_no_privileges(execute, monkeypatch):
    monkeypatch.setenv("WINDTUNNEL_TEST_SECRET", "hunter2")
    names = "return ' '.join(sorted(os.environ))"
    rights = "return [x for x in open('/proc/self/status') if x.startswith('CapEff')][0]"
    # In /proc, because getsid() is 0 in a process namespace that the session's leader is not in.
    session = "pathlib.Path('/proc/self/stat').read_text().rpartition(')')[2].split()[3]"
    _, found = execute({"names": names, "rights": rights, "session": f"return {session}"})
    assert "PATH" in found["names"][1].split()
    assert "SECRET" not in found["names"][1]
    if os.geteuid() == 0:
        assert int(found["rights"][1].split()[1], 16) == 0
    assert found["session"][1] != Path("/proc/self/stat").read_text().rpartition(")")[2].split()[3]


def test_processes_that_a_check_has_started_end_with_it(execute, tmp_path):
    mark, duration = tmp_path / "started", f"1000.{os.getpid()}"
    command = ["sh", "-c", f"touch {mark}; exec sleep {duration}"]
    wait = f"\n    while not os.path.exists({str(mark)!r}): pass"
    error, found = execute({"feed": f"subprocess.Popen({command}){wait}"})
    assert (error, found) == ("", {"feed": ("PASS",)})
    expected = f"sleep\0{duration}\0".encode()
    left = [each for each in Path("/proc").glob("[0-9]*/cmdline") if _read(each) == expected]
    assert left == []


def _read(cmdline):
    try:
        return cmdline.read_bytes()
    except OSError:
        return b""


def test_results_of_another_process_are_not_accepted(execute, run_dir):
    results = str(run_dir.own_check_results(0))
    error, found = execute({"feed": f"open({results!r}, 'a').write('{{}}x\\n')"})
    assert error.startswith("checks.py: its results cannot be read: own-checks-0.results: ")
    assert set(found) == {"feed"}
