"""A program controls the links, programs and drivers of a lab that is up."""

import asyncio
import json
import re
import sys
import time
from pathlib import Path

import pytest

from tests.naive.observed_figures import figures
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import main
from windtunnel.harness.lab import LabError, open_lab
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.scenario.loader import load_scenario

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
SERVICE = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind((sys.argv[1], 5000))
print("ready", flush=True)
while True:
    data, peer = link.recvfrom(2000)
    link.sendto(data, peer)
"""
PROBE = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.settimeout(float(sys.argv[3]))
arrived = 0
for count in range(int(sys.argv[2])):
    link.sendto(b"%d" % count, (sys.argv[1], 5000))
    try:
        arrived += link.recv(2000) != b""
    except TimeoutError:
        pass
print("arrived", arrived, flush=True)
"""
SENDER = """
import os, signal, sys, time
from windtunnel.driver.client import Aeron
running = True
def stop(number, frame):
    global running
    running = False
signal.signal(signal.SIGTERM, stop)
with Aeron(os.environ["AERON_DIR"]) as aeron:
    publication = aeron.add_exclusive_publication(os.environ["CHANNEL"], 1001)
    print("publication ready", flush=True)
    sent = 0
    while running:
        # Frames of 512 bytes fill a term without padding. Padding that passes the window when a
        # partition begins would stop the stream until its image times out, see
        # docs/findings/pad-beyond-the-window.md.
        sent += publication.offer(b"x" * 480) > 0
        time.sleep(0.002)
    end = publication.position
    print("position", end, flush=True)
    time.sleep(0.5)
"""
READER = """
import os, signal, time
from windtunnel.driver.client import Aeron
running = True
def stop(number, frame):
    global running
    running = False
signal.signal(signal.SIGTERM, stop)
with Aeron(os.environ["AERON_DIR"]) as aeron:
    subscription = aeron.add_subscription(os.environ["CHANNEL"], 1001)
    print("subscription ready", flush=True)
    while running:
        if not subscription.poll(lambda payload, header: None):
            time.sleep(0.001)
"""
SHORT_S, LONG_S = 0.3, 15.0
"""How long a program waits for responses that must not arrive, and for those that must."""
CHANNEL = "aeron:udp?endpoint=${b}:24325|term-length=64k"
OBSERVE = [{"id": "feed", "stream": 1001, "channel": CHANNEL, "from": "a", "to": "b"}]


def python(text: str, *arguments: str) -> list[str]:
    return ["python", "-c", text, *arguments]


def changes(run_dir: Path) -> list[dict]:
    return json.loads(RunDir(run_dir).link_changes.read_text())["changes"]


async def arrived(lab, count: int, timeout_s: float = SHORT_S) -> int:
    """Return how many requests over the link receive a response, each within a timeout."""
    probe = await lab.start("a", python(PROBE, "${b}", str(count), str(timeout_s)))
    await probe.exited(within=60)
    return int(probe.log_text().split()[-1])


async def test_links_change_while_programs_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began_ns = time.time_ns()
    async with open_lab(delay="5ms", out=tmp_path, name="made/links") as lab:
        assert lab.address("a") != lab.address("b")
        link = lab.link("a", "b")
        await lab.start("b", python(SERVICE, "${b}"), ready="ready", name="service")
        assert await arrived(lab, 5, LONG_S) == 5
        async with link.partitioned():
            assert await arrived(lab, 3) == 0
        assert await arrived(lab, 5, LONG_S) == 5
        await link.partition(to="b")
        assert await arrived(lab, 2) == 0
        await link.heal()
        await link.impair(loss="100%", to="a")
        status = await lab.status()
        assert [each["impairments"] for each in status["links"]] == [
            {"delay": "5ms"},
            {"delay": "5ms", "loss": "100%"},
        ]
        assert await arrived(lab, 2) == 0
        await link.impair(loss=None)
        assert await arrived(lab, 5, LONG_S) == 5
    lab.verdict.assert_passed()
    found = changes(lab.run_dir)
    assert [each["number"] for each in found] == [1, 1, 2, 2, 3, 4, 4, 5, 6, 6]
    assert [each["impairments"]["link"] for each in found[:5]] == ["a->b", "b->a"] * 2 + ["a->b"]
    times_ns = [each["at_ns"] for each in found]
    assert times_ns == sorted(times_ns)
    assert began_ns < times_ns[0] < times_ns[-1] < time.time_ns()
    # The scenario in the run folder is valid, and lists the started programs.
    scenario = load_scenario(RunDir(lab.run_dir).scenario, lambda found: [])
    assert scenario.applications[0].id == "service"
    assert lab.verdict.report is not None
    assert lab.verdict.report.is_file()
    assert main(["judge", str(lab.run_dir)]) == 0
    assert main(["replay", str(lab.run_dir)]) == 64
    assert "if you trust it, add --program" in capsys.readouterr().err


