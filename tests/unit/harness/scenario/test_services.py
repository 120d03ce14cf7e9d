"""Applications from services of a compose file, and keys that such a service must not have."""

import pytest

from windtunnel.harness.scenario.loader import ScenarioError, load_scenario, load_variants

SCENARIO = """\
schema: windtunnel/1
name: made/service
about: Made for a test.
seeds: {root: 1}
fidelity: [compose]
network: {hosts: [a, b], link: {between: [a, b]}}
applications:
  - {id: feed, on: b, compose: %s, expect: {ends_by_itself: true}}
"""
NAMED = "{file: docker-compose.yaml, service: feed}, env: {PEER: '${a}'}"
FEED = """\
services:
  feed:
    build: {context: ./feed, dockerfile: Dockerfile}
    image: example/feed:1
    command: feed --rate "5 6" $$HOME
    environment: {RATE: 5, PEER: none, LOUD: true}
    user: 1000
    working_dir: /opt
    ports: ["80:80"]
    privileged: false
    x-note: anything
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docker-compose.yaml").write_text(FEED)
    return tmp_path


def load(folder, named=NAMED):
    file = folder / "made.yaml"
    file.write_text(SCENARIO % named)
    return load_scenario(file).applications[0]


def service(folder, line):
    (folder / "docker-compose.yaml").write_text(
        f"services:\n  feed:\n    image: feed\n    {line}\n"
    )
    return load(folder)


def test_a_service_is_an_application(folder):
    found = load(folder)
    assert (found.build, found.image, found.user, found.working_dir) == (
        "feed",
        None,
        "1000",
        "/opt",
    )
    assert found.command == ("feed", "--rate", "5 6", "$HOME")
    # Values of the scenario itself have precedence.
    assert found.env == {"RATE": "5", "PEER": "${a}", "LOUD": "true"}
    assert found.compose is None


def test_the_run_folder_gets_a_scenario_that_needs_no_other_file(folder):
    load(folder)
    (made,) = load_variants(folder / "made.yaml")
    assert "build: feed" in made.text
    assert "docker-compose" not in made.text


def test_keys_of_the_scenario_replace_those_of_the_service(folder):
    found = load(folder, NAMED + ", image: 'example/other:2', command: [other]")
    assert (found.image, found.build, found.command) == ("example/other:2", None, ("other",))


def test_a_folder_is_relative_to_the_compose_file(folder):
    (folder / "deploy").mkdir()
    (folder / "deploy" / "compose.yml").write_text("services: {feed: {build: .}}\n")
    assert load(folder, "{file: deploy/compose.yml, service: feed}").build == "deploy"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("privileged: true", "4:5: services.feed.privileged: an application has no more rights"),
        ("cap_add: [NET_ADMIN]", "services.feed.cap_add: an application has no more rights"),
        ("volumes: ['/:/host']", "services.feed.volumes: an application has no more rights"),
        ("network_mode: host", "services.feed.network_mode: an application has no more rights"),
        ("pid: host", "services.feed.pid: an application has no more rights than others"),
        ("devices: [/dev/kvm]", "services.feed.devices: an application has no more rights"),
        ("entrypoint: sh", "services.feed.entrypoint: this key of a service is not supported"),
        ("stop_signal: SIGINT", "write `stop: {signal: ...}` of the application"),
        ("surprise: 1", "services.feed.surprise: this key of a service is not supported: remove"),
        ("command: [echo, $HOME]", "services.feed.command: variables of the shell are not filled"),
        ("command: 5", "services.feed.command: expected a list of words"),
        ("command: feed 'a b", "cannot be separated into words (No closing quotation), found"),
        ("command: feed 'a b", "write a list of words"),
        ("environment: [{A: b}]", "expected NAME=VALUE, found a table of 1 item"),
        ("environment: [RATE]", "services.feed.environment: variable RATE has no value"),
        ("environment: {RATE: }", "services.feed.environment: variable RATE has no value"),
        ("environment: 5", "services.feed.environment: expected a table, or a list"),
        ("user: node", "services.feed.user: expected numbers, such as 1000"),
        ("working_dir: src", "services.feed.working_dir: expected a path that begins with /"),
        ("build: {context: ., target: x}", "services.feed.build: target: only a folder with a"),
        ("build: ../feed", "services.feed.build: expected a folder below that of the compose"),
        ("build: /feed", "services.feed.build: expected a folder below that of the compose file"),
        ("container_name: &name x", "anchor &name is not supported: write the value again"),
    ],
)
def test_locates_an_error_in_the_compose_file(folder, line, error):
    with pytest.raises(ScenarioError) as found:
        service(folder, line)
    text = str(found.value)
    assert error in text
    assert text.startswith(str(folder / "docker-compose.yaml"))


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ("{file: docker-compose.yaml, service: fed}",
         "applications[0].compose: docker-compose.yaml: expected a service, found 'fed': did you"),
        ("{file: docker-compose.yaml}", "applications[0].compose: expected {file: "),
        ("{file: ../docker-compose.yaml, service: feed}", "expected a file in the folder of this"),
        ("{file: /etc/passwd, service: feed}", "expected a file in the folder of this one"),
        ("{file: absent.yaml, service: feed}", "absent.yaml: No such file or directory"),
        ("{file: link.yaml, service: feed}", "link.yaml: expected a regular file, found a symbol"),
        ("{file: list.yaml, service: feed}", "list.yaml: expected `services`"),
        (f"{NAMED}, build: feed, image: feed", "build: expected `image` or `build`, found both"),
    ],
)  # fmt: skip
def test_locates_an_error_in_the_scenario(folder, named, error):
    (folder / "link.yaml").symlink_to(folder / "docker-compose.yaml")
    (folder / "list.yaml").write_text("[services]\n")
    with pytest.raises(ScenarioError) as found:
        load(folder, named)
    assert error in str(found.value)
    assert str(found.value).startswith(f"{folder / 'made.yaml'}:8:")
