"""Files with own checks: the names and the places that a scenario may use."""

import os

import pytest

from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.own_checks import FILES_MAX, SOURCE_BYTES_MAX, read_source

SCENARIO = """
schema: windtunnel/1
name: own
about: Checks of the user.
seeds: {{root: 1}}
network:
  hosts: [a, b]
  link: {{between: [a, b]}}
traffic:
  - id: feed
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325"
    receive: "aeron:udp?endpoint=${{b}}:24325"
    content: {{bytes: 64KiB, message: 1000B}}
expect: [delivered_once]
checks: {checks}
"""


def parsed(checks):
    return parse_scenario(SCENARIO.format(checks=checks), "own.yaml")


def test_a_scenario_names_files():
    assert parsed("[checks.py, lib/feed.py]").checks == ("checks.py", "lib/feed.py")
    assert parsed("[checks.py]").budget.checks_ns == 60 * 10**9


@pytest.mark.parametrize(
    "name",
    ["../checks.py", "/checks.py", "a/../checks.py", ".py", ".hidden.py", "checks.txt", "a//b.py",
     "checks.py/", "che cks.py", "~/checks.py", "a" * 200 + ".py"],
)  # fmt: skip
def test_other_names_are_rejected(name):
    with pytest.raises(ScenarioError, match=r"checks\[0\]"):
        parsed(f'["{name}"]')


def test_a_file_is_named_once_and_the_number_of_files_is_limited():
    with pytest.raises(ScenarioError, match=r"checks\[1\].*occurs twice"):
        parsed("[checks.py, checks.py]")
    names = ", ".join(f"c{number}.py" for number in range(FILES_MAX + 1))
    with pytest.raises(ScenarioError, match="checks"):
        parsed(f"[{names}]")
    with pytest.raises(ScenarioError, match="checks"):
        parsed("checks.py")


def test_reads_a_file_below_the_folder(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "feed.py").write_text("text")
    assert read_source(tmp_path, "lib/feed.py") == "text"


@pytest.mark.parametrize(
    ("prepare", "text"),
    [
        (lambda at: None, "No such file"),
        (lambda at: os.symlink("/etc/hostname", at), "found a symbolic link"),
        (lambda at: at.mkdir(), "found a directory"),
        (os.mkfifo, "found a FIFO"),
        (lambda at: at.write_bytes(b"\xff"), "not UTF-8"),
        (lambda at: at.write_bytes(bytes(SOURCE_BYTES_MAX + 1)), "expected at most 1048576 bytes"),
    ],
)
def test_only_regular_files_are_read(tmp_path, prepare, text):
    prepare(tmp_path / "checks.py")
    with pytest.raises(ValueError, match=text):
        read_source(tmp_path, "checks.py")


def test_no_link_on_the_way_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "checks.py").write_text("")
    (tmp_path / "lib").symlink_to("real")
    with pytest.raises(ValueError, match="found a symbolic link"):
        read_source(tmp_path, "lib/checks.py")
    with pytest.raises(ValueError, match=r"\.\."):
        read_source(tmp_path / "real", "../real/checks.py")
