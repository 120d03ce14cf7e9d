"""A sweep over a scenario with applications, which extends another file."""

import json
from pathlib import Path

import pytest
import yaml

from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.reports.page import write_suite_report

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
FEED = """
import os, time
from windtunnel.driver.client import Aeron
with Aeron() as aeron:
    feed = aeron.add_publication(os.environ["FEED"], 1001)
    for number in range(int(os.environ["COUNT"])):
        while feed.offer(b"%1000d" % number) < 0:
            time.sleep(0.0005)
"""
READER = """
import os, time
from windtunnel.driver.client import Aeron
got = []
with Aeron() as aeron:
    feed = aeron.add_subscription(os.environ["FEED"], 1001)
    print("reader ready", flush=True)
    while len(got) < int(os.environ["COUNT"]):
        if not feed.poll(lambda message, header: got.append(int(bytes(message)))):
            time.sleep(0.0005)
assert got == list(range(len(got)))
"""
CHANNEL = "aeron:udp?endpoint=${b}:24325|term-length=64k"
ENDS = {"ends_by_itself": True}


def application(name: str, host: str, program: str, **keys: object) -> dict[str, object]:
    command = ["${harness.python}", "-c", program]
    env = {"FEED": CHANNEL, "COUNT": "1"}
    return {"id": name, "on": host, "command": command, "env": env, "expect": ENDS, **keys}


BASE = {
    "schema": "windtunnel/1",
    "name": "base",
    "about": "A feed and its reader.",
    "seeds": {"root": 3},
    "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
    "applications": [
        application("reader", "b", READER, ready={"log": "reader ready"}),
        application("feed", "a", FEED),
    ],
    "observe": [{"id": "feed", "stream": 1001, "channel": CHANNEL, "from": "a", "to": "b"}],
}
MINE = {
    "name": "mine",
    "extends": "base.yaml",
    "applications": [{"id": name, "env": {"COUNT": 300}} for name in ("reader", "feed")],
    "sweep": {"delay": ["1ms", "100ms"]},
}


def test_goodput_of_an_observed_stream_is_shown_over_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(json.dumps(BASE))
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(MINE))
    with pytest.raises(ScenarioError, match="allow them with `windtunnel run"):
        run_suite([file], out=tmp_path / "runs")
    result = run_suite([file], out=tmp_path / "runs", allow_commands=True)
    assert [(each.scenario, each.outcome) for each in result.runs] == [
        ("mine/delay-1ms", "PASS"),
        ("mine/delay-100ms", "PASS"),
    ], result.runs
    rows = []
    for each in result.runs:
        (row,) = (read_verdict(RunDir(each.run_dir).verdict) or {})["results"]
        rows.append(row)
    # At most one window of half a term is sent per round trip, the first one without waiting.
    windows = 300 * 1024 / 32768
    assert rows[1]["reached_bytes_per_s"] < 300 * 1024 / ((windows - 2) * 0.2)
    assert rows[0]["reached_bytes_per_s"] > 2 * rows[1]["reached_bytes_per_s"]
    suite = json.loads(SuiteDir(result.suite_dir).document.read_text())
    assert [each["settings"] for each in suite["runs"]] == [{"delay": "1ms"}, {"delay": "100ms"}]
    page = write_suite_report(result.suite_dir).read_text(encoding="utf-8")
    for text, row in zip(("1ms", "100ms"), rows, strict=True):
        assert f"<title>{text}: {row['reached_bytes_per_s'] / 1e6:.4g}</title>" in page
    # The run folder has the whole scenario, and the command that repeats this variant.
    stored = yaml.safe_load(RunDir(result.runs[0].run_dir).scenario.read_text())
    assert stored["applications"][1]["env"] == {"FEED": CHANNEL, "COUNT": 300}
    assert "--set delay=1ms" in RunDir(result.runs[0].run_dir).repro.read_text()
