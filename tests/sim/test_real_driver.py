"""The unmodified real C driver on virtual time: whole, repeatable, and judged like any other."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sim.simulated import REPOSITORY, SCENARIOS
from windtunnel.harness.artifact.host.counter_sample import read_counters
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytest.importorskip("pyaeron")
# A machine's first run compiles every kernel of the simulator.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
SEEDS = 20
LOSSY = """\
schema: windtunnel/1
name: real/lossy
about: 5 % of DATA, SM and NAK frames are lost; every message must be delivered once.
seeds: { root: 1 }
fidelity: [sim]
network:
  hosts: [a, b]
  link: { between: [a, b], backend: relay }
traffic:
  - id: s
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: { bytes: 256KiB, message: { from: 8B, to: 2KiB } }
faults:
  - { id: there, where: { link: a->b }, what: { type: DATA }, act: { drop: 5% } }
  - { id: back, where: { link: b->a }, what: { type: [SM, NAK] }, act: { drop: 5% } }
expect:
  - delivered_once
  - rcv_pos_reaches_end
budget: { wall: 60s }
"""
CLASSES = {
    "loss": "exam/loss",
    "bursts": "exam/bursts",
    "disorder": "exam/disorder",
    "damage": "exam/damaged",
    "lost feedback": "exam/feedback-loss",
    "late feedback": "exam/feedback-late",
    "forgery": "exam/forged",
    "lost setups": "exam/setup-loss",
    "impairments": "netem/loss-four-state",
    "pause": "host/pause-receiver",
    "death": "host/kill-publisher",
    "multicast": "many/multicast-one-lossy",
    "destinations": "many/mdc-min-one-lossy",
}
"""A scenario for each class of fault."""


def run_seeds(folder: Path, first: int, count: int, *real: str) -> list[list[str]]:
    """Run seeds in a process of its own. Returns the fields of each line."""
    folder.mkdir(parents=True)
    scenario = folder / "lossy.yaml"
    scenario.write_text(LOSSY)
    argv = [sys.executable, "-m", "tests.sim.real_seeds", scenario, folder, first, count, *real]
    done = subprocess.run(
        [str(each) for each in argv], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [str(first + index) for index in range(count)]
    return lines


def test_twenty_seeds_are_whole_and_the_same_in_another_process(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(
            lambda name: run_seeds(tmp_path / name, 1, SEEDS, "a", "b"), ("one", "other")
        )
    assert one == other
    assert {(line[1], line[3]) for line in one} == {("0", "True")}
    assert len({line[2] for line in one}) == SEEDS
    for seed in (1, SEEDS):
        for file in ("captures/a.pcap", "hosts/b/counters.bin", "decisions.bin", "ledger.json"):
            first, second = (tmp_path / name / str(seed) / file for name in ("one", "other"))
            assert first.read_bytes() == second.read_bytes(), file


@pytest.mark.parametrize("real", ["a", "b"])
def test_both_drivers_meet_on_virtual_time(real, tmp_path):
    one = run_seeds(tmp_path / "one", 1, 2, real)
    assert one == run_seeds(tmp_path / "other", 1, 2, real)
    assert {(line[1], line[3]) for line in one} == {("0", "True")}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    files = [SCENARIOS / f"{name}.yaml" for name in CLASSES.values()]
    both = pair("pyaeron", "pyaeron", "sim", folder)
    made = run_suite(files, fidelity="sim", out=folder, seeds=1, jobs=2, tested=both)
    return folder, {each.scenario: each for each in made.runs}


@pytest.mark.parametrize("name", CLASSES.values(), ids=CLASSES)
def test_each_class_of_fault_passes(name, judged):
    result = judged[1][name]
    assert result.outcome == "PASS", result.reason


def test_the_evidence_is_of_the_real_driver(judged):
    (run,) = judged[0].glob("*/exam-loss-s*")
    folder = RunDir(run)
    for host in ("a", "b"):
        labels = [each.label for each in read_counters(folder.host(host).counters)]
        (software,) = (each for each in labels if each.startswith("Aeron software: "))
        assert "version=1.53" in software
        assert "windtunnel" not in software
