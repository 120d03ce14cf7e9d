"""The verdict on applications that run in containers: correct ones, and each kind of failure."""

import subprocess
import zlib
from pathlib import Path

import pytest

from tests.docker.leftovers import leftovers
from tests.netns.test_applications import CASES as IN_NAMESPACES
from tests.netns.test_applications import (
    CLOCK,
    PAIR,
    SILENT,
    STUBBORN,
    TIMED,
    shell,
    yaml_of,
)
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
IMAGE = "windtunnel-test-application:local"
"""An image of a user, with a program that counts to three and reports its rights."""
DOCKERFILE = """
FROM windtunnel:local
COPY count.sh /count.sh
ENTRYPOINT ["sh", "/count.sh"]
CMD ["3"]
"""
COUNT = """
for n in $(seq "$1"); do echo "count $n"; done
grep -i capeff /proc/self/status
ls -d "$AERON_DIR" /scenario
ip link set eth0 down || echo "no right to configure the network"
touch /scenario/made || echo "no right to write in the scenario"
cat /proc/[0-9]*/comm | sort -u | tr '\\n' ' '
test -e /var/run/docker.sock || echo "no engine"
ls -A /scenario/runs | grep . || echo "no runs"
"""
ECHO = {"id": "counter", "on": "b", "image": IMAGE, "expect": {"ends_by_itself": True}}
PUBLISHER = """
import sys, time, zlib
from windtunnel.driver.client import Aeron
with Aeron() as aeron:
    publication = aeron.add_exclusive_publication(sys.argv[1], 1001)
    for number in range(300):
        message = b"message %d " % number + b"x" * (number * 37 % 1000)
        while publication.offer(message) < 0:
            time.sleep(0.001)
        print("WT SENT", number, zlib.crc32(message))
        time.sleep(0.002)
    publication.close()
    time.sleep(0.5)
"""
READER = """
import sys, time, zlib
from windtunnel.driver.client import Aeron
count = 0
def take(payload, header):
    global count
    print("WT GOT", count, zlib.crc32(bytes(payload)))
    count += 1
with Aeron() as aeron:
    subscription = aeron.add_subscription(sys.argv[1], 1001)
    print("reader ready")
    while count < 300:
        if not subscription.poll(take):
            time.sleep(0.001)
"""
CHANNEL = "aeron:udp?endpoint=${b}:24325"
STREAM = {"id": "numbers", "stream": 1001, "from": "a", "to": "b", "channel": CHANNEL}


def program(name: str, host: str, text: str, **keys: object) -> dict[str, object]:
    command = ["${harness.python}", "-c", text, CHANNEL]
    return {"id": name, "on": host, "command": command, **keys}


STREAMED = [
    program("reader", "b", READER, ready={"log": "ready"}, expect={"ends_by_itself": True}),
    program("publisher", "a", PUBLISHER, expect={"ends_by_itself": True}),
]
SHARED = ("answers", "killed", "paused", "impaired", "kills", "truncates")
CASES: dict[str, tuple[list[dict[str, object]], list[dict[str, object]], str, str]] = {
    **{each: IN_NAMESPACES[each] for each in SHARED},
    "streamed": (STREAMED, [], "PASS", "numbers: 300 messages of publisher reached reader"),
    "image": ([ECHO], [], "PASS", "checks passed"),
    "absent": (
        [shell("sleep 60"), CLOCK | {"command": ["no-such-program"]}],
        [],
        "INCONCLUSIVE",
        "a/application-clock cannot be started: 'no-such-program' cannot be executed in its image",
    ),
    "imageless": (
        [shell("sleep 60"), CLOCK | {"image": "windtunnel-test/no-such-image:1"}],
        [],
        "INCONCLUSIVE",
        "there is no image 'windtunnel-test/no-such-image:1' on this machine",
    ),
    "dies": (
        [shell("echo broken; exit 9"), CLOCK],
        [],
        "FAIL",
        "b/application-one ended with exit code 9 before it was asked to end",
    ),
    "port": (
        [PAIR[0], {**PAIR[0], "id": "second"}, CLOCK],
        [],
        "FAIL",
        "hosts/b/application-second.log ends with: OSError: [Errno 98] Address already in use",
    ),
    "unready": (
        [shell("echo starting; sleep 60", ready={"log": "ready", "within": "2s"}), CLOCK],
        [],
        "FAIL",
        "b/application-one was not ready within 2s: no line of its log contains 'ready'",
    ),
    "hungry": (
        [
            program("one", "b", "x = b'x' * (256 << 20)", limits={"memory": "64MiB"},
                    expect={"ends_by_itself": True}),
        ],
        [],
        "FAIL",
        "b/application-one was ended by signal 9, expected exit code 0",
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
        "one logged 'Exception', which it must not, first in line 2",
    ),
}  # fmt: skip
QUICK = ("image",)
"""The cases that are always run. The others are for the long tests."""