async def test_an_observed_stream_is_judged_through_a_partition(tmp_path: Path) -> None:
    async with open_lab(loss="5%", delay="2ms", observe=OBSERVE, out=tmp_path, seed=3) as lab:
        env = {"CHANNEL": CHANNEL}
        await lab.start("b", python(READER), env=env, ready="subscription ready")
        sender = await lab.start("a", python(SENDER), env=env, ready="publication ready")
        await lab.wait_for_position("b", stream=1001, at_least=100_000, within=90)
        async with lab.link("a-b").partitioned():
            await asyncio.sleep(1)
        sent = await lab.wait_for_counter("a", "snd-pos", stream=1001, at_least=200_000, within=90)
        labels = {each.label.split(":")[0] for each in await lab.counters("a")}
        assert await sender.stop() == 0
        end = int(sender.log_text().split()[-1])
        assert end >= sent
        await lab.wait_for_position("b", stream=1001, at_least=end, within=90)
    lab.verdict.assert_passed()
    assert "Bytes sent" in labels
    assert "observed_data_arrived" in {each["name"] for each in lab.verdict.checks}
    folder = RunDir(lab.run_dir)
    captures = folder.capture("a"), folder.capture("b")
    expected = figures(*captures, 1001, lab.address("a"), lab.address("b"))
    (row,) = lab.verdict.results
    assert expected["lost_frames"] > 0
    assert {name: row[name] for name in expected} == expected


async def test_programs_and_drivers_are_paused_and_killed(tmp_path: Path) -> None:
    async with open_lab(out=tmp_path) as lab:
        await lab.driver("a").kill()
        await lab.driver("a").restart()
        await lab.driver("b").pause()
        await lab.driver("b").resume()
        with pytest.raises(LabError, match="the driver of host b was not paused"):
            await lab.driver("b").resume()
        service = await lab.start("b", python(SERVICE, "${b}"), ready="ready", name="service")
        async with service.paused():
            assert await arrived(lab, 2) == 0
        assert await arrived(lab, 2, LONG_S) >= 1
        await service.kill()
        assert await arrived(lab, 2) == 0
        await service.restart()
        assert await arrived(lab, 10, 2.0) >= 1
        await service.kill()
        with pytest.raises(LabError, match="application service is paused or killed already"):
            await service.pause()
    lab.verdict.assert_passed()
    events = json.loads(RunDir(lab.run_dir).host_events.read_text())["events"]
    assert [each["action"] for each in events] == ["kill", "pause", "pause", "kill", "kill"]


