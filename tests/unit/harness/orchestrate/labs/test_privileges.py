"""What a process may do here is found out, and what it lacks is named."""

import os
import sys

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs, privileges


@pytest.fixture
def powerless(monkeypatch):
    monkeypatch.setattr(privileges, "effective_capabilities", lambda: 1 << privileges.CAP_NET_RAW)
    monkeypatch.setattr(privileges, "_SWITCHES", ())
    monkeypatch.delenv(privileges.REENTERED, raising=False)


@pytest.fixture
def started(monkeypatch):
    """The commands that would have taken the place of this process."""
    commands = []
    monkeypatch.setattr(os, "execvpe", lambda program, argv, env: commands.append((argv, env)))
    return commands


def test_missing_capabilities_are_named(powerless):
    assert privileges.missing() == ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]
    with pytest.raises(LabError, match="need CAP_NET_ADMIN, CAP_SYS_ADMIN, which this process"):
        privileges.require()


def test_any_caller_has_them_goes_on(monkeypatch, started):
    monkeypatch.setattr(privileges, "effective_capabilities", lambda: (1 << 41) - 1)
    privileges.require()
    privileges.acquire()
    assert started == []


def test_a_command_without_them_starts_itself_again_in_a_user_namespace(powerless, started):
    privileges.acquire()
    ((argv, env),) = started
    assert argv[0] == "unshare"
    assert argv[argv.index("--") + 1 :] == [
        *(sys.executable, "-m", "windtunnel.harness.orchestrate.labs.privileges"),
        *sys.orig_argv,
    ]
    assert env[privileges.REENTERED] == "1"


def test_it_does_so_only_once(powerless, started, monkeypatch):
    monkeypatch.setenv(privileges.REENTERED, "1")
    with pytest.raises(LabError):
        privileges.acquire()
    assert started == []


def test_a_kernel_that_forbids_user_namespaces_is_quoted(powerless, started, monkeypatch, tmp_path):
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
