"""Applications in a scenario file: valid ones, and the places of errors."""

import pytest
import yaml

from tests.unit.harness.scenario.applications.sample import SAMPLE, changed
from tests.unit.harness.scenario.test_json_schema import accepts
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.loader import parse_scenario

APPLICATION = "applications:\n  - {id: one, on: a, command: [true-program]}\n"


def test_reads_applications_without_traffic():
    service, client = parse_scenario(SAMPLE, "made.yaml").applications
    assert service.ready is not None
    assert (service.host, service.driver, service.ready.within_ns) == ("b", "shared", 20 * 10**9)
    assert (service.stop.signal, service.stop.within_ns) == ("INT", 3 * 10**9)
    assert (service.expect.exit_code, service.expect.ends_by_itself) == (7, False)
    assert (client.driver, client.expect.exit_code) == ("embedded", None)
    assert client.stop.signal == "TERM"


def test_the_json_schema_accepts_them_without_traffic():
    # PyYAML reads the key `on` as a boolean.
    document = yaml.safe_load(SAMPLE.replace(" on:", " 'on':"))
    assert accepts(document)
    del document["applications"]
    assert not accepts(document)


def test_a_text_that_only_yaml_1_1_takes_for_a_number_is_passed_as_written():
    written = "{TIME: 12:30:45, CODE: 012, PART: 7:30.5, NUMBER: 12, LIST: '012'}"
    text = changed('env: {WHERE: "${aeron.dir}/x", PEER: "${a}"}', f"env: {written}")
    env = parse_scenario(text, "made.yaml").applications[0].env
    assert env == {
        "TIME": "12:30:45",
        "CODE": "012",
        "PART": "7:30.5",
        "NUMBER": "12",
        "LIST": "012",
    }


@pytest.mark.parametrize(
    ("written", "number"),
    [("1.10", 1.1), ("1_000", 1000), ("0x10", 16), ("+5", 5), ("1.0e+3", 1000.0), (".5", 0.5)],
)
def test_a_number_in_another_form_than_its_own_needs_quotes(written, number):
    """A program would get 1.1 where the scenario says 1.10."""
    text = changed('env: {WHERE: "${aeron.dir}/x", PEER: "${a}"}', "env: {VERSION: NUMBER}")
    fault = f"expected a text in quotes: without them, {written} is the number {number}"
    assert [*faults_of(text.replace("NUMBER", written))] == [
        f"made.yaml:12:11: applications[0].env.VERSION: {fault}, so write '{written}' or {number}"
    ]
    for accepted, passed in ((f"'{written}'", written), (str(number), str(number))):
        scenario = parse_scenario(text.replace("NUMBER", accepted), "made.yaml")
        assert scenario.applications[0].env == {"VERSION": passed}
    drivers = f"drivers: {{a: {{AERON_FILE_PAGE_SIZE: {written}}}}}\nbudget:"
    assert any("drivers.a.AERON_FILE_PAGE_SIZE" in each and fault in each for each in faults_of(
        changed("budget:", drivers)))  # fmt: skip


def test_has_one_fidelity_by_default():
    assert parse_scenario(SAMPLE, "made.yaml").fidelity == ("netns",)


def test_may_be_combined_with_traffic():
    scenario = parse_scenario(GOOD.replace("faults:\n", f"{APPLICATION}faults:\n"), "made.yaml")
    assert [each.id for each in scenario.applications] == ["one"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('[service, --listen, "${b}:24325", "${scenario.dir}/settings"]', "service --listen",
         "11:5: applications[0].command: expected a list of words, such as"),
        ('"${b}:24325"', "24325", "11:34: applications[0].command[2]: expected a text"),
        ("${b}:24325", "${c}:24325", "11:34: applications[0].command[2]: expected a host or dire"),
        ("${scenario.dir}", "${scenario.die}", "did you mean scenario.dir?"),
        ("[service, --listen", "['', --listen", "11:15: applications[0].command[0]: expected the"),
        ("on: b", "on: c", "10:5: applications[0].on: expected a host of the network, found 'c'"),
        ("ready: {log: \"service started\"}", "ready: {}", "applications[0].ready.log: this key"),
        ("service started", "", "13:13: applications[0].ready.log: expected at least 1 characters"),
        ("signal: INT", "signal: SIGINT", "14:12: applications[0].stop.signal: expected '"),
        ("within: 3s", "within: 11min", "14:25: applications[0].stop.within: expected at most"),
        ("exit: 7", "exit: 256", "15:14: applications[0].expect.exit: expected at most"),
        ("exit: 7", "code: 7", "15:14: applications[0].expect.code: unknown key"),
        ("WHERE: ", "1WHERE: ", "applications[0].env"),
        ("WHERE: \"${aeron.dir}/x\"", "WHERE: []", "12:11: applications[0].env.WHERE: expected"),
        ("id: client", "id: service", "16:5: applications[1].id: 'service' occurs twice"),
        ("driver: embedded", "image: example/feed:1.2", "19:5: applications[1].image: this key"),
        ("driver: embedded", "image: 'a b'", "applications[1].image: expected a text that matches"),
        ("driver: embedded", "limits: {cpus: 1}", "19:5: applications[1].limits: this key needs"),
        ("driver: embedded", "limits: {cpus: 0}", "applications[1].limits.cpus: expected "),
        ("driver: embedded", "limits: {memory: 1MiB}", "applications[1].limits.memory: expected "),
        ('    command: ["${harness.python}", client.py]\n', "",
         "applications[1].command: this key is missing, and there is no `image`"),
        ("{ends_by_itself: true}", "{}", "8:1: applications: nothing ends the run: expected `tr"),
        ("    driver: embedded", "    driver: none\n    env: {D: '${aeron.dir}'}",
         "20:11: applications[1].env.D: `driver: none` has no ${aeron.dir}"),
        ("budget:", "fidelity: [netns, sim]\nbudget:", "21:19: fidelity[1]: sim does not start"),
        ("budget:", "expect: [delivered_once]\nbudget:", "21:10: expect[0]: checks apply to `tra"),
        ("budget:", "faults: [{id: f, where: {link: both}, what: {type: DATA}, act: {drop: 1%}}]\n"
         "budget:", "faults[0]: rule 'f' applies to no frame, because the scenario has no `traf"),
    ],
)  # fmt: skip
def test_locates_an_error(old, new, fault):
    assert any(fault in each for each in faults_of(changed(old, new)))


