"""Applications in a resolved case, also in one that was read from an untrusted folder."""

import json

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE, resolved
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.resolved.case import Case


def test_addresses_are_substituted_and_directories_are_not():
    service, client = resolved().applications
    assert service.command == ("service", "--listen", "10.0.1.3:24325", "${scenario.dir}/settings")
    assert service.env == {"WHERE": "${aeron.dir}/x", "PEER": "10.0.0.3"}
    assert (service.ready_log, service.exit_code) == ("service started", 7)
    assert (client.ready_log, client.exit_code, client.ends_by_itself) == ("", None, True)


def test_is_read_as_it_was_written(tmp_path):
    resolved().write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == resolved()


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("host", "c", "expected one of a, b, found 'c'"),
        ("stop_within_ns", 0, "expected 1 to 600000000000, found 0"),
        ("ready_within_ns", -1, "expected 0 to"),
        ("exit_code", 256, "expected 0 to 255, found 256"),
        ("log_never", ["x" * 201], "expected at most 200 characters"),
        ("log_never", [""], "expected no empty text"),
        ("log_never", ["x"] * 17, "expected 0 to 16, found 17"),
        ("id", "../x", "string should match"),
        ("id", "client", "expected distinct names"),
    ],
)
def test_rejects_invalid_values(tmp_path, key, value, text):
    document = json.loads(resolved().to_json())
    document["applications"][0][key] = value
    (tmp_path / "case.json").write_text(json.dumps(document))
    with pytest.raises(DocumentError, match=text):
        Case.read(tmp_path / "case.json")


def test_explain_states_when_the_time_of_an_event_starts_and_what_is_judged():
    events = "events:\n  - {id: freeze, whom: {host: b, process: application}, "
    events += "when: {after: 1s}, act: {pause: 2s}}\nbudget:"
    text = SAMPLE.replace("budget:", events)
    case = resolved(text)
    lines = [each.strip() for each in explain(case).splitlines()]
    moment = "1s after all applications were ready"
    assert f"freeze: the applications on b paused for 2s, {moment}" in lines
    assert "checks    applications_ran" in lines


def test_explain_describes_applications():
    lines = [each.strip() for each in explain(resolved()).splitlines()]
    start = lines.index(
        "applications (started in this order, and only with `run --allow-commands`)"
    )
    assert lines[start + 1 : start + 11] == [
        "service on b: service --listen 10.0.1.3:24325 '${scenario.dir}/settings'",
        "WHERE='${aeron.dir}/x'",
        "PEER=10.0.0.3",
        "uses the driver of its host",
        "ready when its log contains 'service started', within 20s",
        "ended with SIGINT, within 3s: expected exit code 7",
        "its log must not contain 'Exception'",
        "client on a: '${harness.python}' client.py",
        "has a driver of its own",
        "ends by itself, with exit code 0",
    ]
    assert lines[-1] == "checks    applications_ran"
