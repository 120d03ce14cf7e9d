"""The counter of a group's receivers."""

import struct

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_group import CHANNEL, join, write
from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.verdict.checks.flow_control.receiver_counts import (
    group_receivers_counted,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
RECEIVERS = "fc-receivers"


@pytest.fixture
def run(tmp_path, monkeypatch):
    named = {**synthetic_run.COUNTERS["a"], RECEIVERS: (57, 17)}
    monkeypatch.setitem(synthetic_run.COUNTERS, "a", named)
    run = make_run(tmp_path)
    join(run, monkeypatch, first="b")
    return run


def finding_of(run, control, *values):
    for value in values:
        run.sample("a", RECEIVERS, value)
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"channel": f"{CHANNEL}|fc={control}"})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    return group_receivers_counted(Evidence(write(run)), changed)


@pytest.mark.parametrize(
    ("values", "outcome"), [((0, 2, 0), PASS), ((0, 2), PASS), ((0, 1), FAIL), ((3, 2), FAIL)]
)
def test_each_receiver_of_a_group_is_counted(run, values, outcome):
    finding = finding_of(run, "min", *values)
    assert finding.outcome is outcome
    if outcome is FAIL:
        shown = f"fc-receivers is {max(values)} at most, expected 2 according to the capture"
        assert finding.text == shown


@pytest.mark.parametrize(
    ("is_late", "value", "outcome"), [(True, 1, PASS), (True, 0, FAIL), (False, 1, FAIL)]
)
def test_a_receiver_that_is_a_window_behind_does_not_join(run, is_late, value, outcome):
    """The group may start without one that needs long to join."""
    own = [each for each in run.packets["a"] if each.source == "c" and each.kind == "SM"]
    for each in own[1:]:
        run.packets["a"].remove(each)
    if is_late:
        own[0].time_ns = own[-1].time_ns
    assert finding_of(run, "min", value).outcome is outcome


def tag(run, host, group_tag):
    """Let the status messages of a host carry a tag."""
    for capture in (host, "a"):
        for each in run.packets[capture]:
            if each.kind == "SM" and each.source == host:
                body = struct.pack("<i", 44) + each.payload[4:]
                each.payload = body + struct.pack("<q", group_tag)


@pytest.mark.parametrize(("value", "outcome"), [(1, PASS), (2, FAIL)])
def test_with_a_tag_only_its_receivers_are_counted(run, value, outcome):
    tag(run, "b", 7)
    tag(run, "c", 8)
    assert finding_of(run, "tagged,g:7", 0, value).outcome is outcome


def test_with_max_there_is_no_counter(run):
    assert finding_of(run, "max").outcome is PASS
    finding = finding_of(run, "max", 2)
    assert finding.outcome is FAIL
    assert finding.text.endswith("expected none with fc=max")


def test_a_group_has_the_counter(run):
    finding = finding_of(run, "min")
    assert finding.outcome is FAIL
    assert finding.text == "the publication has 0 counters fc-receivers, expected one"


def test_missing_evidence_is_inconclusive(run):
    path = write(run)
    run.folder.host("a").counters.unlink()
    found = judged(group_receivers_counted, Evidence(path), run.traffic)
    assert found.outcome is Outcome.INCONCLUSIVE