EVENT = "events: [{id: e, whom: {WHOM}, when: {WHEN}, act: {kill: {restart_after: 1s}}}]\nbudget:"


@pytest.mark.parametrize(
    ("target", "when", "fault"),
    [
        ("host: a, process: application, application: client", "after: 1s", ""),
        ("host: b, process: application", "after: 1s", ""),
        ("host: a", "after: 1s", ""),
        ("host: a, application: client", "after: 1s", "whom: expected `process: application`, fo"),
        ("host: b, process: application, application: client", "after: 1s",
         "whom.application: expected an application on host b, found 'client'"),
        ("host: a, process: publisher", "after: 1s", "host a has no publisher"),
        ("host: a, process: application", "delivered: 1B", "there is no traffic: use `after`"),
        ("host: a, process: application", "after: 20s", "occurs or ends after budget.wall"),
    ],
)  # fmt: skip
def test_events_affect_applications(target, when, fault):
    text = changed("budget:", EVENT.replace("WHOM", target).replace("WHEN", when))
    if not fault:
        assert parse_scenario(text, "made.yaml").events
    else:
        assert any(fault in each for each in faults_of(text))


def test_an_image_and_limits_are_for_containers():
    image = "image: example/feed:1.2\n    limits: {memory: 512MiB, cpus: 1.5, processes: 9}"
    text = changed('command: ["${harness.python}", client.py]', f"{image}\n    user: 1000")
    assert len(faults_of(text)) == 3
    assert len(faults_of(f"fidelity: [netns, compose]\n{text}")) == 3
    scenario = parse_scenario(f"fidelity: [compose]\n{text}", "made.yaml")
    client = scenario.applications[1]
    assert (client.image, client.command) == ("example/feed:1.2", ())
    assert (client.limits.memory_bytes, client.limits.cpus) == (512 << 20, 1.5)
    assert client.user == "1000"


def test_another_user_needs_an_image():
    text = changed("driver: embedded", "user: 1000")
    found = faults_of(f"fidelity: [compose]\n{text}")
    assert len(found) == 1
    assert "applications[1].user: another user than root needs an `image` of yours" in found[0]


@pytest.mark.parametrize("user", ["app", "'1000:'", "-1", "'1:2:3'", "10000000000", "''"])
def test_a_user_is_a_number(user):
    text = changed("driver: embedded", f"user: {user}")
    assert any(
        "applications[1].user: expected a text that matches" in each for each in faults_of(text)
    )


def test_a_scenario_needs_traffic_or_applications():
    start, end = SAMPLE.index("applications:"), SAMPLE.index("budget:")
    found = faults_of(SAMPLE[:start] + SAMPLE[end:])
    assert found[:2] == (
        "made.yaml:1:1: expect: this key is missing",
        "made.yaml:1:1: traffic: this key is missing",
    )


def test_traffic_needs_checks_despite_applications():
    text = GOOD.replace("faults:\n", f"{APPLICATION}faults:\n")
    text = text.replace("expect:\n  - delivered_once\n  - rcv_pos_reaches_end: {within: 5ms}\n", "")
    assert faults_of(text) == ("made.yaml:1:1: expect: this key is missing",)


def test_impairments_without_traffic_needs_an_application_at_the_link():
    text = changed("hosts: [a, b]", "hosts: [a, b, c, d]").replace(
        "link: {between: [a, b], impairments: {both: {delay: 5ms}}}",
        "links: [{between: [a, b]}, {between: [c, d], impairments: {both: {delay: 5ms}}}]",
    )
    assert any("neither a stream nor an application" in each for each in faults_of(text))
