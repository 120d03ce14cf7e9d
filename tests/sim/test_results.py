"""The results of simulated runs equal a plain account of the applications' records and captures.

The account reads record by record, with its own formats, and matches the lost frames with the
middlebox's decisions.
"""

import json
import struct

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.middlebox.decision import DROP, read_decisions
from windtunnel.harness.artifact.run_dir import RunDir

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: results
about: Every message of a paced stream is delivered; some frames are lost once.
seeds: {{root: 11}}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {{between: [a, b], impairments: {{both: {{delay: {{mean: 20ms}}}}}}}}
traffic:
  - id: ticks
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${{b}}:24325|nak-delay=60ms"
    content: {{bytes: 512KiB, message: {{from: 100B, to: 1000B}}, pace: {{rate: 512KiB/s}}}}
    {more}
{faults}
expect: [delivered_once]
budget: {{wall: 60s}}
"""

LOSSES = """
faults:
  - id: lose
    where: {link: a->b}
    what: {type: DATA, position: {from: 32KiB, length: 3000B, every: 128KiB}}
    attempt: 1
    act: {drop: always}
"""


def records(path, form):
    return list(struct.iter_unpack(form, path.read_bytes()))


def made(tmp_path, faults=LOSSES, more=""):
    file = tmp_path / "results.yaml"
    file.write_text(SCENARIO.format(faults=faults, more=more))
    summary = run(file, tmp_path)
    assert summary.outcome == "PASS", summary.reason
    folder = RunDir(summary.run_dir)
    (row,) = json.loads(folder.verdict.read_text())["results"]
    return folder, row


def account(folder):
    """Return the figures of the applications by name, from their records."""
    near, far = folder.host("a").publisher("ticks"), folder.host("b").subscriber("ticks")
    offers = records(near.offers, "<qiiq")
    offered = records(near.times, "<q")
    deliveries = records(far.index, "<qii")
    received = records(far.times, "<q")
    due = {
        position: time_ns for (_, _, _, position), (time_ns,) in zip(offers, offered, strict=True)
    }
    waits, silences, total, last_ns = [], [], 0, offered[0][0]
    for (position, length, _), (time_ns,) in zip(deliveries, received, strict=True):
        waits.append(time_ns - due[position])
        silences.append(time_ns - last_ns)
        total, last_ns = total + length, time_ns
    waits.sort()
    took_ns = last_ns - offered[0][0]

    def at_least(percent):
        return next(
            wait for count, wait in enumerate(waits, 1) if count * 100 >= percent * len(waits)
        )

    return {
        "published_messages": len(offers),
        "delivered_messages": len({position for position, _, _ in deliveries}),
        "delivered_bytes": total,
        "latency_p50_ns": at_least(50),
        "latency_p99_ns": at_least(99),
        "latency_max_ns": waits[-1],
        "longest_silence_ns": max(silences),
        "finished_ns": took_ns,
        "reached_bytes_per_s": pytest.approx(total / took_ns * 1e9),
        "reached_messages_per_s": pytest.approx(len(deliveries) / took_ns * 1e9),
        "asked_bytes_per_s": pytest.approx(512 * 1024, rel=1e-6),
        "asked_messages_per_s": pytest.approx(len(offers), rel=1e-6),
    }


def link_account(folder):
    """Return the figures of lost frames and their repairs by name, from the decision log."""
    drops = [each for each in read_decisions(folder.decisions) if each["action"] == DROP]
    spans = [(int(each["frame_length"]) + 31) // 32 * 32 for each in drops]
    assert len(drops) >= 12
    return {
        "lost_frames": len(drops),
        "lost_bytes": sum(spans),
        # Each lost frame is retransmitted once, because retransmits are not lost.
        "resent_frames": len(drops),
        "resent_bytes": sum(spans),
        "gaps": len({(int(each["position"]) - 30_000) // (128 << 10) for each in drops}),
    }


def differences(row, expected):
    """Return the names of the figures in a row that differ from the expected ones."""
    return [name for name, value in expected.items() if row.get(name) != value]


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return made(tmp_path_factory.mktemp("lossy"))


def test_figures_of_deliveries_equal_the_applications_own_records(lossy):
    folder, row = lossy
    assert differences(row, account(folder)) == []
    # A message needs 20 ms, and a repair at least another round trip.
    assert 20_000_000 <= row["latency_p50_ns"] < 25_000_000
    assert row["latency_max_ns"] >= 60_000_000
    assert row["repair_p50_ns"] >= 40_000_000
    assert max(row["stalled_ns"], key=row["stalled_ns"].get) == "repair"


def test_lost_and_resent_frames_equal_the_decision_log(lossy):
    folder, row = lossy
    assert differences(row, link_account(folder)) == []
    assert row["naks"] >= row["gaps"]


def test_a_difference_of_one_in_any_compared_figure_is_found(lossy):
    folder, row = lossy
    expected = account(folder) | link_account(folder)
    for name in expected:
        for modified in (row[name] + 1, row[name] - 1):
            assert differences(row | {name: modified}, expected) == [name]
        without = {each: value for each, value in row.items() if each != name}
        assert differences(without, expected) == [name]


def test_a_slow_reader_is_named_as_the_cause_of_its_stalls(tmp_path):
    folder, row = made(tmp_path, "", "consume: {rests: {every: 128KiB, for: 300ms}}")
    assert differences(row, account(folder)) == []
    # Three pauses of 300 ms; the message that was due first waited until the end of each.
    assert row["longest_silence_ns"] >= 300_000_000
    assert 700_000_000 < row["stalled_ns"]["reader"] <= 3 * row["longest_silence_ns"]
