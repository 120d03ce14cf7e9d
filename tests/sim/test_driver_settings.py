"""Simulated drivers read the settings of the recovery modes as real drivers do."""

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.host.counter_sample import read_counters
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: settings
about: 5 % of the data is lost, and every message is delivered.
seeds: {root: 3}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: {mean: 20ms}}}}
traffic:
  - id: stream
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=1m|mtu=1408"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 256KiB, message: {from: 1376B, to: 1376B}}
faults:
  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 5%}}
expect: [delivered_once, naks_paced, retransmits_spaced, gap_counters_agree]
budget: {wall: 60s}
"""
SETTINGS = {"WINDTUNNEL_NAK_ALL_GAPS": "true", "WINDTUNNEL_RETRANSMIT_RANGES": "true"}
COUNTERS = {"a": "snd-retransmit-ranges", "b": "rcv-gaps-open"}


def has_counter(folder, host, name):
    labels = [each.label for each in read_counters(folder.host(host).counters)]
    return any(each.startswith(f"{name}:") for each in labels)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("settings", [SETTINGS, {}], ids=["set", "not set"])
def test_simulated_drivers_have_the_modes_that_the_environment_sets(
    settings, tmp_path, monkeypatch
):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "settings.yaml"
    file.write_text(SCENARIO)
    summary = run(file, tmp_path)
    assert summary.outcome == "PASS", summary.reason
    folder = RunDir(summary.run_dir)
    subjects = Manifest.read(folder.manifest).subjects
    assert [each.settings for each in subjects.values()] == [settings, settings]
    found = {host: has_counter(folder, host, name) for host, name in COUNTERS.items()}
    assert found == dict.fromkeys(COUNTERS, bool(settings))
