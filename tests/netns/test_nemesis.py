"""Events that a seed draws, and what befalls applications on real hosts."""

from pathlib import Path

import pytest
import yaml

from tests.netns.test_applications import CLIENT, READY, SERVICE, program
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.link_change import LinkChanges

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]
# The client asks 40 times a second, so that it is still there when the events come.
SLOW_CLIENT = CLIENT.replace("import socket, sys", "import socket, sys, time").replace(
    "while count < 40:", "while count < 120:\n    time.sleep(0.025)"
)


def run(folder: Path, seed: int, **more: object) -> RunDir:
    document = {
        "schema": "windtunnel/1",
        "name": "made/nemesis",
        "about": "Made for a test.",
        "seeds": {"root": seed},
        "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
        "applications": [
            program("service", "b", SERVICE, ready=READY, expect={"log_never": ["Traceback"]}),
            program("client", "a", SLOW_CLIENT, expect={"ends_by_itself": True}),
        ],
        "budget": {"wall": "60s"},
        **more,
    }
    file = folder / "nemesis.yaml"
    file.write_text(yaml.safe_dump(document))
    made = run_suite([file], out=folder / "runs", seeds=1, allow_commands=True)
    return RunDir(made.runs[0].run_dir)


def nemesis(*acts: str, **more: object) -> dict[str, object]:
    every, lasts = {"from": "100ms", "to": "300ms"}, {"from": "200ms", "to": "400ms"}
    drawn = {"acts": list(acts), "applications": ["service"], "every": every, "lasts": lasts}
    return {**drawn, **more}


def test_the_events_of_the_seed_befall_the_applications_and_the_links(tmp_path: Path) -> None:
    folder = run(tmp_path, 5, nemesis=nemesis("pause", "kill", "partition", events=4))
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    drawn = Case.read(folder.case).events
    happened = read_applied_events(folder.host_events)
    assert happened is not None
    assert {each.action for each in drawn} == {"pause", "kill", "partition"}
    assert [(each.id, each.action, each.host) for each in happened] == [
        (each.id, each.action, each.host) for each in drawn
    ]
    cut = [each.id for each in drawn if each.action == "partition"]
    changes = LinkChanges.read(folder.link_changes)
    assert changes is not None
    assert len(changes.changes) == 4 * len(cut)
    log = folder.host("a").application("client").log.read_text()
    assert "again" in log


def test_a_written_partition_is_in_the_verdict(tmp_path: Path) -> None:
    cut = {"id": "cut", "whom": {"host": "a"}, "when": {"after": "500ms"}}
    folder = run(tmp_path, 1, events=[{**cut, "act": {"partition": "600ms"}}])
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    texts = [each["text"] for each in verdict["gates"]]
    assert any("partition of host a for" in each for each in texts), texts
    assert any("iid loss 100.0000% for" in each for each in texts), texts


def test_events_that_are_due_after_the_end_do_not_happen(tmp_path: Path) -> None:
    late = nemesis("kill", events=2, every={"from": "8s", "to": "9s"})
    folder = run(tmp_path, 1, nemesis=late)
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    assert read_applied_events(folder.host_events) == []
