"""Limits of observed streams and of reported round trips are checked during a partition."""

import time
from pathlib import Path

import pytest
import yaml

from tests.netns.test_lab import CHANNEL, OBSERVE, READER, SENDER, python
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.lab import open_lab
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
LIMITS = {
    "goodput_at_least": "1KiB/s",
    "silence_at_most": "400ms",
    "recovers_within": "20s",
    "back_pressure_at_most": "60s",
    "images_at_most": 1,
}


@pytest.mark.full
def test_a_partition_exceeds_only_the_limit_of_silence(tmp_path: Path) -> None:
    env = {"CHANNEL": CHANNEL}
    observe = [{**OBSERVE[0], "expect": LIMITS}]
    with open_lab(delay="2ms", observe=observe, out=tmp_path) as lab:
        lab.start("b", python(READER), env=env, ready="subscription ready")
        sender = lab.start("a", python(SENDER), env=env, ready="publication ready")
        lab.wait_for_position("b", stream=1001, at_least=20_000, within=60)
        with lab.link("a-b").partitioned():
            time.sleep(1)
        sent = lab.wait_for_counter("a", "snd-pos", stream=1001, at_least=60_000, within=60)
        sender.stop()
        lab.wait_for_position("b", stream=1001, at_least=sent, within=60)
    found = {each["name"]: each for each in lab.verdict.checks if "observed_" in each["name"]}
    outcomes = {name: each["outcome"] for name, each in found.items()}
    # The machine excuses it if it was overloaded.
    assert outcomes.pop("observed_silence") in ("FAIL", "INCONCLUSIVE")
    assert set(outcomes.values()) == {"PASS"}, lab.verdict.reason
    assert {"observed_goodput", "observed_recovery", "observed_images"} <= set(outcomes)
    assert outcomes["observed_back_pressure"] == "PASS"
    assert "after the partition of " in found["observed_recovery"]["text"]
    assert found["observed_silence"]["position"] > 0
    assert "no new data for " in lab.verdict.reason


REPORTS = "for value in (1, 2, 900): print('WT RTT', value * 1000000, flush=True)"


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("limit", "outcome"), [("1s", "PASS"), ("800ms", "FAIL")])
def test_reported_round_trips_have_a_limit(tmp_path: Path, limit: str, outcome: str) -> None:
    expect = {"ends_by_itself": True, "round_trips": {"p50_at_most": "2ms", "p99_at_most": limit}}
    command = ["${harness.python}", "-c", REPORTS]
    document = {
        "schema": "windtunnel/1",
        "name": "made/round-trips",
        "about": "Made for a test.",
        "seeds": {"root": 1},
        "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
        "applications": [{"id": "client", "on": "a", "command": command, "expect": expect}],
    }
    file = tmp_path / "round-trips.yaml"
    file.write_text(yaml.safe_dump(document))
    made = run_suite([file], out=tmp_path / "runs", seeds=1, allow_commands=True)
    verdict = read_verdict(RunDir(made.runs[0].run_dir).verdict)
    assert verdict is not None
    assert (verdict["outcome"] == "PASS") == (outcome == "PASS"), verdict["reason"]
    texts = [each["text"] for each in verdict["checks"] if each["name"] == "reported_round_trips"]
    assert "3 round trips of client: p50 2 ms; p99 900 ms" in texts[0]
