"""The lab of network namespaces: its structure, its isolation, and its removal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.orchestrate.teardown import clean, state
from windtunnel.harness.topology import model

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
REPOSITORY = Path(__file__).resolve().parents[2]
WAIT_S = 20.0

CONNECTS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1.0)
s.connect((sys.argv[1], 9))
try:
    s.send(b"x")
    s.recv(1)
except ConnectionRefusedError:
    print("reached")
except OSError as error:
    print("silence", error)
"""


# Ends once its background process has a separate session: processes that are still in our group
# when the leader ends are killed.
DETACHES = (
    'setsid sh -c "echo \\$\\$ > $0; exec sleep 300" & until [ -s "$0" ]; do sleep 0.01; done'
)


def make_lab(folder: Path, run_id: str, **options) -> NetnsLab:
    topology = model.build(f"{folder} {run_id}", ["a", "b"], ("a", "b"), **options)
    return NetnsLab(topology, folder / ".lab")


@pytest.fixture
def lab(tmp_path):
    created = make_lab(tmp_path, "run")
    created.up()
    yield created
    created.down()


def wait_for(condition, what: str = "") -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


def output_of(lab: NetnsLab, place: str, tmp_path: Path, *argv: str) -> str:
    """Run a command in a place and return its output."""
    process = lab.spawn(place, argv, log=tmp_path / f"{time.monotonic_ns()}.log")
    assert process.wait(WAIT_S) == 0, process.tail(20)
    return process.log.read_text()


def resources(lab: NetnsLab) -> list[str]:
    """Return all resources of a lab on the machine."""
    names = [name for name in lab.state.namespaces if (clean.NAMESPACE_FOLDER / name).exists()]
    folder = lab.state.memory_directory()
    record = lab._labs / f"{lab.state.token}.json"
    return names + [str(path) for path in (folder, record) if path.exists()]


def test_hosts_reach_the_middlebox_but_not_each_other(lab, tmp_path):
    for host in ("a", "b"):
        gateway = str(lab.topology.host(host).gateway)
        assert (
            output_of(lab, host, tmp_path, sys.executable, "-c", CONNECTS, gateway) == "reached\n"
        )
    output = output_of(lab, "a", tmp_path, sys.executable, "-c", CONNECTS, lab.address("b"))
    assert output.startswith("silence")


def test_the_kernel_would_forward_if_it_were_configured_to(lab, tmp_path):
    output_of(lab, MID, tmp_path, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    output = output_of(lab, "a", tmp_path, sys.executable, "-c", CONNECTS, lab.address("b"))
    assert output == "reached\n"


def test_the_middlebox_does_not_forward_and_ipv6_is_disabled(lab):
    assert lab.read(MID, "/proc/sys/net/ipv4/ip_forward") == b"0\n"
    for place in ("a", "b", MID):
        assert lab.read(place, "/proc/sys/net/ipv6/conf/all/disable_ipv6") == b"1\n"
        assert lab.read(place, "/proc/net/if_inet6") == b""


def test_the_loopback_interface_is_up_in_every_place(lab, tmp_path):
    for place in ("a", "b", MID):
        assert "UP,LOWER_UP" in output_of(lab, place, tmp_path, "ip", "link", "show", "lo")


def test_links_have_no_segmentation_offload_and_the_configured_mtu(tmp_path):
    lab = make_lab(tmp_path, "jumbo", datagram_length_max=8192)
    lab.up()
    try:
        for place, interface in (("a", "eth0"), ("b", "eth0"), (MID, "to-a"), (MID, "to-b")):
            text = output_of(lab, place, tmp_path, "ip", "-d", "link", "show", interface)
            assert "mtu 8220 " in text
            assert "gso_max_segs 1 " in text
    finally:
        lab.down()


def test_each_host_has_a_directory_of_its_own_in_memory(lab):
    folders = {Path(lab.shared_memory(host)) for host in ("a", "b")}
    assert len(folders) == 2
    assert all(folder.is_dir() and folder.is_relative_to("/dev/shm") for folder in folders)


def test_variables_of_aeron_do_not_reach_a_process(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("AERON_MTU_LENGTH", "4096")
    text = output_of(lab, "a", tmp_path, "env")
    assert "AERON_" not in text
    assert "PYTHONUNBUFFERED=1" in text


def test_down_leaves_nothing_not_even_a_detached_process(lab, tmp_path):
    reported = tmp_path / "detached.pid"
    output_of(lab, "b", tmp_path, "sh", "-c", DETACHES, str(reported))
    pid = int(reported.read_text())
    assert os.getsid(pid) == pid
    assert resources(lab)
    lab.down()
    assert resources(lab) == []
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    lab.down()


def test_a_lab_that_cannot_be_built_is_reported_and_leaves_nothing(tmp_path):
    lab = make_lab(tmp_path, "twice")
    name = lab.state.namespaces[-1]
    subprocess.run(["ip", "netns", "add", name], check=True)
    with pytest.raises(LabError, match="File exists"):
        lab.up()
    assert resources(lab) == []


def test_two_labs_can_be_up_at_the_same_time(tmp_path):
    first, second = make_lab(tmp_path, "first"), make_lab(tmp_path, "second")
    first.up()
    second.up()
    first.down()
    assert resources(first) == []
    gateway = str(second.topology.host("a").gateway)
    assert output_of(second, "a", tmp_path, sys.executable, "-c", CONNECTS, gateway) == "reached\n"
    second.down()
    assert resources(second) == []


HARNESS = """
import sys, time
from pathlib import Path
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.topology import model
folder = Path(sys.argv[1])
lab = NetnsLab(model.build(f"{folder} killed", ["a", "b"], ("a", "b")), folder / ".lab")
lab.up()
lab.spawn("a", ["sleep", "300"], log=folder / "sleep.log")
detaches = ["sh", "-c", sys.argv[2], str(folder / "detached.pid")]
assert lab.spawn("b", detaches, log=folder / "detached.log").wait(20) == 0
print("up", flush=True)
time.sleep(300)
"""


@pytest.fixture
def harness(tmp_path):
    """Start a harness in a separate process with a lab that is up."""
    argv = [sys.executable, "-c", HARNESS, str(tmp_path), DETACHES]
    process = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def processes_of(lab: NetnsLab) -> list[int]:
    return [pid for name in lab.state.namespaces for pid in clean.processes_in(name)]


def test_a_harness_that_is_killed_leaves_nothing(harness, tmp_path):
    lab = make_lab(tmp_path, "killed")
    # The sleeping process may not have entered its namespace yet.
    wait_for(lambda: len(processes_of(lab)) == 2)
    inside = processes_of(lab)
    assert resources(lab)
    harness.send_signal(signal.SIGKILL)
    wait_for(lambda: resources(lab) == [], f"left: {resources(lab)}")
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))