async def test_a_failed_program_fails_the_run_with_the_reason(tmp_path: Path) -> None:
    async with open_lab(out=tmp_path) as lab:
        first = await lab.start("a", ["sh", "-c", "echo broken; exit 7"], name="first")
        with pytest.raises(LabError, match=r"a/first ended with exit code 7, expected 0.*broken"):
            await first.exited()
        second = await lab.start("a", ["sh", "-c", "exit 3"], name="second")
        assert await second.exited(code=3) == 3
        with pytest.raises(LabError, match="cannot be started: there is no program 'absent'"):
            await lab.start("b", ["absent"], ready="x")
        with pytest.raises(LabError, match=r"not ready after 300ms: no line .* contains 'never'"):
            await lab.start("b", ["sleep", "60"], ready="never", within=0.3)
        slow = await lab.start("b", ["sleep", "60"])
        with pytest.raises(
            LabError, match=r"a/application-first ended with .*sleep-2 has not ended after 0.2 s"
        ):
            await slow.exited(within=0.2)
    with pytest.raises(AssertionError, match="FAIL: applications_ran") as caught:
        lab.verdict.assert_passed()
    assert f"run folder: {lab.run_dir}" in str(caught.value)
    failed = {each["about"] for each in lab.verdict.checks if each["outcome"] != "PASS"}
    # A program that was not ready is excused by an overloaded machine. Another was never started.
    assert failed == {"first", "sleep", "absent"}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss": "2"}, "loss: expected a share"),
        ({"link": "a-c"}, "expected two of the hosts a, b"),
        ({"hosts": ["a", "b", "c"]}, "expected two hosts"),
        ({"observe": [{"stream": 1}]}, "this key is missing"),
        ({"queue": 3}, "queue"),
        ({"hosts": ["a", "A!"]}, "hosts"),
    ],
)
async def test_wrong_options_are_refused_before_anything_starts(
    tmp_path: Path, options: dict, text: str
) -> None:
    with pytest.raises(LabError, match=text):
        async with open_lab(out=tmp_path, **options):
            pass
    assert not list(tmp_path.glob("*/*/run.json"))


@pytest.mark.full
async def test_wrong_requests_leave_the_lab_usable(tmp_path: Path) -> None:
    async with open_lab(out=tmp_path) as lab:
        for wrong, text in (
            (lab.start("c", ["true"]), "expected a host of the network, found 'c'"),
            (lab.start("a", ["echo", "${c}"]), "expected a host or directory"),
            (lab.start("a", ["true"], folder="/absent"), "working folder /absent does not exist"),
            (lab.link("a-b").impair(loss="lots"), "loss"),
            (lab.link("a-b").impair(to="x"), "to: expected a or b, found 'x'"),
            (lab.wait_for_counter("a", "no-such", at_least=1, within=0.1), "no such counter"),
        ):
            with pytest.raises(LabError, match=text):
                await wrong
        await (await lab.start("a", ["true"])).exited()
    lab.verdict.assert_passed()


@pytest.mark.full
def test_a_lab_can_be_controlled_without_asyncio(tmp_path: Path) -> None:
    with open_lab(hosts=["x", "y"], link="x-y", loss="1%", out=tmp_path, folder=tmp_path) as lab:
        service = lab.start("y", python(SERVICE, "${y}"), ready="ready", log_never=["Traceback"])
        with lab.link("x", "y").partitioned():
            probe = lab.start("x", python(PROBE, "${y}", "2", str(SHORT_S)))
            assert probe.exited() == 0
            assert "arrived 0" in probe.log_text()
        where = lab.start("x", ["sh", "-c", "pwd; echo $AERON_DIR"])
        where.exited()
        assert where.log_text().split() == [str(tmp_path), str(lab.aeron_dir("x"))]
        assert lab.counters("x")
        service.pause()
        service.resume()
        lab.driver("y").pause()
        lab.driver("y").resume()
        service.stop()
    lab.verdict.assert_passed()


@pytest.mark.full
def test_each_host_may_have_a_driver_and_settings_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("pyaeron")
    env = {"CHANNEL": CHANNEL}
    settings = {"AERON_PRINT_CONFIGURATION": True, "AERON_RCV_INITIAL_WINDOW_LENGTH": "24k"}
    with open_lab(
        driver={"a": "pyaeron"},
        drivers={"b": settings},
        loss="2%",
        observe=OBSERVE,
        out=tmp_path,
        seed=2,
    ) as lab:
        lab.start("b", python(READER), env=env, ready="subscription ready")
        sender = lab.start("a", python(SENDER), env=env, ready="publication ready")
        lab.wait_for_position("b", stream=1001, at_least=50_000, within=90)
        with lab.link("a-b").partitioned():
            time.sleep(2)
        sender.stop()
        end = int(sender.log_text().split()[-1])
        lab.wait_for_position("b", stream=1001, at_least=end, within=90)
    lab.verdict.assert_passed()
    subjects = json.loads(RunDir(lab.run_dir).manifest.read_text())["subjects"]
    assert {host: each["peer"] for host, each in subjects.items()} == {"a": "pyaeron", "b": "ours"}
    printed = RunDir(lab.run_dir).host("b").driver_log.read_text()
    assert re.search(r"initial_window_length=24k +\(environment\)", printed)
    # The run folder has a scenario with the same settings.
    scenario = load_scenario(RunDir(lab.run_dir).scenario, lambda found: [])
    assert scenario.drivers["b"]["AERON_RCV_INITIAL_WINDOW_LENGTH"] == "24k"


