"""The relay runs as a process between two real network namespaces."""

import os
import socket
import struct
import sys
import time

import pytest

from tests.naive.middlebox import NaiveMiddlebox
from tests.unit.harness.middlebox.synthetic_case import (
    case,
    data,
    fault,
    setup,
    status_message,
    with_more,
)
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.__main__ import EXIT_HARNESS
from windtunnel.harness.middlebox.relay.port import PortError, open_port
from windtunnel.harness.orchestrate.lab import MID
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.scenario.resolved.fault_case import ForgedCase, ReachedCase, WhenCase
from windtunnel.harness.topology.model import build

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="network namespaces need root or CAP_NET_ADMIN"
    ),
]

HOLD_NS = 5_000_000
PORT = 24325
SOURCE_PORT = 40404

SEND = """
import socket, struct, sys, time
there, port, here, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
raw = open(path, "rb").read()
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.bind(("0.0.0.0", here))
at = 0
while at < len(raw):
    (length,) = struct.unpack_from("<i", raw, at)
    out.sendto(raw[at + 4 : at + 4 + length], (there, port))
    at += 4 + length
    time.sleep(0.0002)
"""
RECEIVE = """
import socket, struct, sys, time
port, path = int(sys.argv[1]), sys.argv[2]
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SO_RCVBUFFORCE = 33
try:
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
except PermissionError:
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
receiver.bind(("0.0.0.0", port))
print("ready", flush=True)
with open(path, "wb", buffering=0) as file:
    while True:
        datagram = receiver.recv(65536)
        file.write(struct.pack("<qi", time.time_ns(), len(datagram)) + datagram)
"""


def packed(datagrams):
    return b"".join(struct.pack("<i", len(each)) + each for each in datagrams)


def unpacked(path):
    raw, at, found = path.read_bytes(), 0, []
    while at + 12 <= len(raw):
        time_ns, length = struct.unpack_from("<qi", raw, at)
        found.append((time_ns, raw[at + 12 : at + 12 + length]))
        at += 12 + length
    return found


class Bench:
    """A lab of two hosts with a relay between them."""

    SEND = SEND

    def __init__(self, folder, *faults):
        self.prepare(folder, build(f"relay-test-{os.getpid()}", ["a", "b"], ("a", "b")))
        hosts = (self.lab.address("a"), self.lab.address("b"))
        self.case = case(*faults, hosts=hosts)
        self.case.write(self.run_dir.case)

    def prepare(self, folder, topology):
        self.folder = folder
        self.run_dir = RunDir(folder)
        self.run_dir.make()
        self.lab = NetnsLab(topology, folder / "labs")
        self.lab.up()

    @staticmethod
    def packed(datagrams):
        return packed(datagrams)

    def relay(self, left=None, right=None):
        ours = self.lab.mid_interfaces()
        chosen = (left or ours[0], right or ours[1]) if left or right else ours
        argv = ["-m", "windtunnel.harness.middlebox", "--case", str(self.run_dir.case)]
        argv += [word for each in chosen for word in ("--interface", each)]
        argv += ["--out", str(self.folder)]
        return self.spawn(MID, "relay", *argv)

    def spawn(self, place, name, *argv):
        return self.lab.spawn(place, [sys.executable, *argv], log=self.folder / f"{name}.log")

    def receive(self, place, port):
        path = self.folder / f"{place}.received"
        started = self.spawn(place, f"{place}-receive", "-c", RECEIVE, str(port), str(path))
        self.await_ready(started, f"{place}-receive")
        return path

    def send(self, place, there, port, here, datagrams):
        path = self.folder / f"{place}.send"
        path.write_bytes(packed(datagrams))
        address = self.lab.address(there)
        argv = ["-c", SEND, address, str(port), str(here), str(path)]
        assert self.spawn(place, f"{place}-send", *argv).wait(30) == 0

    def end(self, relay, received):
        """Stop the relay after all datagrams have passed, and wait until hosts have recorded all
        that it sent.

        `received`: the file in which each host records arriving datagrams.
        """
        time.sleep(0.3)
        relay.terminate()
        assert relay.wait(60) == 0, relay.tail()
        links = Ledger.read(self.run_dir.ledger).links.items()
        deadline = time.monotonic() + 60
        for host, path in received.items():
            sent = [
                each.datagrams_out + each.other_out
                for name, each in links
                if name.endswith(f">{host}")
            ]
            while len(unpacked(path)) < sum(sent):
                assert time.monotonic() < deadline, f"{host} has received fewer than {sum(sent)}"
                time.sleep(0.02)

    def await_ready(self, started, name):
        log = self.folder / f"{name}.log"
        deadline = time.monotonic() + 100
        while not (log.exists() and "ready" in log.read_text()):
            assert started.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{name} is not ready"
            time.sleep(0.02)


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(*faults):
        made.append(Bench(tmp_path, *faults))
        return made[-1]

    yield make
    for each in made:
        each.lab.down()


