"""The privileges that a lab needs are determined, and missing ones are named."""

import os
import sys

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs, privileges


@pytest.fixture
def without_capabilities(monkeypatch):
    monkeypatch.setattr(privileges, "effective_capabilities", lambda: 1 << privileges.CAP_NET_RAW)
    monkeypatch.setattr(privileges, "_SWITCHES", ())
    monkeypatch.delenv(privileges.REENTERED, raising=False)


@pytest.fixture
def started(monkeypatch):
    """The commands that would have replaced this process."""
    commands = []
    monkeypatch.setattr(os, "execvpe", lambda program, argv, env: commands.append((argv, env)))
    return commands


def test_missing_capabilities_are_named(without_capabilities):
    assert privileges.missing() == ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]
    with pytest.raises(LabError, match="need CAP_NET_ADMIN, CAP_SYS_ADMIN, which this process"):
        privileges.require()


def test_a_process_with_the_capabilities_continues(monkeypatch, started):
    monkeypatch.setattr(privileges, "effective_capabilities", lambda: (1 << 41) - 1)
    privileges.require()
    privileges.acquire()
    assert started == []


def test_a_command_without_them_restarts_itself_in_a_user_namespace(without_capabilities, started):
    privileges.acquire()
    ((argv, env),) = started
    assert argv[0] == "unshare"
    assert argv[argv.index("--") + 1 :] == [
        *(sys.executable, "-m", "windtunnel.harness.orchestrate.labs.privileges"),
        *sys.orig_argv,
    ]
    assert env[privileges.REENTERED] == "1"


def test_it_restarts_itself_only_once(without_capabilities, started, monkeypatch):
    monkeypatch.setenv(privileges.REENTERED, "1")
    with pytest.raises(LabError):
        privileges.acquire()
    assert started == []


def test_a_kernel_that_forbids_user_namespaces_is_quoted(
    without_capabilities, started, monkeypatch, tmp_path
):
    switch = tmp_path / "max_user_namespaces"
    switch.write_text("0\n")
    text = "sysctl user.max_user_namespaces is 0"
    monkeypatch.setattr(privileges, "_SWITCHES", ((str(switch), "0", text),))
    with pytest.raises(LabError, match=text):
        privileges.acquire()
    assert started == []


def test_missing_programs_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(labs.shutil, "which", lambda name: None if name == "tcpdump" else name)
    with pytest.raises(LabError, match=r"needs tcpdump: .* apt-get install tcpdump$"):
        labs.require("netns")


def test_an_unknown_fidelity_is_refused():
    with pytest.raises(LabError, match="expected netns, compose or sim"):
        labs.require("vm")
