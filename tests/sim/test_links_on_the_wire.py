"""The link that `analyze` finds in a simulated run is the link of the scenario."""

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.middlebox.decision import DROP, read_decisions
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.reports.analysis.analyze import analyze

pytestmark = pytest.mark.timeout(400)

CONSTANT = """\
schema: windtunnel/1
name: constant
about: A constant delay of 20 ms, and frames that are lost more than once.
seeds: {root: 1}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: {mean: 20ms}}}}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 1MiB, message: {from: 1KiB, to: 1KiB}, pace: {rate: 2MiB/s}}
faults:
  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 3%}}
expect:
  - delivered_once
budget: {wall: 60s}
"""
DELAY_NS = 20_000_000
CROSSING_NS = 200_000
"""Longest time that the simulated hosts and the middlebox add to the delay of the link."""


@pytest.mark.full
def test_a_constant_delay_neither_reorders_nor_varies(tmp_path):
    file = tmp_path / "constant.yaml"
    file.write_text(CONSTANT)
    result = run(file, tmp_path)
    assert result.outcome == Outcome.PASS, result.reason
    run_dir = RunDir(result.run_dir)
    decisions = read_decisions(run_dir.decisions)
    dropped = int((decisions["action"] == DROP).sum())
    assert dropped
    (link,) = analyze([str(run_dir.capture(host)) for host in ("a", "b")]).links.to_pylist()
    assert link["lost_frames"] == dropped
    assert link["sent_frames"] - link["arrived_frames"] == dropped
    assert link["reordered_frames"] == link["ambiguous_frames"] == link["copied_frames"] == 0
    assert link["delay_min_ns"] >= DELAY_NS
    assert link["delay_max_ns"] <= DELAY_NS + CROSSING_NS