def forward_traffic():
    """Make numbered frames in datagrams of one to twenty frames."""
    datagrams, at = [setup()], 0
    for number in range(600):
        count = 1 + number * 7 % 20
        datagrams.append(b"".join(data(at + 64 * index, 60) for index in range(count)))
        at += 64 * count
    return datagrams


def test_forwards_frames_and_applies_the_rules(bench):
    made = bench(
        fault("drop", 0.1),
        fault("duplicate", 0.1),
        fault("hold", 0.1, hold_ns=HOLD_NS),
        fault("drop", 0.5, ("SM",), ("b->a",)),
    )
    relay = made.relay()
    made.await_ready(relay, "relay")
    at_b, at_a = made.receive("b", PORT), made.receive("a", SOURCE_PORT)
    forward, back = forward_traffic(), [status_message(offset=32 * n) for n in range(200)]
    made.send("a", "b", PORT, SOURCE_PORT + 1, forward)
    made.send("b", "a", SOURCE_PORT, PORT + 1, back)
    made.end(relay, {"a": at_a, "b": at_b})

    twin = NaiveMiddlebox(made.case)
    prompt = []
    for datagram in forward:
        twin.offer(b"", datagram, 0, 0)
        prompt += [frames for _, _, frames in twin.sent]
        twin.sent.clear()
    twin.release(HOLD_NS)
    held = [frames for _, _, frames in twin.sent]
    received = unpacked(at_b)
    assert sorted(frames for _, frames in received) == sorted(prompt + held)
    held_frames = set(held)
    assert [frames for _, frames in received if frames not in held_frames] == [
        frames for frames in prompt if frames not in held_frames
    ]
    assert len(held_frames) > 400

    decisions = read_decisions(made.run_dir.decisions)
    ours = decisions[decisions["link"] == 0]
    fields = ("rule", "action", "position", "attempt", "term_offset", "frame_length")
    assert ours[list(fields)].tolist() == [
        tuple(entry[name] for name in fields) for entry in twin.decisions
    ]
    chosen_ns = {
        (int(entry["term_id"]), int(entry["term_offset"])): int(entry["time_ns"])
        for entry in ours[ours["action"] == 3]
    }
    for time_ns, frames in received:
        if frames in held_frames:
            _, _, _, _, offset, _, _, term = struct.unpack_from("<iBBHiiii", frames)
            assert time_ns - chosen_ns[term, offset] >= HOLD_NS

    for datagram in back:
        twin.offer(b"", datagram, 1, 0)
    passed = [frames for link, _, frames in twin.sent if link == 1]
    assert [frames for _, frames in unpacked(at_a)] == passed
    assert 60 < len(passed) < 140
    _check_ledger(made, len(forward), len(received))


