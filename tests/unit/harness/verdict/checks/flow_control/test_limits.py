"""snd-lmt and pub-lmt: valid values by status messages and sent data."""

import json

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import (
    PUBLICATION_WINDOW,
    TRAFFIC,
    WINDOW,
    SyntheticRun,
    make_run,
)
from windtunnel.harness.verdict.checks.flow_control.limits import (
    pub_lmt_follows_snd_pos,
    snd_lmt_follows_status,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def sender(run):
    return judged(snd_lmt_follows_status, Evidence(run.write()), run.traffic)


def publisher(run):
    return judged(pub_lmt_follows_snd_pos, Evidence(run.write()), run.traffic)


def change(run, name, at, value):
    """Change the value of a counter's sample."""
    rows = run.samples["a"]
    index = [row for row, each in enumerate(rows) if each[1] == name][at]
    time_ns, _, before = rows[index]
    rows[index] = (time_ns, name, value(before) if callable(value) else value)
    return rows[index][2]


def test_limits_that_follow_status_messages_and_sent_data_pass(run):
    assert sender(run).outcome is Outcome.PASS
    finding = publisher(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["ahead"] > 100


def test_a_decreasing_sender_limit_is_reported_unless_flow_control_decreases_it(run):
    value = change(run, "snd-lmt", 5, lambda before: before - WINDOW)
    finding = sender(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)
    assert "decreased" in finding.text
    traffic = run.traffic.model_copy(update={"channel": f"{run.traffic.channel}|fc=min"})
    assert snd_lmt_follows_status(Evidence(run.path), traffic).outcome is Outcome.PASS


def test_a_sender_limit_beyond_all_windows_is_reported(run):
    change(run, "snd-lmt", -1, lambda before: before + 32)
    finding = sender(run)
    assert finding.outcome is Outcome.FAIL
    assert "had allowed" in finding.text


def test_a_sender_limit_that_stays_behind_is_reported(run):
    for at in range(3, 0, -1):
        change(run, "snd-lmt", -at, lambda before: before - 5 * WINDOW)
    count = sum(each[1] == "snd-lmt" for each in run.samples["a"])
    for at in range(count - 3):
        change(run, "snd-lmt", at, 0)
    # Long after the last status message, so it has certainly been processed.
    run.packets["a"][-1].time_ns += 10**9
    finding = sender(run)
    assert finding.outcome is Outcome.FAIL
    assert "ended at" in finding.text


@pytest.mark.parametrize("missing", [32, PUBLICATION_WINDOW * 3 // 4 + 32])
def test_a_publisher_limit_that_is_less_than_a_window_ahead_is_reported(run, missing):
    value = change(run, "pub-lmt", 40, lambda before: before - missing)
    finding = publisher(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)


def test_a_publisher_limit_that_runs_ahead_is_reported(run):
    ahead = [each[2] for each in run.samples["a"] if each[1] == "pub-lmt"][60]
    change(run, "pub-lmt", 20, ahead)
    finding = publisher(run)
    assert finding.outcome is Outcome.FAIL
    assert "had been sent" in finding.text


def test_the_limit_of_a_publisher_that_ends_early_stays_where_its_production_ended(run):
    value = change(run, "pub-lmt", -1, lambda before: before - 32)
    assert publisher(run).outcome is Outcome.FAIL
    document = run.folder.host("a").publisher(TRAFFIC).document
    facts = json.loads(document.read_text())
    for end, outcome in ((value, Outcome.PASS), (value + 32, Outcome.FAIL)):
        document.write_text(json.dumps({**facts, "end_position": end}))
        found = pub_lmt_follows_snd_pos(Evidence(run.path), run.traffic)
        assert found.outcome is outcome


def test_a_limit_ahead_of_a_stream_that_has_ended_is_reported(run):
    value = change(run, "pub-lmt", -1, lambda before: before + PUBLICATION_WINDOW)
    finding = publisher(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)
    assert f"but the stream ended at {run.log.end_position}" in finding.text


def test_a_limit_ahead_of_a_stream_without_a_signalled_end_passes(run):
    change(run, "pub-lmt", -1, lambda before: before + PUBLICATION_WINDOW)
    for host in ("a", "b"):
        run.packets[host] = [each for each in run.packets[host] if each.kind != "HEARTBEAT"]
    assert publisher(run).outcome is Outcome.PASS


def test_a_publisher_that_is_not_connected_may_go_as_far_as_its_sender(run):
    place = [each[2] for each in run.samples["a"] if each[1] == "snd-pos"][-1]
    change(run, "pub-lmt", -1, place)
    assert publisher(run).outcome is Outcome.PASS


@pytest.mark.parametrize("check", [sender, publisher])
def test_missing_counter_is_inconclusive(run, check):
    run.samples["a"] = [each for each in run.samples["a"] if each[1] == "snd-pos"]
    assert check(run).outcome is Outcome.INCONCLUSIVE


def of_group(run, control=""):
    evidence, traffic = Evidence(write(run)), run.traffic
    traffic = traffic.model_copy(update={"channel": traffic.channel + control})
    return {flow.to_host: snd_lmt_follows_status(evidence, flow) for flow in traffic.flows}


@pytest.mark.parametrize(("off", "outcome"), [(0, Outcome.PASS), (-1, Outcome.FAIL)])
def test_the_limit_of_a_group_follows_the_data_sent_to_any_reader(run, monkeypatch, off, outcome):
    """The other one was added late."""
    join(run, monkeypatch, first="b")
    change(run, "pub-lmt", 5, lambda before: before + off)
    packets = run.packets["a"]
    late_ns = packets[len(packets) // 2].time_ns
    run.packets["a"] = [
        each for each in packets if each.destination != "c" or each.time_ns > late_ns
    ]
    finding = pub_lmt_follows_snd_pos(Evidence(write(run)), run.traffic.between("a", "c"))
    assert finding.outcome is outcome


def withhold(run, reader, after):
    """Keep only some of a receiver's status messages at the sender."""
    own = [each for each in run.packets["a"] if each.source == reader and each.kind == "SM"]
    for each in own[after:]:
        run.packets["a"].remove(each)


@pytest.mark.parametrize("slow", ["b", "c"])
def test_without_a_strategy_the_limit_of_a_group_follows_the_largest_window(run, monkeypatch, slow):
    join(run, monkeypatch, first="c")
    withhold(run, slow, after=3)
    assert {each.outcome for each in of_group(run).values()} == {Outcome.PASS}
    # It must not exceed the highest limit.
    change(run, "snd-lmt", -1, lambda before: before + 32)
    assert {each.outcome for each in of_group(run).values()} == {Outcome.FAIL}


def test_with_a_strategy_the_limit_of_a_group_follows_it(run, monkeypatch):
    join(run, monkeypatch, first="c")
    asked = of_group(run, "|fc=min,g:/2")
    assert {each.outcome for each in asked.values()} == {Outcome.PASS}
    withhold(run, "b", after=3)
    asked = of_group(run, "|fc=min,g:/2")
    assert {each.outcome for each in asked.values()} == {Outcome.FAIL}
    # A status message that never arrived does not set a limit.
    withhold(run, "b", after=0)
    asked = of_group(run, "|fc=min")
    assert {each.outcome for each in asked.values()} == {Outcome.PASS}
