"""Applications that a program requests from a live lab."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.harness.middlebox.synthetic_case import case
from windtunnel.harness.orchestrate.live.application_request import (
    ApplicationRequest,
    application_request,
)
from windtunnel.harness.orchestrate.live.live_scenario import OptionError


def request(where: Path, **changed: Any) -> ApplicationRequest:
    document = {"on": "a", "command": ["true"], "folder": str(where), **changed}
    return application_request(document, case(), lambda name: name)


def test_addresses_are_substituted(tmp_path: Path) -> None:
    found = request(tmp_path, command=["x", "${b}:5"], env={"X": "${a}"}).case
    assert found.command == ("x", "10.64.0.19:5")
    assert found.env == {"X": "10.64.0.3"}
    assert found.ends_at_any_time


def test_environment_and_folder_are_those_of_the_program(tmp_path: Path) -> None:
    around = request(tmp_path, variables={"PATH": "/x"}).surroundings
    assert (around.folder, around.variables) == (tmp_path, {"PATH": "/x"})


def test_in_containers_an_application_may_have_an_image(tmp_path: Path) -> None:
    document = {"on": "a", "image": "example/feed:1.2", "folder": str(tmp_path)}
    document["limits"] = {"memory": "64MiB", "cpus": 0.5}
    found = application_request(document, case(), lambda name: name, "compose").case
    assert (found.id, found.image, found.command) == ("feed-1", "example/feed:1.2", ())
    assert (found.memory_bytes, found.milli_cpus) == (64 << 20, 500)
    with pytest.raises(OptionError, match="image: this key needs a container"):
        application_request(document, case(), lambda name: name)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "feed.py"], "feed"),
        (["/usr/bin/java", "-jar", "My_Gateway-1.2.jar"], "my-gateway-1-2"),
        (["python", "-c", "print()"], "python"),
        (["./7z"], "application-7z"),
        (["..."], "application"),
    ],
)
def test_a_name_comes_from_the_command(tmp_path: Path, command: list[str], name: str) -> None:
    assert request(tmp_path, command=command).case.id == name


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"folder": "/absent/folder"}, "working folder /absent/folder does not exist"),
        ({"variables": {"PATH": 3}}, "variables: expected names and texts"),
        ({"name": "No Name"}, "id"),
        ({"ready": {"log": ""}}, "ready.log"),
        ({"command": []}, "command"),
    ],
)
def test_wrong_requests_are_refused(tmp_path: Path, changed: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        request(tmp_path, **changed)