def _check_ledger(made, sent, received):
    ledger = Ledger.read(made.run_dir.ledger)
    for link in ledger.links.values():
        assert link.unaccounted == 0
        assert (link.datagrams_held_at_end, link.kernel_drops, link.send_failures) == (0, 0, 0)
        assert all(frames.unaccounted == 0 for frames in link.frames.values())
    forward = ledger.links["a->b"]
    assert (forward.datagrams_in, forward.datagrams_out) == (sent, received)
    assert set(forward.lag_ns) == {"p50", "p99", "max"}


def test_damaged_and_forged_frames_arrive(bench):
    made = bench(
        with_more(fault("corrupt", 0.2), field="payload"),
        with_more(fault("corrupt", 0.2), field="version"),
        with_more(fault("truncate", 0.2), cut_to_bytes=20),
        with_more(fault("inject", 0.2), forged=(ForgedCase(type="DATA", payload_length=99),)),
    )
    relay = made.relay()
    made.await_ready(relay, "relay")
    path = made.receive("b", PORT)
    forward = forward_traffic()
    made.send("a", "b", PORT, SOURCE_PORT + 1, forward)
    made.end(relay, {"b": path})
    twin = NaiveMiddlebox(made.case)
    for datagram in forward:
        twin.offer(b"", datagram, 0, 0)
    assert [frames for _, frames in unpacked(path)] == [frames for _, _, frames in twin.sent]
    _check_ledger(made, len(forward), len(twin.sent))


ECHO = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    datagram, source = server.recvfrom(65536)
    print("from", source[1], flush=True)
    server.sendto(datagram, source)
"""
REQUEST = """
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.bind(("", int(sys.argv[3])))
client.settimeout(50)
for message in map(bytes.fromhex, sys.argv[4:]):
    client.sendto(message, (sys.argv[1], int(sys.argv[2])))
    assert client.recv(65536) == message
"""


def test_replies_to_a_rewritten_source_port_arrive(bench):
    later = WhenCase(reached=ReachedCase(ordinal=0, position=128))
    made = bench(with_more(fault("readdress"), source_port=40_001, when=later))
    relay = made.relay()
    made.await_ready(relay, "relay")
    made.await_ready(made.spawn("b", "echo", "-c", ECHO, str(PORT)), "echo")
    datagrams = [each.hex() for each in (setup(), *(data(64 * n) for n in range(5)))]
    address = made.lab.address("b")
    client = made.spawn(
        "a", "client", "-c", REQUEST, address, str(PORT), str(SOURCE_PORT), *datagrams
    )
    assert client.wait(60) == 0, client.tail()
    ports = (made.folder / "echo.log").read_text().split()[2::2]
    assert ports == [str(SOURCE_PORT)] * 3 + ["40001"] * 3


def test_datagrams_that_are_not_aeron_are_forwarded_unchanged(bench):
    made = bench(fault("drop"))
    relay = made.relay()
    made.await_ready(relay, "relay")
    path = made.receive("b", 9999)
    datagrams = [data(64 * n) for n in range(20)]
    made.send("a", "b", 9999, 9998, [setup(), *datagrams])
    made.end(relay, {"b": path})
    assert [frames for _, frames in unpacked(path)] == [setup(), *datagrams]
    link = Ledger.read(made.run_dir.ledger).links["a->b"]
    assert link.datagrams_in == 0
    assert link.other_out == 21


def test_a_missing_interface_is_refused(bench):
    relay = bench().relay(left="nowhere0")
    assert relay.wait(60) == EXIT_HARNESS
    assert "interface nowhere0: No such device" in relay.tail()


def test_a_host_that_does_not_answer_is_refused(bench):
    made = bench()
    left, right = made.lab.mid_interfaces()
    relay = made.relay(left=right, right=left)
    assert relay.wait(100) == EXIT_HARNESS
    assert f"{made.lab.address('a')} did not answer ARP" in relay.tail()


def test_missing_privileges_are_reported(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(PortError, match="need CAP_NET_RAW"):
        open_port("lo")
