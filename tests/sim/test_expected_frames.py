"""Timed expectations of frames are exact to the nanosecond in simulated runs."""

import re
from pathlib import Path

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run.run_spec import Replayed

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: timed
about: Lost frames are requested and repeated in time.
seeds: {{root: 3}}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {{between: [a, b], impairments: {{both: {{delay: 5ms}}}}}}
traffic:
  - id: feed
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${{b}}:24325"
    content: {{bytes: 400KiB, message: 1000B, pace: {{rate: 4MiB/s}}}}
faults:
  - id: drop-one
    where: {{link: a->b}}
    what: {{type: DATA, position: {{from: 64KiB, length: 32B, every: 128KiB}}}}
    attempt: 1
    act: {{drop: always}}
expect:
  - delivered_once
  - expect_frames: {{after: drop-one, then: NAK, from: b, to: a, within: {nak}}}
  - expect_frames: {{after: drop-one, then: DATA, from: a, to: b, within: {data}}}
  - expect_frames: {{after: drop-one, then: ERR, from: b, to: a, within: 10ms, count: 0}}
"""
REPLAYED = ("windtunnel", "replay", "first")
NAK, DATA, ERR = "NAK b->a", "DATA a->b", "ERR b->a"


def run_with(folder: Path, is_replay: bool = False, **limits: str) -> tuple[str, dict[str, dict]]:
    """Run a scenario, or replay it; return the verdict's reason and findings by expected frame."""
    folder.mkdir()
    file = folder / "timed.yaml"
    file.write_text(SCENARIO.format(**limits))
    made = run(file, folder)
    if is_replay:
        decisions = RunDir(made.run_dir).decisions
        made = run(file, folder, replayed=Replayed("first", decisions, REPLAYED))
    verdict = read_verdict(RunDir(made.run_dir).verdict)
    assert verdict is not None
    rows = [each for each in verdict["checks"] if each["name"] == "expect_frames"]
    return made.reason, {each["about"].partition(" after ")[0]: each for each in rows}


@pytest.mark.full
def test_a_replay_has_the_same_findings(tmp_path: Path) -> None:
    limits = {"nak": "60ms", "data": "80ms"}
    assert (
        run_with(tmp_path / "first", **limits)[1]
        == run_with(tmp_path / "again", is_replay=True, **limits)[1]
    )


def test_limits_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    _, found = run_with(tmp_path / "wide", nak="60ms", data="80ms")
    assert {each["outcome"] for each in found.values()} == {"PASS"}
    assert set(found) == {NAK, DATA, ERR}
    assert found[NAK]["facts"] == {"frames": 3, "wrong": 0, "unknown": 0}
    times = [re.search(r"after (\d+) to (\d+) ns", found[key]["text"]) for key in (NAK, DATA)]
    (_, nak_ns), (data_least_ns, data_ns) = ([int(each) for each in at.groups()] for at in times)
    # A frame crosses the link before its gap is found, and the NAK before it is repeated.
    assert 5_000_000 < nak_ns < 60_000_000
    assert nak_ns + 5_000_000 <= data_ns
    assert data_least_ns > 10_000_000
    _, found = run_with(tmp_path / "exact", nak=f"{nak_ns}ns", data=f"{data_ns}ns")
    assert {each["outcome"] for each in found.values()} == {"PASS"}
    reason, found = run_with(tmp_path / "short", nak=f"{nak_ns - 1}ns", data=f"{data_ns}ns")
    assert [each["outcome"] for each in found.values()] == ["FAIL", "PASS", "PASS"]
    position = found[NAK]["position"]
    # The frame of 1,056 bytes that contains one of the places of the rule.
    assert any(position <= place << 10 < position + 1056 for place in (64, 192, 320))
    assert reason.startswith("expect_frames (NAK b->a after drop-one): ")
    assert re.search(rf"stream 1001, session -?\d+, position {position}, attempt 1, from a", reason)
    assert f"the first one left after {nak_ns} ns" in reason
