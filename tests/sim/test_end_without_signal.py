"""A stream with eos=false: its subscriber ends when the image is closed, with all messages."""

import json
from pathlib import Path

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.subjects.peers import pair

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)

SCENARIO = """\
schema: windtunnel/1
name: made/unsignalled
about: A stream whose end is not signalled.
seeds: {root: 3}
fidelity: [sim]
network: {hosts: [a, b], link: {between: [a, b], impairments: {both: {delay: 1ms}}}}
traffic:
  - id: ticks
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|eos=false|linger=1s%s"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 200KiB, message: 1KiB}
faults:
  - {id: lose, where: {link: a->b}, what: {type: DATA}, attempt: 1, act: {drop: 10%%}}
timeouts: {image_liveness: 2s}
expect: [delivered_once, positions_covered, rcv_pos_reaches_end, eos_reaches_end]
budget: {wall: 20s}
"""


@pytest.mark.parametrize("driver", ["ours", "pyaeron"])
@pytest.mark.parametrize("more", ["", "|windtunnel.retransmit-ranges=true"])
def test_a_closed_image_is_the_end(driver: str, more: str, tmp_path: Path):
    path = tmp_path / "made.yaml"
    path.write_text(SCENARIO % more)
    result = run(path, tmp_path, tested=pair(driver, driver, "sim", tmp_path / "store"))
    assert result.outcome == "PASS", result.reason
    subscriber = RunDir(result.run_dir).host("b").subscriber("ticks").document
    document = json.loads(subscriber.read_text())
    assert (document["message_count"], document["eos_seen"]) == (200, False)
