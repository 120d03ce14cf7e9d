"""Events that a seed draws are applied to applications and links of real hosts."""

from pathlib import Path

import pytest

from tests.netns.test_applications import CLIENT, READY, SERVICE, program, yaml_of
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChanges

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]
# The client sends 40 requests per second, so that it still runs when the events are due.
SLOW_CLIENT = CLIENT.replace("import socket, sys", "import socket, sys, time").replace(
    "while count < 40:", "while count < 120:\n    time.sleep(0.025)"
)


# Both programs reconnect after their driver was killed.
CONNECTS = """
import os, time
from windtunnel.driver.client import Aeron, ClientError
count = 0
def take(payload, header):
    global count
    count += 1
while count < 600:
    try:
        with Aeron() as aeron:
            WORK
        print("again:", aeron.failure, flush=True)
    except ClientError as error:
        print("again:", error, flush=True)
"""
FEED = CONNECTS.replace(
    "WORK",
    """stream = aeron.add_publication(os.environ["FEED"], 1001)
            print("ready", flush=True)
            while not aeron.is_closed:
                stream.offer(b"tick")
                time.sleep(0.01)""",
)
READER = CONNECTS.replace(
    "WORK",
    """stream = aeron.add_subscription(os.environ["FEED"], 1001)
            print("ready", flush=True)
            while count < 600 and not aeron.is_closed:
                if not stream.poll(take):
                    time.sleep(0.001)""",
)


def run(folder: Path, seed: int, peer: str = "ours", **more: object) -> RunDir:
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
    file.write_text(yaml_of(document))
    out = folder / "runs"
    tested = peers.pair(peer, peer, "netns", out / peers.STORE)
    made = run_suite([file], out=out, seeds=1, tested=tested, allow_commands=True)
    return RunDir(made.runs[0].run_dir)


def nemesis(*acts: str, **more: object) -> dict[str, object]:
    every, lasts = {"from": "100ms", "to": "300ms"}, {"from": "200ms", "to": "400ms"}
    drawn = {"acts": list(acts), "applications": ["service"], "every": every, "lasts": lasts}
    return {**drawn, **more}


def test_the_events_of_the_seed_are_applied_to_applications_and_links(tmp_path: Path) -> None:
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


def test_drawn_impairments_are_applied_to_all_links_of_a_host(tmp_path: Path) -> None:
    ways = [{"loss": "20%"}, {"delay": "3ms"}]
    folder = run(tmp_path, 2, nemesis=nemesis("impair", events=4, impair=ways))
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    drawn = Case.read(folder.case).events
    assert len({each.impairments[0].model_dump_json() for each in drawn}) == 2
    changes = LinkChanges.read(folder.link_changes)
    assert changes is not None
    found = [each.impairments for each in changes.changes]
    # The link has no impairments of its own, which it has again after each event.
    own = [ImpairmentCase(link=each) for each in ("a->b", "b->a")]
    assert found == [each for event in drawn for each in (*event.impairments, *own)]


def test_a_partition_of_the_scenario_is_in_the_verdict(tmp_path: Path) -> None:
    cut = {"id": "cut", "whom": {"host": "a"}, "when": {"after": "500ms"}}
    folder = run(tmp_path, 1, events=[{**cut, "act": {"partition": "600ms"}}])
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    texts = [each["text"] for each in verdict["gates"]]
    assert any("partition of host a for" in each for each in texts), texts
    assert any("iid loss 100.0000% for" in each for each in texts), texts


@pytest.mark.full
def test_events_that_are_due_after_the_end_do_not_happen(tmp_path: Path) -> None:
    late = nemesis("kill", events=2, every={"from": "8s", "to": "9s"})
    folder = run(tmp_path, 1, nemesis=late)
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    assert read_applied_events(folder.host_events) == []


@pytest.mark.full
@pytest.mark.parametrize("peer", ["ours", "pyaeron"])
def test_applications_that_reconnect_survive_kills_of_their_drivers(
    tmp_path: Path, peer: str
) -> None:
    if peer != "ours":
        pytest.importorskip(peer)
    keys = {"env": {"FEED": "aeron:udp?endpoint=${b}:24325|term-length=64k"}}
    feed = program("feed", "a", FEED, ready=READY, expect={"log_never": ["Traceback"]}, **keys)
    ends = {"ends_by_itself": True, "log_never": ["Traceback"]}
    reader = program("reader", "b", READER, ready=READY, expect=ends, **keys)
    kills = {"acts": ["kill"], "applications": [], "drivers": ["a", "b"], "events": 3}
    every, lasts = {"from": "1s", "to": "2s"}, {"from": "300ms", "to": "600ms"}
    folder = run(
        tmp_path,
        1,
        peer,
        applications=[feed, reader],
        observe="all",
        timeouts={"driver": "1s", "client_liveness": "3s"},
        nemesis={**kills, "every": every, "lasts": lasts},
    )
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    happened = read_applied_events(folder.host_events)
    assert happened is not None
    assert {(each.action, each.host, *each.processes) for each in happened} == {
        ("kill", "a", "driver"),
        ("kill", "b", "driver"),
    }
    assert all(each.ended_ns for each in happened)
    # What cannot be known after a kill is reported as unknown, and not as passed.
    texts = [each["text"] for each in verdict["checks"] if each["name"] == "observed_streams"]
    assert any("killed a driver" in each for each in texts), texts
    for host, name in (("a", "feed"), ("b", "reader")):
        assert "again" in folder.host(host).application(name).log.read_text()
