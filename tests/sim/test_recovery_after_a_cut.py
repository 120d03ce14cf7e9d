"""Gaps that are open when a path fails are repaired as soon as it works again."""

import json

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.run_dir import RunDir

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: cut
about: A path with losses fails for 4 s.
seeds: {root: 1}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 20ms}}}
traffic:
  - id: ticks
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=16m|windtunnel.retransmit-ranges=true"
    receive: "aeron:udp?endpoint=${b}:24325|rcv-wnd=1m|so-rcvbuf=2m|windtunnel.nak-all-gaps=true"
    content: {bytes: 3MiB, message: 1376B, rate: 4MiB/s}
faults:
  - id: cut
    where: {link: both}
    what: {type: ANY}
    when: {after: 500ms, for: 4s}
    act: {drop: always}
  - {id: loss, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}
expect: [delivered_once, naks_paced]
budget: {wall: 60s}
"""
CUT_NS, HEARTBEAT_NS, ROUND_TRIP_NS = 4_000_000_000, 100_000_000, 40_000_000


@pytest.mark.full
def test_the_first_packet_after_a_cut_ends_the_backoff_of_open_gaps(tmp_path):
    """The retry delay had doubled five times: the next NAK was due 1.4 s after the cut."""
    file = tmp_path / "cut.yaml"
    file.write_text(SCENARIO)
    summary = run(file, tmp_path)
    assert summary.outcome == "PASS", summary.reason
    found = json.loads(RunDir(summary.run_dir).verdict.read_text())
    (row,) = found["results"]
    silence_ns = row["longest_silence_ns"]
    assert CUT_NS < silence_ns < CUT_NS + HEARTBEAT_NS + 3 * ROUND_TRIP_NS
