"""The verdict on applications that run on real hosts: correct ones, and each kind of failure."""

import json
import os
from pathlib import Path

import pytest
import yaml

from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]
CLOCK = {"id": "clock", "on": "a", "command": ["sleep", "0.5"], "expect": {"ends_by_itself": True}}
"""An application that ends the run."""
SERVICE = """
import os, signal, socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind((sys.argv[1], 5000))
print("cwd", os.getcwd(), flush=True)
print("ready", flush=True)
while True:
    data, peer = link.recvfrom(2000)
    link.sendto(data, peer)
"""
CLIENT = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.settimeout(0.2)
count = 0
while count < 40:
    link.sendto(b"%d" % count, (sys.argv[1], 5000))
    try:
        count += int(link.recv(2000)) == count
    except TimeoutError:
        print("again", flush=True)
"""


def shell(text: str, **keys: object) -> dict[str, object]:
    """Return an application on host b that is a line of shell."""
    return {"id": "one", "on": "b", "command": ["sh", "-c", text], **keys}


def program(application: str, host: str, text: str, **keys: object) -> dict[str, object]:
    command = ["${harness.python}", "-c", text, "${b}"]
    return {"id": application, "on": host, "command": command, **keys}


READY = {"log": "ready", "within": "20s"}
PAIR = [
    program("service", "b", SERVICE, ready=READY, expect={"log_never": ["Traceback"]}),
    program("client", "a", CLIENT, expect={"ends_by_itself": True}),
]
KILL = {
    "id": "crash",
    "whom": {"host": "b", "process": "application", "application": "service"},
    "when": {"after": "200ms"},
    "act": {"kill": {"restart_after": "500ms"}},
}
PAUSE = {
    "id": "freeze",
    "whom": {"host": "b", "process": "application"},
    "when": {"after": "200ms"},
    "act": {"pause": "700ms"},
}
STORM = {
    "id": "storm",
    "whom": {"link": "a->b"},
    "when": {"after": "200ms"},
    "act": {"impair": {"loss": "100%", "for": "700ms"}},
}
TERMINATES = """
import os, pathlib, time
from windtunnel.harness.inspect.termination import request_termination
request_termination(pathlib.Path(os.environ["AERON_DIR"]), b"")
print("asked", flush=True)
time.sleep(60)
"""
TRUNCATES = 'truncate -s 0 "$AERON_DIR/cnc.dat"; echo done; sleep 60'
STUBBORN = "trap '' TERM; while :; do sleep 0.1; done"
SILENT = {"log_never": ["Exception"]}
MARK = f"{os.getpid()}.25"

CASES: dict[str, tuple[list[dict[str, object]], list[dict[str, object]], str, str]] = {
    "answers": (PAIR, [], "PASS", "checks passed"),
    "killed": (PAIR, [KILL], "PASS", "checks passed"),
    "paused": (PAIR, [PAUSE], "PASS", "checks passed"),
    "impaired": (PAIR, [STORM], "PASS", "checks passed"),
    "absent": (
        [shell("sleep 60"), CLOCK | {"command": ["no-such-program"]}],
        [],
        "INCONCLUSIVE",
        "the run did not complete: a/application-clock cannot be started: there is no program "
        "'no-such-program' on the PATH",
    ),
    "dies": (
        [shell("echo broken; exit 9", ready=READY), CLOCK],
        [],
        "FAIL",
        "applications_ran (one): b/application-one ended with exit code 9 before it was asked to "
        "end; its log hosts/b/application-one.log ends with: broken (at fault: the application)",
    ),
    "kills": (
        [shell("kill -9 -1; echo ready; sleep 60", ready=READY), CLOCK],
        [],
        "PASS",
        "checks passed",
    ),
    "terminates": (
        [program("one", "b", TERMINATES, ready={"log": "asked"}), CLOCK],
        [],
        "PASS",
        "checks passed",
    ),
    "truncates": (
        [shell(TRUNCATES, ready={"log": "done"}), CLOCK | {"command": ["sleep", "60"]}],
        [],
        "FAIL",
        "b/driver has written an invalid cnc.dat: ",
    ),
    "port": (
        [PAIR[0], {**PAIR[0], "id": "second"}, CLOCK],
        [],
        "FAIL",
        "b/application-second ended with exit code 1 before it was asked to end; its log "
        "hosts/b/application-second.log ends with: OSError: [Errno 98] Address already in use "
        "(at fault: the application)",
    ),
    "unready": (
        [shell("echo starting; sleep 60", ready={"log": "ready", "within": "300ms"}), CLOCK],
        [],
        "FAIL",
        "b/application-one was not ready within 300ms: no line of its log contains 'ready'",
    ),
    "stubborn": (
        [shell(STUBBORN, stop={"within": "300ms"}), CLOCK],
        [],
        "FAIL",
        "b/application-one did not end within 0.3 s of SIGTERM, and was killed",
    ),
    "verbose": (
        [shell("yes"), CLOCK | {"command": ["sleep", "60"]}],
        [],
        "FAIL",
        "b/application-one was killed, because its log became too long",
    ),
    "logs": (
        [shell("echo good; echo an Exception; sleep 9", expect=SILENT), CLOCK],
        [],
        "FAIL",
        "one logged 'Exception', which it must not, first in line 2 of "
        "hosts/b/application-one.log: an Exception",
    ),
    "code": (
        [shell("exit 3", expect={"ends_by_itself": True, "exit": 4})],
        [],
        "FAIL",
        "b/application-one ended with exit code 3, expected exit code 4",
    ),
    "endless": (
        [shell(f"setsid sleep {MARK} & sleep {MARK}", expect={"ends_by_itself": True})],
        [],
        "FAIL",
        "the budget of 5 s is exceeded; still running: b/application-one",
    ),
}  # fmt: skip


TIMED = ("unready", "stubborn", "endless")
"""Reasons that an overloaded machine excuses."""


def yaml_of(document: object) -> str:
    """Return a document as YAML. Parts that occur twice are written twice: there are no aliases."""
    return str(yaml.safe_dump(json.loads(json.dumps(document))))


def scenario(name: str, folder: Path) -> Path:
    applications, events, _, _ = CASES[name]
    document = {
        "schema": "windtunnel/1",
        "name": f"made/{name}",
        "about": "Made for a test.",
        "seeds": {"root": 1},
        "network": {
            "hosts": ["a", "b"],
            "link": {"between": ["a", "b"], "impairments": {"both": {"delay": "5ms"}}},
        },
        "applications": applications,
        "events": events,
        "budget": {"wall": "5s" if name == "endless" else "30s"},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml_of(document))
    return file


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDir]:
    folder = tmp_path_factory.mktemp("applications")
    files = [scenario(name, folder) for name in CASES]
    runs = run_suite(files, out=folder / "runs", seeds=1, jobs=2, allow_commands=True)
    return {each.scenario.removeprefix("made/"): RunDir(each.run_dir) for each in runs.runs}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_has_the_expected_reason(results: dict[str, RunDir], name: str) -> None:
    _, _, outcome, reason = CASES[name]
    verdict = read_verdict(results[name].verdict)
    assert verdict is not None
    found = [f"{each['name']} ({each['about']}): {each['text']}" for each in verdict["checks"]]
    if verdict["outcome"] == "INCONCLUSIVE" and name in TIMED:
        assert any(reason in each for each in found)
    else:
        assert verdict["outcome"] == outcome, verdict["reason"]
        # A driver without its file may end by itself, which comes first in the reason.
        assert any(reason in each for each in [verdict["reason"], *found])


def test_an_application_cannot_kill_its_driver(results: dict[str, RunDir]) -> None:
    log = results["kills"].host("b").application("one").log.read_text()
    assert "No such process" in log


def test_an_application_that_may_have_ended_its_driver_is_named(
    results: dict[str, RunDir],
) -> None:
    verdict = read_verdict(results["truncates"].verdict)
    assert verdict is not None
    texts = [each["text"] for each in verdict["checks"] if each["about"] == "b/driver"]
    assert any("an application that shares the driver may have done it" in each for each in texts)


def test_no_process_or_namespace_is_left(results: dict[str, RunDir]) -> None:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "cmdline").exists():
            assert MARK.encode() not in (entry / "cmdline").read_bytes()


def test_each_application_has_its_own_working_directory(results: dict[str, RunDir]) -> None:
    files = results["answers"].host("b").application("service")
    assert f"cwd {files.folder}\n" in files.log.read_text()
    assert files.folder.is_dir()


def test_a_killed_application_starts_again(results: dict[str, RunDir]) -> None:
    log = results["killed"].host("b").application("service").log.read_text()
    assert log.splitlines().count("ready") == 2
    assert "again" in results["killed"].host("a").application("client").log.read_text()


def test_temporary_impairments_are_in_the_verdict(results: dict[str, RunDir]) -> None:
    verdict = read_verdict(results["impaired"].verdict)
    assert verdict is not None
    texts = [each["text"] for each in verdict["gates"]]
    assert any("impair of a->b for " in each for each in texts), texts
    assert any("iid loss 100.0000% for" in each for each in texts), texts
    log = results["impaired"].host("a").application("client").log.read_text()
    assert "again" in log


def test_the_log_has_a_limit(results: dict[str, RunDir]) -> None:
    assert results["verbose"].host("b").application("one").log.stat().st_size == 64 << 20