@pytest.fixture(scope="module")
def own_image(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "count.sh").write_text(COUNT)
    command = ["docker", "build", "--quiet", "--tag", IMAGE, str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return IMAGE


def run(name: str, folder: Path) -> RunDir:
    """Run a case, in a folder whose name has a character that separates paths elsewhere."""
    folder = folder / "a:b"
    folder.mkdir()
    applications, events, _, _ = CASES[name]
    document = {
        "schema": "windtunnel/1",
        "name": f"made/{name}",
        "about": "Made for a test.",
        "seeds": {"root": 1},
        "fidelity": ["compose"],
        "network": {
            "hosts": ["a", "b"],
            "link": {"between": ["a", "b"], "impairments": {"both": {"delay": "5ms"}}},
        },
        "applications": applications,
        "events": events,
        "budget": {"wall": "60s"},
    }
    if name == "streamed":
        document["observe"] = [STREAM]
    file = folder / f"{name}.yaml"
    file.write_text(yaml_of(document))
    out = folder / "runs"
    made = run_suite([file], out=out, seeds=1, fidelity="compose", allow_commands=True)
    return RunDir(made.runs[0].run_dir)


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(each, marks=pytest.mark.full) for each in CASES if each not in QUICK)],
)
def test_the_verdict_has_the_expected_reason(own_image: str, tmp_path: Path, name: str) -> None:
    _, _, outcome, reason = CASES[name]
    folder = run(name, tmp_path)
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    found = [f"{each['name']} ({each['about']}): {each['text']}" for each in verdict["checks"]]
    if not (name in TIMED and verdict["outcome"] == "INCONCLUSIVE"):
        assert verdict["outcome"] == outcome, verdict["reason"]
    assert any(reason in each for each in [verdict["reason"], *found])
    if name == "image":
        _assert_few_rights(folder.host("b").application("counter").log.read_text())
    if name == "killed":
        log = folder.host("b").application("service").log.read_text()
        assert log.splitlines().count("ready") == 2
        assert log.startswith("cwd /work\n")
    if name == "verbose":
        assert folder.host("b").application("one").log.stat().st_size == 64 << 20
    if name == "streamed":
        log = folder.host("b").application("reader").log.read_text()
        assert f"WT GOT 0 {zlib.crc32(b'message 0 ')}\n" in log
    assert leftovers() == []


def _assert_few_rights(log: str) -> None:
    # The order of stdout and stderr lines is not defined.
    counted = [line for line in log.splitlines() if line.startswith("count")]
    assert counted == ["count 1", "count 2", "count 3"]
    assert "CapEff:\t0000000000000000" in log
    assert "/dev/shm/windtunnel/aeron\n/scenario\n" in log
    assert "no right to configure the network" in log
    assert "no right to write in the scenario" in log
    assert "no engine" in log
    assert "no runs" in log
    assert "python" not in log
