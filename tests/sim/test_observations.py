"""The observations of simulated runs equal a plain account of the applications' records.

The account reads record by record, with its own formats, and takes losses from the decision log.
"""

import json
import struct

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.middlebox.decision import DISPLACE, DROP, read_decisions
from windtunnel.harness.artifact.run_dir import RunDir

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: observed
about: {about}
seeds: {{root: 5}}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {{between: [a, b], impairments: {{both: {{delay: {{mean: 1ms}}}}}}}}
traffic:
  - id: orders
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${{b}}:24325{receive}"
    content: {{bytes: 400KiB, message: 1316B, pace: {{rate: 512KiB/s}}}}
faults:
{faults}
expect: [{expect}]
budget: {{wall: 60s}}
"""
CUT = """
  - id: outage
    where: {link: both}
    what: {type: ANY}
    when: {after: 100ms, for: 200ms}
    act: {drop: always}
"""
LOST_AND_LATE = """
  - id: burst
    where: {link: a->b}
    what: {type: DATA, position: {from: 32KiB, length: 6000B, every: 64KiB}}
    act: {drop: always}
  - {id: late, where: {link: a->b}, what: {type: DATA}, act: {displace: {share: 3%, by: 3}}}
"""
MS = 1_000_000
DATA = 1


def observed(tmp_path, **fields):
    """Run the scenario; return its folder and the observations in its verdict."""
    file = tmp_path / "observed.yaml"
    file.write_text(SCENARIO.format(**fields))
    summary = run(file, tmp_path)
    assert summary.outcome == "PASS", summary.reason
    folder = RunDir(summary.run_dir)
    return folder, json.loads(folder.verdict.read_text())["observed"]


def records(path, form):
    return list(struct.iter_unpack(form, path.read_bytes()))


def test_a_cut_and_the_silence_that_it_causes_equal_the_records(tmp_path):
    folder, found = observed(
        tmp_path, about="A cut.", receive="", faults=CUT, expect="delivered_once"
    )
    (start_ns,) = records(folder.host("a").publisher("orders").times, "<q")[0]
    times_ns = [each[0] for each in records(folder.host("b").subscriber("orders").times, "<q")]
    assert found["start_ns"] == start_ns
    (cut,) = found["interruptions"]
    drops_ns = [int(each["time_ns"]) for each in read_decisions(folder.decisions)]
    assert cut["began_ns"] <= min(drops_ns) <= max(drops_ns) < cut["ended_ns"]
    assert cut["ended_ns"] - cut["began_ns"] == 200 * MS
    assert 100 * MS <= cut["began_ns"] - start_ns < 105 * MS
    silences = []
    before_ns = start_ns
    for time_ns in times_ns:
        if time_ns >= cut["began_ns"] and before_ns < cut["ended_ns"]:
            silences.append((time_ns - before_ns, time_ns))
        before_ns = time_ns
    length_ns, next_ns = max(silences)
    assert next_ns > cut["ended_ns"]
    expected = (
        f"orders: cut 'outage' (a->b and b->a) from {(cut['began_ns'] - start_ns) / 1e9:.3f} s to "
        f"{(cut['ended_ns'] - start_ns) / 1e9:.3f} s: no delivery for {length_ns / MS:.3g} ms, "
        f"until {(next_ns - cut['ended_ns']) / MS:.3g} ms after its end"
    )
    (reader,) = found["readers"]
    assert reader["sentences"][0] == expected
    longest = max(reader["stalls"], key=lambda each: each["ended_ns"] - each["began_ns"])
    assert longest["ended_ns"] == next_ns
    assert sum(longest["causes"].values()) == longest["ended_ns"] - longest["began_ns"]


def test_filled_ranges_equal_the_padding_that_the_application_read(tmp_path):
    folder, found = observed(
        tmp_path,
        about="Bursts of lost frames, and late ones.",
        receive="|reliable=false",
        faults=LOST_AND_LATE,
        expect="delivered_intact",
    )
    ranges, end = [], -1
    for position, header, _, time_ns in records(
        folder.host("b").subscriber("orders").frames, "<q32sIq"
    ):
        length = (struct.unpack_from("<i", header)[0] + 31) // 32 * 32
        # The stream ends within its first term, so the publisher sent no padding.
        if struct.unpack_from("<H", header, 6)[0] != DATA:
            if position == end:
                ranges[-1][1] += length
            else:
                ranges.append([position, length, time_ns])
            end = position + length
    (reader,) = found["readers"]
    printed = [(each["position"], each["length"], each["read_ns"]) for each in reader["filled"]]
    assert printed == [tuple(each) for each in ranges]
    assert len(ranges) >= 4
    decisions = read_decisions(folder.decisions)

    def during(action):
        at = [int(each["position"]) for each in decisions if each["action"] == action]
        return [sum(start <= each < start + length for each in at) for start, length, _ in ranges]

    assert [each["lost_frames"] for each in reader["filled"]] == during(DROP)
    assert [each["late_frames"] for each in reader["filled"]] == during(DISPLACE)
    assert sum(during(DROP)) >= 16
    assert sum(during(DISPLACE)) >= 1
    total = sum(each[1] for each in ranges)
    (sentence, *_) = reader["sentences"]
    assert sentence.startswith(f"orders: {len(ranges)} ranges ({total:,} B) were filled with")
    count = len(records(folder.host("a").publisher("orders").offers, "<qiiq"))
    delivered = len(records(folder.host("b").subscriber("orders").index, "<qii"))
    assert f"; {count - delivered:,} of {count:,} messages are missing" in sentence
