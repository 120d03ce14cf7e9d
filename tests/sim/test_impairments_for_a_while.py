"""Temporary impairments on virtual time begin and end exactly, are judged, and are replayed."""

import json
import shutil

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run.run_spec import Replayed
from windtunnel.harness.scenario.resolved.link_change import LinkChanges
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.impairment_gates import impairments_applied

MS = 1_000_000
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
SCENARIO = """\
schema: windtunnel/1
name: made/storm
about: Made for a test.
seeds: {root: 1}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 2ms}}}
traffic:
  - id: prices
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|mtu=1408|term-length=1m"
    receive: "aeron:udp?endpoint=${b}:24325|nak-delay=10us"
    content: {bytes: 3MiB, message: {from: 64B, to: 2KiB}, pace: {rate: 4MiB/s}}
events:
  - {id: storm, whom: {link: a->b}, when: {after: 100ms}, act: {impair: {loss: 10%, for: 200ms}}}
  - {id: slow, whom: {host: b}, when: {after: 200ms}, act: {impair: {delay: 20ms, for: 200ms}}}
expect: [delivered_once]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run the scenario, which passes, and return its folder."""
    made = tmp_path_factory.mktemp("storm")
    file = made / "storm.yaml"
    file.write_text(SCENARIO)
    result = run(file, made)
    assert result.outcome == "PASS", result.reason
    return RunDir(result.run_dir)


def test_impairments_begin_and_end_in_time(folder):
    storm, slow = read_applied_events(folder.host_events)
    assert (storm.ended_ns - storm.began_ns, slow.ended_ns - slow.began_ns) == (200 * MS,) * 2
    assert slow.began_ns - storm.began_ns == 100 * MS
    changes = LinkChanges.read(folder.link_changes).changes
    assert len(changes) == 6
    forward = [each for each in changes if each.impairments.link == "a->b"]
    assert [(each.at_ns - storm.began_ns) // MS for each in forward] == [0, 100, 200, 300]
    assert [each.impairments.delay_ns // MS for each in forward] == [2, 20, 20, 2]
    assert [each.impairments.loss is not None for each in forward] == [True, True, False, False]
    assert forward[0].counts.lost == 0
    assert forward[2].counts.lost == forward[3].counts.lost > 0


def test_impairments_are_judged_and_shown(folder):
    verdict = read_verdict(folder.verdict)
    gates = [each["text"] for each in verdict["gates"] if each["name"] == "impairments_applied"]
    assert len(gates) == 2
    assert all("iid loss 10.0000% for " in each for each in gates)
    shown = verdict["observed"]["interruptions"]
    assert [(each["kind"], each["what"]) for each in shown] == [
        ("impair", "a->b"),
        ("impair", "host b"),
    ]


def test_a_change_that_was_recorded_and_not_applied_is_detected(folder, tmp_path):
    other = RunDir(shutil.copytree(folder.path, tmp_path / "other"))
    document = json.loads(other.link_changes.read_text())
    for each in document["changes"]:
        if each["impairments"]["loss"]:
            each["impairments"]["loss"]["shares_ppb"] = [500_000_000]
    other.link_changes.write_text(json.dumps(document))
    found = impairments_applied(Evidence(other.path))
    assert found[0].outcome is Outcome.INCONCLUSIVE
    assert "iid loss 50.0000% for " in found[0].text


@pytest.mark.full
def test_a_replay_has_the_same_impairments(folder, tmp_path):
    replayed = Replayed("first", folder.decisions, ("windtunnel", "replay", "first"))
    result = run(folder.scenario, tmp_path, replayed=replayed)
    assert result.outcome == "PASS", result.reason
    again = RunDir(result.run_dir)
    for file in ("simulation", "host_events", "link_changes"):
        assert getattr(again, file).read_text() == getattr(folder, file).read_text()
