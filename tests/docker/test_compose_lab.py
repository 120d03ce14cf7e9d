"""The container lab on a real engine: its places, its link, and its removal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import containers
from windtunnel.harness.orchestrate.labs.containers import ComposeLab
from windtunnel.harness.topology import model

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

PORT = 24325
WAIT_S = 150.0
JUMBO_BYTES = 8192

RECEIVER = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {PORT}))
print("ready", flush=True)
while True:
    data, (address, _) = s.recvfrom(65536)
    sys.stdout.write(f"{{len(data)}} {{address}}\\n")
    sys.stdout.flush()
"""

SENDER = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(bytes(int(sys.argv[2])), (sys.argv[1], {PORT}))
"""

# Forwards IPv4 packets from one interface to the host with that address behind the other.
CARRIER = """
import socket, sys
left, right, left_host, right_host = sys.argv[1:]
def open_on(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0800)
    s.bind((name, 0x0800))
    return s
def mac_of(interface, host):
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.sendto(b"", (host, 9))
    while True:
        for line in open("/proc/net/arp").read().splitlines()[1:]:
            fields = line.split()
            if fields[0] == host and fields[3] != "00:00:00:00:00:00":
                return bytes.fromhex(fields[3].replace(":", ""))
source, out = open_on(left), open_on(right)
target = mac_of(right, right_host)
print("ready", flush=True)
while True:
    data, (_, _, kind, *_) = source.recvfrom(65536)
    if kind == socket.PACKET_HOST and data[9] == 17 and socket.inet_ntoa(data[16:20]) == right_host:
        fixed = data[:26] + b"\\0\\0" + data[28:]  # no UDP checksum: the sender's was a partial one
        out.sendto(fixed, (right, 0x0800, 0, 0, target))
"""


def until(condition, what: str):
    deadline_s = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"timed out: {what}"
        time.sleep(0.02)
    return value


def created(token: str) -> list[str]:
    """Return the containers and networks of one lab in the engine."""
    label = f"label=windtunnel.token={token}"
    found = []
    for command in (["ps", "-aq"], ["network", "ls", "-q"]):
        argv = ["docker", *command, "--filter", label]
        found += subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return found


@pytest.fixture
def runs(image, tmp_path):
    return tmp_path / "runs"


def make_lab(runs: Path, **topology) -> ComposeLab:
    run_id = f"suite/run-{os.getpid()}-{time.monotonic_ns()}"
    return ComposeLab(model.build(run_id, ["a", "b"], ("a", "b"), **topology), runs / ".lab", runs)


@pytest.fixture
def lab(runs):
    lab = make_lab(runs, datagram_length_max=JUMBO_BYTES)
    lab.up()
    yield lab
    lab.down()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def start(lab, runs, place: str, name: str, *argv: str):
    log = runs / "suite" / "run" / f"{name}.log"
    return lab.spawn(place, [lab.python(place), *argv], log=log), log


def test_only_datagrams_that_the_relay_forwards_reach_the_other_host(lab, runs):
    receiver, received = start(lab, runs, "b", "receiver", "-c", RECEIVER)
    until(lambda: "ready" in lines(received), "the receiver")
    send = ["-c", SENDER, lab.address("b")]
    sender, _ = start(lab, runs, "a", "sender", *send, "100")
    assert sender.wait(WAIT_S) == 0
    left, right = lab.mid_interfaces()
    carrier, log = start(
        lab, runs, MID, "carrier", "-c", CARRIER, left, right, lab.address("a"), lab.address("b")
    )
    until(lambda: "ready" in lines(log), "the carrier")
    for length in ("200", str(JUMBO_BYTES)):
        sender, _ = start(lab, runs, "a", "sender", *send, length)
        assert sender.wait(WAIT_S) == 0
    until(lambda: len(lines(received)) >= 3, "the datagrams")
    source = lab.address("a")
    assert lines(received) == ["ready", f"200 {source}", f"{JUMBO_BYTES} {source}"]
    assert receiver.poll() is None
    assert carrier.poll() is None


def test_each_host_has_memory_of_its_own(lab):
    for host in "ab":
        folder = lab.shared_memory(host)
        assert lab._links[host].run(["ls", folder]) == b""
        lab._links[host].run(["touch", f"{folder}/{host}"])
    assert lab._links["a"].run(["ls", lab.shared_memory("a")]) == b"a\n"


def test_code_cannot_be_changed_from_a_container(lab):
    with pytest.raises(LabError, match="Read-only file system"):
        lab._links["a"].run(["touch", "/windtunnel/harness/changed"])


def test_the_tools_of_a_run_are_installed(lab):
    assert b"tcpdump" in lab._links["a"].run(["tcpdump", "--version"])
    lab._links[MID].run([lab.python(MID), "-c", "import numba, scapy, pydantic, yaml"])


def test_down_removes_the_lab_and_ends_its_processes(runs):
    lab = make_lab(runs)
    lab.up()
    assert len(created(lab.topology.token)) == 5
    start(lab, runs, "a", "sleeper", "-c", "import time; time.sleep(600)")
    lab.down()
    assert created(lab.topology.token) == []
    assert list((runs / ".lab").iterdir()) == []
    lab.down()


KILLED = """
import os, signal, sys, time
from pathlib import Path
from windtunnel.harness.orchestrate.labs.containers import ComposeLab
from windtunnel.harness.topology import model
runs = Path(sys.argv[1])
lab = ComposeLab(model.build(sys.argv[2], ["a", "b"], ("a", "b")), runs / ".lab", runs)
lab.up()
print(lab.topology.token, flush=True)
time.sleep(600)
"""


def test_a_killed_harness_leaves_nothing(runs):
    harness = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(runs), f"suite/killed-{os.getpid()}"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    with harness:
        token = harness.stdout.readline().strip()
        assert len(created(token)) == 5
        # The harness is running, so the cleanup does not remove its lab.
        containers.remove_leftovers()
        assert len(created(token)) == 5
        harness.send_signal(signal.SIGKILL)
    until(lambda: not created(token), "the cleanup watchdog")
    until(lambda: not list((runs / ".lab").iterdir()), "the end of the records")


def test_leftovers_of_ended_processes_are_found_by_their_labels(image):
    owner = '{"token": "dead0000", "run_id": "x", "kind": "compose", "pid": 1, "started_ticks": 1}'
    subprocess.run(
        [
            *("docker", "create", "--label", "windtunnel.token=dead0000"),
            *("--label", f"windtunnel.owner={owner}", image, "true"),
        ],
        check=True,
        capture_output=True,
    )
    assert len(created("dead0000")) == 1
    assert len(containers.remove_leftovers()) == 1
    assert created("dead0000") == []
