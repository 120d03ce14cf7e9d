"""Streams with several subscribers: which flows are checked, and how findings name them."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.scenario.resolved.case import CheckCase, HostCase, LinkCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import verdict_of


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def change(run, expect, **traffic):
    """Return the synthetic run with other checks and traffic, and a third host without files."""
    checks = tuple(CheckCase(name=name, arguments=arguments) for name, arguments in expect)
    stream = run.case.traffic[0].model_copy(update=traffic)
    run.case = run.case.model_copy(update={"expect": checks, "traffic": (stream,)})


def found(run, name):
    return [each for each in verdict_of(Evidence(run.write())).checks if each.name == name]


FAR = HostCase(name="c", address="10.64.2.10")


def three_hosts(run, expect, **traffic):
    change(run, expect, to_hosts=("b", "c"), **traffic)
    links = tuple(LinkCase(between=("a", each)) for each in ("b", "c"))
    run.case = run.case.model_copy(update={"hosts": (*run.case.hosts, FAR), "links": links})


def test_each_reader_is_judged_and_reported(run):
    three_hosts(run, [("delivered_once", {})])
    here, there = found(run, "delivered_once")
    assert (here.about, here.outcome) == ("one at b", Outcome.PASS)
    assert (there.about, there.outcome) == ("one at c", Outcome.INCONCLUSIVE)
    assert there.evidence == ("hosts/c/subscriber-one.index.bin",)


@pytest.mark.parametrize(
    ("to", "expected"), [("b", ["one at b"]), (["c", "b"], ["one at b", "one at c"])]
)
def test_a_check_may_apply_to_some_readers(run, to, expected):
    three_hosts(run, [("delivered_once", {"to": to})])
    assert [each.about for each in found(run, "delivered_once")] == expected


def test_a_check_without_readers_is_a_harness_defect(run):
    three_hosts(run, [("delivered_once", {"to": "d"})])
    (finding,) = found(run, "delivered_once")
    assert finding.outcome is Outcome.HARNESS


def test_a_subscriber_that_may_be_cut_off_is_checked_by_name_only(run):
    three_hosts(run, [("delivered_once", {}), ("delivered_unbroken", {"to": "c"})], partial=("c",))
    assert [each.about for each in found(run, "delivered_once")] == ["one at b"]
    assert [each.about for each in found(run, "delivered_unbroken")] == ["one at c"]


def test_packets_to_individual_readers_are_not_compared(run):
    change(
        run,
        [("counters_agree_with_packets", {})],
        channel="aeron:udp?control-mode=dynamic|control=a:1",
    )
    sender, reader = found(run, "counters_agree_with_packets")
    assert (sender.about, sender.outcome) == ("a", Outcome.PASS)
    assert sender.text.endswith("publishers: Bytes sent, Heartbeats sent")
    assert (reader.about, reader.outcome) == ("b", Outcome.PASS)


def test_naks_to_several_publishers_are_not_distinguished(run):
    change(run, [("naks_and_retransmits_agree", {})], from_hosts=("a", "c"))
    run.case = run.case.model_copy(update={"hosts": (*run.case.hosts, FAR)})
    (finding,) = found(run, "naks_and_retransmits_agree")
    assert finding.outcome is Outcome.INCONCLUSIVE