def watchdog_of(process: subprocess.Popen) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        if b"cleanup_watchdog" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no cleanup watchdog")


def test_cleaning_removes_what_a_harness_and_its_watchdog_left(harness, tmp_path):
    lab = make_lab(tmp_path, "killed")
    clean.remove_leftovers(tmp_path)
    assert len(resources(lab)) == 5, "resources of a running harness were removed"
    os.kill(watchdog_of(harness), signal.SIGKILL)
    harness.send_signal(signal.SIGKILL)
    harness.wait(WAIT_S)
    assert resources(lab)
    removed = clean.remove_leftovers(tmp_path)
    assert {f"namespace {name}" for name in lab.state.namespaces} <= set(removed)
    assert resources(lab) == []


ORDINARY_USER = """
import os, sys
from pathlib import Path
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.topology import model
print("had none" if privileges.missing() else "has all", flush=True)
privileges.acquire()
folder = Path(sys.argv[1])
lab = NetnsLab(model.build("ordinary", ["a", "b"], ("a", "b")), folder / ".lab")
lab.up()
sniffer = ["tcpdump", "-i", "eth0", "-Z", "root", "-w", str(folder / "a.pcap"), "udp"]
capture = lab.spawn("a", sniffer, log=folder / "capture.log")
while "listening" not in capture.tail():
    assert capture.poll() is None, capture.tail()
print(os.getuid(), lab.read("mid", "/proc/sys/net/ipv4/ip_forward").decode())
lab.down()
"""


@pytest.mark.timeout(300)
def test_an_ordinary_user_gets_a_lab_and_a_capture_in_a_user_namespace(tmp_path):
    ordinary = ["unshare", "--user", "--map-user=1234", "--map-group=1234", "--"]
    if subprocess.run([*ordinary, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this kernel allows no user namespaces")
    argv = [*ordinary, sys.executable, "-c", ORDINARY_USER, str(tmp_path)]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=250)
    assert done.stdout == "had none\nhas all\n1234 0\n\n", done.stderr


def test_the_record_is_written_before_any_resource_is_created(tmp_path, monkeypatch):
    lab = make_lab(tmp_path, "record")
    seen = []

    def refuse(argv, **_):
        seen.append(state.load(tmp_path / ".lab" / f"{lab.state.token}.json"))
        raise LabError("no more")

    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.namespaces.process.run", refuse)
    with pytest.raises(LabError, match="no more"):
        lab.up()
    assert seen == [lab.state]
    assert resources(lab) == []
