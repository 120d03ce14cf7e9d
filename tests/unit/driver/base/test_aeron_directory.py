"""Driver and client compute the same default directory."""

from pathlib import Path

import pytest

from windtunnel.driver.base import aeron_directory
from windtunnel.driver.base.aeron_directory import default_directory
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.media_driver.context import Context


@pytest.mark.parametrize(
    ("environment", "has_shared_memory", "parent", "name"),
    [
        ({"USER": "ann", "TMPDIR": "/var/tmp"}, True, None, "aeron-ann"),
        ({"USER": "ann", "TMPDIR": "/var/tmp"}, False, "/var/tmp", "aeron-ann"),
        ({"USER": "ann", "TMPDIR": ""}, False, "/tmp", "aeron-ann"),
        ({"LOGNAME": "bob"}, False, "/tmp", "aeron-carl"),
        ({"USER": ""}, False, "/tmp", "aeron-carl"),
    ],
)
def test_the_default_directory(tmp_path, monkeypatch, environment, has_shared_memory, parent, name):
    monkeypatch.setattr(aeron_directory, "_name_of_user", lambda: "carl")
    shared = tmp_path if has_shared_memory else tmp_path / "none"
    assert default_directory(environment, shared) == Path(parent or tmp_path) / name


def test_a_user_without_a_name_has_a_default_directory(monkeypatch):
    def no_user(_):
        raise KeyError

    monkeypatch.setattr(aeron_directory.pwd, "getpwuid", no_user)
    assert default_directory({}).name == "aeron-default"


def test_driver_and_client_agree(monkeypatch):
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert Context().dir == ClientContext().dir
    assert Context().dir.name == "aeron-somebody"
