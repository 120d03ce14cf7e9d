"""Swapped frames arrive one after the other, so a receiver detects the gap before it closes."""

import json

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.middlebox.decision import SWAP, read_decisions
from windtunnel.harness.artifact.run_dir import RunDir

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: swapped
about: Frames of an unreliable stream are swapped with the next one, and nothing is lost.
seeds: {{root: 6}}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {{between: [a, b]{impairments}}}
traffic:
  - id: video
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${{b}}:24325|reliable=false"
    content: {{bytes: 256KiB, message: {{from: 1316B, to: 1316B}}, pace: {{rate: 2MiB/s}}}}
faults:
  - {{id: late, where: {{link: a->b}}, what: {{type: DATA}}, act: {{swap: 10%}}}}
expect: [delivered_intact, positions_covered, pad_only_where_lost, no_naks]
budget: {{wall: 60s}}
"""
IMPAIRMENTS = ", impairments: {both: {delay: {mean: 5ms}}}"


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("impairments", ["", IMPAIRMENTS], ids=["direct", "delayed"])
def test_an_unreliable_receiver_fills_the_gap_before_a_swapped_frame(impairments, tmp_path):
    file = tmp_path / "swapped.yaml"
    file.write_text(SCENARIO.format(impairments=impairments))
    result = run(file, tmp_path)
    assert result.outcome == "PASS", result.reason
    folder = RunDir(result.run_dir)
    counters = json.loads(folder.host("b").counters.read_text())["counters"]
    (fills,) = (each["final_value"] for each in counters if each["label"] == "Loss gap fills")
    decisions = read_decisions(folder.decisions)
    late = decisions[decisions["action"] == SWAP]
    ends = set((late["position"] + late["frame_length"]).tolist())
    # Adjacent swapped frames are one gap.
    gaps = [position for position in late["position"].tolist() if position not in ends]
    assert len(gaps) > 10
    assert fills == len(gaps)
