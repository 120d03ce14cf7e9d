"""The arguments and the output of `windtunnel lab`. tests/netns uses a real lab."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from windtunnel.harness.cli.lab.lab import status_lines
from windtunnel.harness.cli.root import windtunnel

STATUS: dict[str, Any] = {
    "run_dir": "runs/x",
    "addresses": {"a": "10.0.0.3", "b": "10.0.0.19"},
    "links": [
        {
            "from": "a",
            "to": "b",
            "partitioned": False,
            "impairments": {"loss": "2%", "delay": "5ms"},
        },
        {"from": "b", "to": "a", "partitioned": True, "impairments": {}},
    ],
    "applications": [
        {"id": "feed", "host": "a", "exit_code": None, "ready": True, "log": "feed.log"},
        {"id": "slow", "host": "a", "exit_code": None, "ready": False, "log": "slow.log"},
        {"id": "old", "host": "b", "exit_code": 3, "ready": False, "log": "old.log"},
    ],
}


def invoke(*arguments: str) -> tuple[Result, list[dict[str, Any]]]:
    """Run a command whose requests are answered, and return the requests."""
    asked: list[dict[str, Any]] = []

    def ask(name: str, request: dict[str, Any]) -> dict[str, Any]:
        asked.append({"lab": name, **request})
        return STATUS if request["do"] == "status" else {"code": 0, "application": "x", "log": "y"}

    with patch("windtunnel.harness.lab.control.control_socket.ask", ask):
        result = CliRunner().invoke(windtunnel, ["lab", *arguments])
    return result, [each for each in asked if each["do"] != "status"]


def test_links_and_programs_are_shown() -> None:
    assert status_lines(STATUS) == [
        "run folder: runs/x",
        "link a->b: loss 2%, delay 5ms",
        "link b->a: partitioned",
        "a/feed: running, log feed.log",
        "a/slow: not ready, log slow.log",
        "b/old: ended with exit code 3, log old.log",
    ]


def test_the_result_of_lab_down_shows_the_seed() -> None:
    end = {"outcome": "PASS", "reason": "good", "seed": 9, "run_dir": "runs/x"}
    with patch("windtunnel.harness.lab.control.control_socket.ask", lambda *_: end):
        result = CliRunner().invoke(windtunnel, ["lab", "down"])
    assert "lab  seed 9  good" in result.output


def bring_up_with(*arguments: str) -> tuple[Result, list[dict[str, Any]]]:
    """Run `lab up` without a lab, and return the options with which it would have been opened."""
    opened: list[dict[str, Any]] = []
    found = {"addresses": {}, "aeron_dirs": {}, "run_dir": "runs/x"}

    def bring_up(name: str, options: dict[str, Any], on_progress: object) -> dict[str, Any]:
        opened.append(options)
        return found

    with patch("windtunnel.harness.lab.control.launch.bring_up", bring_up):
        result = CliRunner().invoke(windtunnel, ["lab", "up", *arguments])
    return result, opened


def test_timeouts_are_options_of_the_lab() -> None:
    arguments = ["--timeouts", "client_liveness=5s", "--observe", "all", "--reorder", "1%/5"]
    result, (options,) = bring_up_with(*arguments)
    assert result.exit_code == 0, result.output
    assert (options["timeouts"], options["observe"]) == ({"client_liveness": "5s"}, "all")
    assert options["links"][0]["impairments"]["both"] == {"reorder": {"share": "1%", "gap": 5}}


def test_drivers_and_their_settings_are_options_of_the_lab() -> None:
    _, (options,) = bring_up_with("--driver", "java")
    assert options["driver"] == {"a": "java", "b": "java"}
    settings = ["--setting", "a:AERON_X=1=2", "--setting", "a:AERON_Y=", "--setting", "b:AERON_X=3"]
    _, (options,) = bring_up_with("--driver", "b=aeronmd:/x=y", *settings)
    assert options["driver"] == {"a": "ours", "b": "aeronmd:/x=y"}
    assert options["drivers"] == {"a": {"AERON_X": "1=2", "AERON_Y": ""}, "b": {"AERON_X": "3"}}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--driver", "java", "--driver", "a=ours"), "one driver for all hosts, or HOST=PEER"),
        (("--driver", "c=java"), "driver: expected one of the hosts a, b, found 'c'"),
        (("--setting", "AERON_X=1"), "expected HOST:NAME=VALUE"),
    ],
)
def test_wrong_drivers_are_refused(arguments: tuple[str, ...], text: str) -> None:
    result, opened = bring_up_with(*arguments)
    assert result.exit_code != 0
    assert text in result.output
    assert not opened


def test_queue_and_reordering_have_values_of_their_own_type() -> None:
    _, asked = invoke("impair", "a-b", "--queue", "50", "--reorder", "1%/5")
    assert asked[0]["impairments"] == {"queue": 50, "reorder": {"share": "1%", "gap": 5}}
    _, asked = invoke("impair", "a-b", "--queue", "none", "--reorder", "1%")
    assert asked[0]["impairments"] == {"queue": None, "reorder": {"share": "1%"}}
    for wrong in (["--queue", "x"], ["--reorder", "1%/x"]):
        result, asked = invoke("impair", "a-b", *wrong)
        assert (result.exit_code, asked) == (2, [])


def test_an_impairment_is_changed_in_one_direction() -> None:
    _, asked = invoke("impair", "a-b", "--loss", "10%", "--delay", "none", "--to", "b")
    assert asked == [
        {
            "lab": "lab", "do": "link", "action": "impair", "between": ["a", "b"], "to": "b",
            "impairments": {"loss": "10%", "delay": None},
        }
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["partition", "reconnect", "heal"])
def test_a_link_is_named_by_its_hosts(action: str) -> None:
    result, asked = invoke(action, "b-a", "--name", "other")
    assert result.exit_code == 0
    assert [(each["lab"], each["action"], each["between"]) for each in asked] == [
        ("other", action, ["b", "a"])
    ]


def test_a_driver_is_named_by_its_host_and_a_program_by_its_name() -> None:
    assert invoke("pause", "a")[1][0]["host"] == "a"
    assert invoke("kill", "feed")[1][0]["application"] == "feed"


def test_a_program_starts_in_the_current_folder_with_its_options() -> None:
    _, asked = invoke("start", "a", "--ready", "up", "--env", "X=1", "--", "java", "-jar", "x.jar")
    (request,) = asked
    assert request["command"] == ["java", "-jar", "x.jar"]
    assert request["ready"] == {"log": "up", "within": "20000ms"}
    assert request["env"] == {"X": "1"}
    assert request["folder"] == str(Path.cwd())


def test_a_wrong_argument_is_named() -> None:
    assert "expected at least one impairment" in invoke("impair", "a-b")[0].output
    assert "expected two of the hosts a, b" in invoke("heal", "a-c")[0].output
    result, _ = invoke("up", "--observe", "1001:a:b")
    assert "expected STREAM:FROM:TO:CHANNEL" in result.output


def test_without_a_lab_every_command_reports_it(tmp_path: Path) -> None:
    runner = CliRunner(env={"XDG_RUNTIME_DIR": str(tmp_path)})
    for arguments in (["status"], ["down"], ["heal", "a-b"], ["start", "a", "true"]):
        result = runner.invoke(windtunnel, ["lab", *arguments])
        assert result.exit_code == 1
        assert "no lab is up: start one with `windtunnel lab up`" in result.output
