"""The unmodified C driver on virtual time: streams are complete, runs repeatable and judged."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sim.real_runs import real_runs
from tests.sim.simulated import REPOSITORY, SCENARIOS
from windtunnel.harness.artifact.host.counter_sample import read_counters

pytest.importorskip("pyaeron")
# A machine's first run compiles every kernel of the simulator.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
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
    content: { bytes: 128KiB, message: { from: 8B, to: 2KiB } }
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
    "disorder": "exam/disorder",
    "lost setups": "exam/setup-loss",
    "death": "host/kill-publisher",
}
"""A scenario for each of the main classes of fault."""
FURTHER_CLASSES = {
    "damage": "exam/damaged",
    "forgery": "exam/forged",
    "bursts": "exam/bursts",
    "lost feedback": "exam/feedback-loss",
    "late feedback": "exam/feedback-late",
    "impairments": "netem/loss-four-state",
    "pause": "host/pause-receiver",
    "multicast": "many/multicast-one-lossy",
    "destinations": "many/mdc-min-one-lossy",
}
"""Further classes."""


def run_seeds(folder: Path, runs: Sequence[str]) -> list[list[str]]:
    """Run seeds in a separate process. Returns the fields of each line."""
    folder.mkdir(parents=True)
    scenario = folder / "lossy.yaml"
    scenario.write_text(LOSSY)
    argv = [sys.executable, "-m", "tests.sim.real_seeds", str(scenario), str(folder), *runs]
    done = subprocess.run(argv, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == list(runs)
    return lines


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, 20])
def test_seeds_are_complete_and_the_same_in_another_process(seeds, tmp_path):
    both = [f"{seed}=a,b" for seed in range(1, seeds + 1)]
    mixed = ["1=a", "1=b"]
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(
            lambda name: run_seeds(tmp_path / name, [*both, *mixed]), ("one", "other")
        )
    assert one == other
    assert {(line[1], line[3]) for line in one} == {("0", "True")}
    assert len({line[2] for line in one}) == len(one)
    for run in (both[0], both[-1], *mixed):
        for file in ("captures/a.pcap", "hosts/b/counters.bin", "decisions.bin", "ledger.json"):
            first, second = (tmp_path / name / run / file for name in ("one", "other"))
            assert first.read_bytes() == second.read_bytes(), file


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a function that runs a scenario with real drivers on both sides and judges it."""
    with real_runs(tmp_path_factory.mktemp("runs")) as run:
        yield lambda name: run(SCENARIOS / f"{name}.yaml")


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", CLASSES.values(), ids=CLASSES)
def test_a_scenario_of_each_class_of_fault_passes(name, judged):
    result, folder = judged(name)
    assert result.outcome == "PASS", result.reason
    for host in ("a", "b"):
        labels = [each.label for each in read_counters(folder.host(host).counters)]
        (software,) = (each for each in labels if each.startswith("Aeron software: "))
        assert "version=1.53" in software
        assert "windtunnel" not in software


@pytest.mark.full
@pytest.mark.parametrize("name", FURTHER_CLASSES.values(), ids=FURTHER_CLASSES)
def test_a_scenario_of_each_further_class_of_fault_passes(name, judged):
    result, _ = judged(name)
    assert result.outcome == "PASS", result.reason