def test_a_missing_driver_is_reported(tmp_path: Path) -> None:
    for driver, text in (("theirs", "unknown peer 'theirs'"), ("aeronmd:/absent", "no such file")):
        with pytest.raises(LabError, match=text), open_lab(driver=driver, out=tmp_path):
            pass


@pytest.mark.full
def test_three_hosts_have_their_own_links(tmp_path: Path) -> None:
    links = {"a-b": {"delay": "1ms"}, "b-c": {}}
    with open_lab(hosts=["a", "b", "c"], links=links, out=tmp_path) as lab:
        lab.start("b", python(SERVICE, "${b}"), ready="ready")
        lab.link("b-c").partition()
        first = lab.start("a", python(PROBE, "${b}", "3", str(LONG_S)))
        second = lab.start("c", python(PROBE, "${b}", "3", str(SHORT_S)))
        first.exited(within=60)
        second.exited()
        assert (first.log_text().split()[-1], second.log_text().split()[-1]) == ("3", "0")
        with pytest.raises(LabError, match="there is no link a-c: the links are a-b, b-c"):
            lab.link("a", "c").heal()
    lab.verdict.assert_passed()


@pytest.mark.full
async def test_an_exception_in_the_block_is_raised_with_the_verdict(tmp_path: Path) -> None:
    async def use() -> None:
        async with open_lab(out=tmp_path) as lab:
            await (await lab.start("a", ["true"])).exited()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        await use()
    assert "verdict of the lab: PASS" in caught.value.__notes__[0]


@pytest.mark.full
def test_a_stream_without_a_reader_is_reported(tmp_path: Path) -> None:
    """The reader subscribes to a port where nothing is sent, so nothing is lost, either."""
    observe = [{**OBSERVE[0], "id": "prices"}]
    with open_lab(observe=observe, out=tmp_path) as lab:
        elsewhere = {"CHANNEL": CHANNEL.replace("24325", "24326")}
        lab.start("b", python(READER), env=elsewhere, ready="subscription ready")
        lab.start("a", python(SENDER), env={"CHANNEL": CHANNEL}, ready="publication ready")
        time.sleep(1)
    assert lab.verdict.outcome == "PASS", lab.verdict.reason
    assert "no data of prices: it had no subscriber" in lab.verdict.reason


@pytest.mark.full
def test_a_lab_without_programs_is_inconclusive(tmp_path: Path) -> None:
    with open_lab(out=tmp_path) as lab:
        pass
    assert lab.verdict.outcome == "INCONCLUSIVE"
    assert "no program was started in the lab" in lab.verdict.reason


@pytest.mark.full
async def test_a_program_that_is_killed_leaves_no_lab(tmp_path: Path) -> None:
    program = (
        "import asyncio, os\nfrom windtunnel.harness.lab import open_lab\n"
        "async def main():\n"
        f"    async with open_lab(out={str(tmp_path)!r}) as lab:\n"
        "        print(lab.run_dir, flush=True)\n"
        "        os._exit(9)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 9
    folder = RunDir(Path(output.decode().strip()))
    deadline_s = time.monotonic() + 90
    while not folder.verdict.exists() and time.monotonic() < deadline_s:
        await asyncio.sleep(0.1)
    verdict = json.loads(folder.verdict.read_text())
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "ended without closing it" in verdict["reason"]
