"""How the process of a workload ends: its exit code says what sort of end it was."""

import signal
from types import SimpleNamespace

import pytest

from driver.archive.client import ArchiveError, ArchiveTimeoutError
from driver.base.errors import ConfigurationError
from driver.client.errors import ClientTimeoutError, RegistrationError
from driver.command.command_type import ErrorCode
from harness.verdict.subject import GAVE_UP_EXIT_CODE, UNSUPPORTED_EXIT_CODE
from harness.workload import __main__ as process
from harness.workload.stop import GaveUp, Stopped, SubjectError


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
def test_an_end_has_its_exit_code_and_its_last_words(error, code, monkeypatch, capsys):
    def run(options, stop):
        if error is not None:
            raise error

    chosen = SimpleNamespace(role="publisher")
    monkeypatch.setitem(process.RUNS, "publisher", run)
    monkeypatch.setattr(process.options, "parse", lambda _: chosen)
    monkeypatch.setattr(process.Stop, "on_signals", lambda: None)
    assert process.main([]) == code
    assert capsys.readouterr().err == ("" if error is None else f"publisher: {error}\n")
