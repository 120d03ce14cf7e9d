"""An archive that was stopped for longer than the client liveness timeout of its driver ends, and
says why. Aeron's archive crashes: see docs/findings/archive-after-its-client.md.
"""

import os
import signal
import time
from contextlib import contextmanager

import pytest

from tests.archive.archives import JAR, JAVA, Archive, until, why_no_java
from tests.archive.conversation import ControlSession
from tests.archive.streams import Recorded
from windtunnel.harness.orchestrate.processes.process import LocalProcess

SETTINGS = {"aeron.client.liveness.timeout": "2s"}
STOPPED_S = 4
ATTEMPTS = 10
ABORTED = -signal.SIGABRT


class JavaArchive(Archive):
    """Aeron's archive with this project's driver, each in a process."""

    def launch(self):
        self.folder.mkdir(parents=True)
        self._log_file.touch()
        driver = self._forked("driver")
        until(lambda: f"driver ready pid={driver.pid} " in self.log, "the driver")
        given = (f"-D{name}={value}" for name, value in self.settings.items())
        # The report of a crash goes to the log, and not to a file in the working directory.
        command = (*JAVA, "-XX:+ErrorFileToStdout", *given, "-cp", os.path.abspath(JAR))
        archive = LocalProcess(
            "java", (*command, "io.aeron.archive.Archive"), env=os.environ, cwd=self.folder,
            log=self._log_file,
        )  # fmt: skip
        self._processes = [archive, driver]


def stop_for_too_long(archive):
    """Stop an archive with active recordings for longer than its client may be silent. Returns its
    exit code.
    """
    session = ControlSession(archive.start())
    for _ in range(3):
        Recorded(session).send(1)
    process = archive._processes[0]
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    process.send_signal(signal.SIGCONT)
    return archive.exit_code()


@contextmanager
def stopped(archive):
    """Stop an archive for too long. Yields its exit code."""
    try:
        yield stop_for_too_long(archive)
    finally:
        archive._aeron = None
        archive.kill()


@pytest.mark.full(keep=1)
def test_ours_ends_with_the_reason(tmp_path):
    archive = Archive("ours", tmp_path / "own", SETTINGS)
    with stopped(archive) as code:
        assert code == 124
        text = "the archive has failed: the client of the media driver: the driver timed out"
        assert text in archive.log


@pytest.mark.full
@pytest.mark.skipif(bool(why_no_java()), reason=why_no_java())
def test_java_crashes(tmp_path):
    """The threads of the archive race for the end: nine of twelve attempts crashed."""
    for attempt in range(ATTEMPTS):
        archive = JavaArchive("java", tmp_path / f"java-{attempt}", SETTINGS)
        with stopped(archive) as code:
            assert code in (0, ABORTED)
            if code == ABORTED:
                assert "SIGSEGV" in archive.log
                assert "io.aeron.archive.ArchiveConductor.closeRecordingSession" in archive.log
                return
    pytest.fail(f"no crash in {ATTEMPTS} attempts")
