"""A receiver that was restarted is sent everything twice by some drivers: no retransmits."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run
from windtunnel.harness.verdict.checks.delivery.stream_setup import setups_until_answered
from windtunnel.harness.verdict.checks.retransmission.retransmit_checks import (
    retransmits_only_if_asked,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


@pytest.mark.parametrize("check", [setups_until_answered, retransmits_only_if_asked])
@pytest.mark.parametrize(("returned", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_copies_for_a_receiver_that_returned_are_no_retransmits(
    run, monkeypatch, check, returned, outcome
):
    join(run, monkeypatch, first="b")
    setup = next(
        each for each in run.packets["a"] if each.kind == "SETUP" and each.destination == "c"
    )
    data = [each for each in run.packets["a"] if each.kind == "DATA" and each.destination == "c"]
    messages = [each for each in run.packets["a"] if each.kind == "SM" and each.source == "c"]
    again_ns = messages[-1].time_ns
    asked = replace(messages[-1], payload=b"\x24\0\0\0\0\x80" + messages[-1].payload[6:])
    run.packets["a"] += [
        asked,
        *[replace(setup, time_ns=again_ns + 1)] * 2,
        replace(data[9], time_ns=data[9].time_ns + 1),
    ]
    if returned:
        messages[-1].payload = messages[-1].payload[:28] + struct.pack("<q", 9)
    finding = judged(check, Evidence(write(run)), run.traffic.between("a", "c"))
    assert finding.outcome is outcome, finding.text
