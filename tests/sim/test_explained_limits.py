"""The limits that `explain` computes for a scenario agree with its simulated run."""

import re

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.run.verdict import read_results
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.resolved.case import Case

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: limits
about: One stream whose rate has one limit.
seeds: {{root: 3}}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {{between: [a, b], impairments: {{{impairments}}}}}
traffic:
  - id: ticks
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=1m"
    receive: "aeron:udp?endpoint=${{b}}:24325|rcv-wnd=64k"
    content: {{bytes: 1MiB, message: {{from: 1000B, to: 1000B}}{pace}}}
    {more}
{rules}
expect: [{check}]
budget: {{wall: 60s}}
"""


def made(tmp_path, impairments="both: {delay: {mean: 20ms}}", check="delivered_once", **parts):
    file = tmp_path / "limits.yaml"
    blank = {"pace": "", "more": "", "rules": ""}
    file.write_text(SCENARIO.format(impairments=impairments, check=check, **(blank | parts)))
    summary = run(file, tmp_path)
    assert summary.outcome == "PASS", summary.reason
    folder = RunDir(summary.run_dir)
    return folder, explain(Case.read(folder.case))


@pytest.mark.parametrize(
    ("cause", "parts"),
    [
        pytest.param("window", {}, marks=pytest.mark.full),
        ("window", {"impairments": "a->b: {delay: {mean: 5ms}}, b->a: {delay: {mean: 30ms}}"}),
        pytest.param(
            *("link", {"impairments": "a->b: {rate: 4Mbit/s, delay: {mean: 1ms}}"}),
            marks=pytest.mark.full,
        ),
        pytest.param("pace", {"pace": ", pace: {rate: 512KiB/s}"}, marks=pytest.mark.full),
        ("reader", {"more": "consume: {rate: 512KiB/s}"}),
    ],
)
def test_a_run_reaches_its_rate_limit_and_does_not_exceed_it(tmp_path, cause, parts):
    folder, text = made(tmp_path, **parts)
    limited = r"delivered after ([\d.]+) s at the earliest \((\w+): at most ([\d.]+) ([kM])B/s"
    found = re.search(limited, text)
    assert found is not None
    earliest_s, named = float(found[1]), found[2]
    limit_bytes_per_s = float(found[3]) * {"k": 1e3, "M": 1e6}[found[4]]
    assert named == cause
    (row,) = read_results(folder.verdict)
    assert row.finished_ns is not None
    assert row.reached_bytes_per_s is not None
    # Printed with two digits. A status message follows a quarter of the window.
    assert earliest_s - 0.005 <= row.finished_ns / 1e9 <= earliest_s * 4 / 3 + 0.05
    assert row.reached_bytes_per_s >= limit_bytes_per_s * 0.7
    if cause != "window":
        assert row.finished_ns / 1e9 <= earliest_s * 1.05 + 0.05


@pytest.mark.full
@pytest.mark.parametrize(("rate", "waits"), [("1100KiB/s", False), ("1300KiB/s", True)])
def test_a_stream_waits_if_and_only_if_its_window_is_below_the_one_that_prevents_stalls(
    tmp_path, rate, waits
):
    """Both rates have fewer bytes in flight than the window of 64 KiB."""
    folder, text = made(tmp_path, pace=f", pace: {{rate: {rate}}}")
    found = re.search(r"needs ([\d,]+) bytes in flight", text)
    assert found is not None
    assert int(found[1].replace(",", "")) < 64 << 10
    assert ("prevents stalls" in text) is waits
    (row,) = read_results(folder.verdict)
    assert row.stalled_ns is not None
    assert bool(row.stalled_ns.get("window")) is waits


CUT = """
faults:
  - id: cut
    where: {link: both}
    what: {type: ANY}
    when: {after: 500ms, for: %s}
    act: {drop: always}
"""
PAUSE = """
events:
  - {id: freeze, whom: {host: b, process: %s}, when: {after: 500ms}, act: {pause: %s}}
"""
PACED = ", pace: {rate: 128KiB/s}"


@pytest.mark.parametrize(
    ("lasts", "exceeds"),
    [
        pytest.param("4s", False, marks=pytest.mark.full),
        pytest.param("5s", True, marks=pytest.mark.full),
    ],
)
def test_a_cut_disconnects_where_the_connection_timeout_is_exceeded(tmp_path, lasts, exceeds):
    folder, text = made(tmp_path, pace=PACED, rules=CUT % lasts)
    assert ("exceeds the connection timeout of 5s" in text) is exceeds
    facts = PublisherFacts.read(folder.host("a").publisher("ticks").document)
    assert facts is not None
    assert (facts.not_connected_count > 0) is exceeds


@pytest.mark.parametrize(
    ("process", "lasts", "timeout"),
    [
        pytest.param("subscriber", "3s", "", marks=pytest.mark.full),
        ("subscriber", "12s", "client liveness timeout of 10s"),
        pytest.param("driver", "3s", "", marks=pytest.mark.full),
        pytest.param(*("driver", "12s", "image liveness timeout of 10s"), marks=pytest.mark.full),
    ],
)
def test_a_pause_closes_the_image_where_a_liveness_timeout_is_exceeded(
    tmp_path, process, lasts, timeout
):
    folder, text = made(
        tmp_path,
        pace=PACED,
        more="rejoins: true",
        rules=PAUSE % (process, lasts),
        check="delivered_in_parts",
    )
    assert (f"exceeds the {timeout}" in text) is bool(timeout)
    facts = SubscriberFacts.read(folder.host("b").subscriber("ticks").document)
    assert facts is not None
    assert len(facts.parts) == (2 if timeout else 1)
