"""Streams whose publication does not signal its end."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import changed, faults_of
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

UNSIGNALLED = changed("term-length=64k", "term-length=64k|eos=false")


def test_explain_says_when_a_subscriber_ends_without_a_signal():
    case = resolve(
        parse_scenario(UNSIGNALLED, "made.yaml"), seed=1, fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip
    assert "eos=false: a subscriber ends when its image does" in explain(case)


@pytest.mark.parametrize(
    "more",
    ["rejoins: true", 'merges: {after: 64KiB, live: "aeron:udp?endpoint=${b}:24326"}'],
)
def test_refuses_streams_in_parts_without_a_signal(more):
    key = more.partition(":")[0]
    text = UNSIGNALLED.replace("    content:", f"    {more}\n    content:")
    expected = f"traffic[0].channel: `{key}` needs the end of the stream, which eos=false does not"
    assert any(expected in each for each in faults_of(text))
