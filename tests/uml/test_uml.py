"""A real kernel in a process: its files, signals and exit code, and a whole run inside."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soundness import assert_sound
from windtunnel.harness.artifact.middlebox.netem import NetemAccount
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import engine
from windtunnel.harness.uml import kernel

REPOSITORY = Path(__file__).resolve().parents[2]
try:
    FOUND = kernel.find()
    MISSING = ""
except kernel.NoKernel as error:
    FOUND, MISSING = None, str(error)

pytestmark = [
    pytest.mark.uml,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(MISSING), reason=MISSING or "it is there"),
]
LIMIT_S = 290.0

INSIDE = """
import sys
from windtunnel.harness.uml import boot, kernel
boot.BOOT_TIMEOUT_S = 250.0
code = boot.run(kernel.find(), boot.Command(sys.argv[1:], 280.0))
print("code", code)
"""


SCENARIO = """\
schema: windtunnel/1
name: inside
about: Made up; small enough for a slow kernel.
seeds: {root: 1}
network:
  hosts: [a, b]
  link:
    between: [a, b]
    backend: netem
    impairments:
      a->b: {loss: {good_to_bad: 4%, bad_to_good: 40%}, delay: {mean: 1ms}}
      b->a: {delay: {mean: 1ms}}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=256k"
    receive: "aeron:udp?endpoint=${b}:24325|nak-delay=10us"
    content: {bytes: 512KiB, message: {from: 1B, to: 1KiB}}
expect:
  - delivered_once
  - positions_covered
budget: {wall: 400s}
"""


STAR = """\
schema: windtunnel/1
name: star
about: Made up; small enough for a slow kernel.
seeds: {root: 1}
network:
  hosts: [pub, one, two]
  links:
    - {between: [pub, one], backend: netem, impairments: {pub->one: {loss: 4%}}}
    - {between: [two, pub], backend: netem, impairments: {pub->two: {delay: 3ms, duplicate: 10%}}}
traffic:
  - id: ticks
    stream: 1001
    from: pub
    to: [one, two]
    publication: exclusive
    channel: "aeron:udp?control-mode=dynamic|control=${pub}:24324|fc=min,g:/2|term-length=256k"
    receive: "aeron:udp?endpoint=${self}:24325|control=${pub}:24324|control-mode=dynamic|\\
      nak-delay=10us"
    content: {bytes: 256KiB, message: {from: 1B, to: 1KiB}}
expect:
  - delivered_once
  - positions_covered
budget: {wall: 400s}
"""


def start(*argv):
    return subprocess.Popen(
        [sys.executable, "-c", INSIDE, *argv],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kernels(of):
    """Return the processes of a starter's kernel, zombies excluded."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"linux.uml" in command and str(of).encode() in command:
            found.append(int(entry.name))
    return found


def test_another_kernel_with_netem_runs_the_command():
    script = (
        "uname -r; ip link add va type veth peer name vb; ip link set va up; "
        "tc qdisc add dev va root netem loss random 2% limit 77; tc -j qdisc show dev va; exit 5"
    )
    out, err = start("sh", "-c", script).communicate(timeout=LIMIT_S)
    assert FOUND is not None
    assert out.splitlines()[0] == FOUND.release
    assert '"loss-random":{"loss":0.02' in out
    assert out.splitlines()[-1] == "code 5"
    assert err == ""


@pytest.mark.full
def test_files_are_shared_and_their_bytes_arrive(tmp_path):
    target = tmp_path / "bytes"
    script = f"head -c 300000 /dev/zero > {target}; cat {target} | wc -c"
    out, _ = start("sh", "-c", script).communicate(timeout=LIMIT_S)
    assert out.split() == ["300000", "code", "0"]
    assert target.read_bytes() == bytes(300_000)


@pytest.mark.full
def test_an_interrupt_reaches_the_command():
    script = "trap 'echo interrupted; exit 9' INT; echo waiting; sleep 600 & wait"
    running = start("sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=LIMIT_S)
    assert out.split() == ["interrupted", "code", "9"]


@pytest.mark.full
def test_the_kernel_ends_with_its_starter(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    running = start("sh", "-c", "echo waiting; sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    assert kernels(tmp_path)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=LIMIT_S)
    deadline_s = time.monotonic() + 100
    while kernels(tmp_path):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def needs_an_engine():
    try:
        engine.connect().close()
    except LabError as error:
        pytest.skip(str(error))


@pytest.mark.timeout(2400)
@pytest.mark.full
@pytest.mark.parametrize(
    "fidelity", ["netns", pytest.param("compose", marks=pytest.mark.docker, id="compose")]
)
def test_a_scenario_uses_the_netem_of_the_kernel(tmp_path, fidelity):
    if fidelity == "compose":
        needs_an_engine()
    folder, account = inside(tmp_path, SCENARIO, fidelity)
    assert account.links["a->b"].dropped > 0
    assert account.links["b->a"].options["delay"]["delay"] == 0.001
    assert "--kernel uml" in folder.repro.read_text()


@pytest.mark.timeout(2400)
@pytest.mark.full
def test_several_links_have_a_netem_each(tmp_path):
    _, account = inside(tmp_path, STAR, "netns")
    first, second = account.links["pub->one"], account.links["pub->two"]
    assert (first.interface, second.interface) == ("to-one", "to-two")
    assert first.dropped > 0
    assert "delay" not in first.options
    assert second.dropped == 0
    assert second.options["delay"]["delay"] == 0.003


def inside(tmp_path, scenario, fidelity):
    """Run a scenario in User Mode Linux. Returns its folder, and what netem did on each link."""
    file = tmp_path / "inside.yaml"
    file.write_text(scenario)
    options = ["--kernel", "uml", "--json", "--fidelity", fidelity, "--out", str(tmp_path / "runs")]
    done = subprocess.run(
        [sys.executable, "-m", "windtunnel.harness", "run", str(file), *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=2380,
        check=False,
    )
    assert done.stdout, done.stderr
    run, suite = (json.loads(line) for line in done.stdout.splitlines())
    folder = RunDir(Path(suite["runs"][0]))
    verdict = assert_sound(folder.path)
    assert (run["outcome"], done.returncode) == (verdict.outcome, verdict.exit_code)
    account = NetemAccount.read(folder.netem)
    assert account is not None
    gates = json.loads(folder.verdict.read_text())["gates"]
    impairments = [gate for gate in gates if gate["name"] == "impairments_applied"]
    assert {gate["about"] for gate in impairments} == {*account.links}
    assert {gate["outcome"] for gate in impairments} == {"PASS"}
    return folder, account
