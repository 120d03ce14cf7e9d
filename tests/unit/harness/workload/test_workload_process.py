"""The exit codes of a workload's process for each kind of end."""

import errno
import signal
from types import SimpleNamespace

import pytest

from windtunnel.driver.archive.client import ArchiveError, ArchiveTimeoutError
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.client.errors import ClientTimeoutError, RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.verdict.core.exit_codes import (
    GAVE_UP_EXIT_CODE,
    HARNESS_EXIT_CODES,
    UNSUPPORTED_EXIT_CODE,
)
from windtunnel.harness.workload import __main__ as process
from windtunnel.harness.workload.stop import GaveUp, Stopped, SubjectError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (SubjectError("found CLOSED"), 1),
        (ConfigurationError("no such folder"), 1),
        (ArchiveError("no room"), 1),
        (RegistrationError(ErrorCode.INVALID_CHANNEL, "what?"), 1),
        (RegistrationError(ErrorCode.NOT_SUPPORTED, "cannot"), UNSUPPORTED_EXIT_CODE),
        (GaveUp("found NOT_CONNECTED"), GAVE_UP_EXIT_CODE),
        (ArchiveTimeoutError("no answer within 2000 ms"), GAVE_UP_EXIT_CODE),
        (ClientTimeoutError("given up by the driver"), GAVE_UP_EXIT_CODE),
        (Stopped(signal.SIGTERM), 143),
    ],
)
def test_an_end_has_its_exit_code_and_its_last_line(error, code, monkeypatch, capsys):
    def run(options, stop):
        if error is not None:
            raise error

    assert ended(run, monkeypatch) == code
    assert capsys.readouterr().err == ("" if error is None else f"publisher: {error}\n")


def ended(run, monkeypatch) -> int:
    """Return the exit code of a publisher that executes this function."""
    monkeypatch.setitem(process.RUNS, "publisher", run)
    monkeypatch.setattr(process.options, "parse", lambda _: SimpleNamespace(role="publisher"))
    monkeypatch.setattr(process.Stop, "on_signals", lambda: None)
    return process.main([])


def raising(error):
    def work(*_):
        raise error

    return work


def within(module, work):
    """Return work that is called by a function of another module."""
    space = {"__name__": module, "work": work}
    exec("def call(*_): work()", space)
    return space["call"]


TAP, CLIENT = "windtunnel.harness.workload.tap", "windtunnel.driver.client.image.image"


@pytest.mark.parametrize(
    ("modules", "error"),
    [
        ((TAP,), OSError(errno.ENOSPC, "No space left on device")),
        ((TAP,), MemoryError("cannot allocate")),
        ((TAP,), KeyError("a defect of ours")),
        ((TAP, CLIENT), KeyError("a defect of ours, which the client has called")),
        ((CLIENT,), OSError(errno.ENOSPC, "No space left on device")),
        ((CLIENT,), MemoryError("cannot allocate")),
        (("numpy.core", TAP, CLIENT), ValueError("a library's word about what we gave it")),
    ],
)
def test_an_exception_of_the_harness_is_not_the_subjects_fault(modules, error, monkeypatch, capsys):
    run = raising(error)
    for module in modules:
        run = within(module, run)
    code = ended(run, monkeypatch)
    assert code == process.HARNESS_FAILED
    assert code in HARNESS_EXIT_CODES
    *log, last = capsys.readouterr().err.splitlines()
    assert log[0].startswith("Traceback")
    whose = "the workload itself failed, not the subject"
    assert last == f"publisher: {whose}: {type(error).__name__}: {error}"


@pytest.mark.parametrize("modules", [(CLIENT,), (CLIENT, TAP), ("numpy.core", CLIENT, TAP)])
def test_an_exception_of_the_client_is_the_subjects_fault(modules, monkeypatch, capsys):
    run = raising(IndexError("out of bounds"))
    for module in modules:
        run = within(module, run)
    assert ended(run, monkeypatch) == process.SUBJECT_FAILED
    assert capsys.readouterr().err.endswith(
        "publisher: the client failed: IndexError: out of bounds\n"
    )


def test_a_case_that_cannot_be_read_is_not_the_subjects_fault(monkeypatch, capsys):
    monkeypatch.setattr(process.options, "parse", raising(FileNotFoundError("case.json")))
    assert process.main([]) == process.HARNESS_FAILED
    assert "FileNotFoundError: case.json" in capsys.readouterr().err


class FullDisk:
    """A log on a disk that is full."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self):
        pass


def test_a_log_that_cannot_be_written_changes_no_exit_code(monkeypatch):
    monkeypatch.setattr(process.sys, "stderr", FullDisk())
    assert ended(raising(MemoryError()), monkeypatch) == process.HARNESS_FAILED
