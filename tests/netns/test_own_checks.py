"""Own checks read the log, stream and driver of an application on real hosts."""

from pathlib import Path

import pytest
import yaml

from tests.netns.test_lab import CHANNEL, OBSERVE, READER, SENDER, python
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.netns,
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
CHECKS = """
from windtunnel.harness.checks import check

@check
def has_all_evidence(evidence):
    if "publication ready" not in list(evidence.log_lines("sender")):
        yield "the log lacks a line"
    (stream,) = evidence.streams
    if (stream.stream_id, stream.sources, stream.is_observed) != (1001, ("a",), True):
        yield f"found {stream}"
    sent = {each.position for each in evidence.frames("a", source="a", type="DATA")}
    arrived = {each.position for each in evidence.frames("b", source="a", type="DATA")}
    if not arrived or arrived - sent:
        yield f"{len(sent)} frames were sent, {len(arrived)} arrived"
    ends = [each.final_value for each in evidence.counters("a") if each.type_id == 2]
    if len(ends) != 1 or ends[0] <= max(sent):
        yield f"snd-pos ends at {ends}, after {max(sent)}"
    (row,) = evidence.results()
    if not row.reached_bytes_per_s:
        yield f"no goodput in {row}"

@check
def fails(evidence):
    return evidence.fidelity
"""


def application(name: str, host: str, code: str, ready: str) -> dict[str, object]:
    command = ["${harness.python}", *python(code)[1:]]
    env = {"CHANNEL": CHANNEL}
    return {"id": name, "on": host, "command": command, "env": env, "ready": {"log": ready}}


def test_own_checks_read_what_applications_did(tmp_path: Path) -> None:
    document = {
        "schema": "windtunnel/1",
        "name": "made/own-checks",
        "about": "Made for a test.",
        "seeds": {"root": 1},
        "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
        "applications": [
            application("reader", "b", READER, "subscription ready"),
            application("sender", "a", SENDER, "publication ready"),
            {"id": "clock", "on": "a", "command": ["sleep", "2"], "driver": "none",
             "expect": {"ends_by_itself": True}},
        ],
        "observe": OBSERVE,
        "checks": ["checks.py"],
    }  # fmt: skip
    file = tmp_path / "own-checks.yaml"
    file.write_text(yaml.safe_dump(document))
    (tmp_path / "checks.py").write_text(CHECKS)
    made = run_suite([file], out=tmp_path / "runs", seeds=1, allow_commands=True)
    verdict = read_verdict(RunDir(made.runs[0].run_dir).verdict)
    assert verdict is not None
    found = {each["name"]: each for each in verdict["checks"] if each["about"] == "checks.py"}
    assert found["has_all_evidence"]["outcome"] == "PASS", found
    # The machine excuses it if it was overloaded.
    assert found["fails"]["outcome"] in ("FAIL", "INCONCLUSIVE")
    assert found["fails"]["text"].endswith("netns")
    if found["fails"]["outcome"] == "FAIL":
        assert found["fails"]["at_fault"] == "application"
