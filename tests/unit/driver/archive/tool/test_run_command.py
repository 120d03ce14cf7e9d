"""`archive run`: errors of the command line or environment are reported in one line."""

import signal
from contextlib import nullcontext
from unittest.mock import MagicMock

import pytest

from windtunnel.driver.archive.conductor.archive_conductor import ArchiveFailure
from windtunnel.driver.archive.tool import run as running
from windtunnel.driver.archive.tool.program import main
from windtunnel.driver.client.errors import (
    BroadcastLappedError,
    ConductorServiceTimeoutError,
    DriverTimeoutError,
)
from windtunnel.harness.verdict.core.exit_codes import GAVE_UP_EXIT_CODE

CHANNELS = (
    "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010",
    "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run the command. The process keeps its signal handlers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AERON_DIR", str(tmp_path / "aeron"))
    monkeypatch.setenv("AERON_DRIVER_TIMEOUT", "1")
    monkeypatch.delenv("AERON_ARCHIVE_DIR", raising=False)
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run_it(*arguments):
        try:
            code = main(["run", *map(str, arguments)])
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)
        return (code, *capsys.readouterr())

    return run_it


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "AERON_ARCHIVE_CONTROL_CHANNEL must be set"),
        (CHANNELS[:1], "AERON_ARCHIVE_REPLICATION_CHANNEL must be set"),
        ((*CHANNELS, "-Daeron.archive.id"), "expected name=value, found 'aeron.archive.id'"),
        ((*CHANNELS, "-Daeron.archive.id=me"), "AERON_ARCHIVE_ID=me: expected an integer"),
        ((*CHANNELS, "nowhere.properties"), "cannot read nowhere.properties"),
        (("--nonsense",), "No such option"),
    ],
)
def test_invalid_arguments_are_rejected(run, tmp_path, arguments, part):
    code, out, err = run(*arguments)
    assert (code, out) == (64, "")
    assert part in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_a_driver_it_reports_an_error_and_leaves_no_archive(run, tmp_path):
    code, out, err = run(*CHANNELS)
    assert (code, out) == (GAVE_UP_EXIT_CODE, "")
    assert str(tmp_path / "aeron") in err
    assert err.count("\n") == 1
    assert not list((tmp_path / "aeron-archive").iterdir())


def client_closed(why):
    """Return the error of an archive's conductor whose client was closed."""
    failure = ArchiveFailure(f"the client of the media driver: {why}")
    failure.__cause__ = why
    return failure


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (client_closed(ConductorServiceTimeoutError("no turn for 11 s")), GAVE_UP_EXIT_CODE),
        (client_closed(DriverTimeoutError("no heartbeat for 10 s")), GAVE_UP_EXIT_CODE),
        (DriverTimeoutError("no heartbeat for 10 s"), GAVE_UP_EXIT_CODE),
        (client_closed(BroadcastLappedError("the driver said too much")), 2),
        (OSError("a disk broke"), 2),
    ],
)
def test_the_exit_code_depends_on_the_cause_of_the_failure(run, monkeypatch, failure, expected):
    archive = MagicMock(failure=failure)
    monkeypatch.setattr(running, "Archive", lambda settings: nullcontext(archive))
    code, _, err = run(*CHANNELS)
    assert code == expected
    assert err.endswith(f"the archive has failed: {failure}\n")


def test_the_settings_are_listed(run):
    code, out, err = run("--settings")
    assert (code, err) == (0, "")
    assert "aeron.archive.segment.file.length\n" in out
