"""Aeron's Java archive and this project's archive as processes, started with the same settings.

    java    the archive of the jar in AERON_ALL_JAR, with Java's media driver
    ours    python -m windtunnel.driver.archive run, and python -m windtunnel.driver beside it

Our processes are forked from an interpreter that has imported the modules, because starting an
interpreter takes longer than most of these tests; `test_server_process.py` starts one like a user.
Each archive has a folder of its own: DIR/aeron of the driver, DIR/archive of the recordings,
DIR/log.txt.
"""

import itertools
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.peer.ports import free_port
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.processes.process import LocalProcess

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0
IDLE_S = 0.001
TERM, SEGMENT, MTU = 65_536, 131_072, 1_408

JAR = os.environ.get("AERON_ALL_JAR", "")
JAVA_OPENS = ("java.base/sun.nio.ch", "java.base/jdk.internal.misc", "java.base/java.util.zip")
JAVA = (
    "java",
    # The processes are short-lived, so optimised code is not needed.
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m",
    *itertools.chain.from_iterable(("--add-opens", f"{name}=ALL-UNNAMED") for name in JAVA_OPENS),
)  # fmt: skip


def why_no_java():
    """Return the reason why Java's archive is not tested, or an empty string."""
    if not JAR:
        return "AERON_ALL_JAR is not set: expected the path of Aeron's aeron-all jar"
    if not Path(JAR).is_file():
        return f"AERON_ALL_JAR is {JAR}: expected the path of a jar, found no such file"
    return "" if shutil.which("java") else "there is no java on the PATH"


KINDS = ("ours",) if why_no_java() else ("ours", "java")
"""The archives with which each acceptance case is run. Exceptions are in
`test_both_archives.py`.
"""


def until(condition, what):
    """Wait until a condition holds, and fail after a time limit."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f"{what}: not within {TIMEOUT_S:g} s"
        time.sleep(IDLE_S)
    return found


def _settings(folder, port):
    return {
        "aeron.dir": folder / "aeron",
        "aeron.archive.dir": folder / "archive",
        "aeron.archive.control.channel": f"aeron:udp?endpoint=127.0.0.1:{port}",
        "aeron.archive.control.response.channel": "aeron:udp?endpoint=127.0.0.1:0",
        "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
        "aeron.archive.segment.file.length": SEGMENT,
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.max.concurrent.recordings": 10_000,
        "aeron.archive.max.concurrent.replays": 10_000,
        "aeron.archive.low.storage.space.threshold": 1 << 20,
        "aeron.threading.mode": "SHARED",
        "aeron.term.buffer.sparse.file": "true",
        "aeron.term.buffer.length": TERM,
        "aeron.ipc.term.buffer.length": TERM,
        "aeron.spies.simulate.connection": "true",
        "aeron.timer.interval": "100ms",
        # A delay on a busy machine must not end a client or an image.
        "aeron.client.liveness.timeout": "60s",
        "aeron.image.liveness.timeout": "30s",
        "aeron.publication.unblock.timeout": "70s",
        "aeron.publication.linger.timeout": "1s",
        "aeron.archive.connect.timeout": "60s",
        "aeron.archive.message.timeout": "60s",
    }


class Archive:
    """One archive with its driver: one Java process, or two Python processes."""

    def __init__(self, kind, folder, settings=None, class_path=()):
        self.kind, self.folder, self.port = kind, folder, free_port()
        self.settings = _settings(folder, self.port) | (settings or {})
        self._class_path = class_path
        self._processes, self._aeron = [], None

    @property
    def directory(self):
        return self.folder / "archive"

    @property
    def control_channel(self):
        return f"aeron:udp?endpoint=127.0.0.1:{self.port}"

    @property
    def is_alive(self):
        """Return whether the archive and the test's client of its driver are running."""
        is_lost = self._aeron is not None and self._aeron.is_closed
        codes = [each.poll() for each in self._processes]
        return set(codes) == {None} and not is_lost

    @property
    def _log_file(self):
        return self.folder / "log.txt"

    @property
    def log(self):
        return self._log_file.read_text(errors="replace")

    def launch(self):
        """Start the archive once its driver is ready, without waiting for the archive."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log_file.touch()
        if self.kind == "java":
            path = os.pathsep.join((os.path.abspath(JAR), *map(str, self._class_path)))
            given = (f"-D{name}={value}" for name, value in self.settings.items())
            command = (*JAVA, *given, "-cp", path, "io.aeron.archive.ArchivingMediaDriver")
            self._processes = [
                LocalProcess("java", command, env=os.environ, cwd=ROOT, log=self._log_file)
            ]
            return
        driver = self._forked("driver")
        self._processes = [driver]

        def is_ready():
            assert driver.poll() is None, f"the driver ended: {self.log[-3000:]}"
            return f"driver ready pid={driver.pid} " in self.log

        until(is_ready, "the driver")
        self._processes.insert(0, self._forked("windtunnel.driver.archive", "run"))

    def _forked(self, *words):
        settings = {
            name.upper().replace(".", "_"): str(value) for name, value in self.settings.items()
        }
        return fork_server_client.spawn(
            words[0], (sys.executable, "-m", *words), common=os.environ, env=settings, cwd=ROOT,
            log=self._log_file, network=None,
        )  # fmt: skip

    def start(self):
        """Start the archive, and wait until clients can connect."""
        self.launch()
        mark_file = self.directory / "archive-mark.dat"

        def is_ready():
            assert self.is_alive, f"{self.kind} archive ended: {self.log[-3000:]}"
            return mark_file.exists() and mark_is_ready(mark_file)

        until(is_ready, f"the {self.kind} archive")
        return self

    def exit_code(self):
        """Wait until the archive has exited by itself, then stop its driver. Returns the
        exit code.
        """
        archive, *driver = self._processes
        until(lambda: archive.poll() is not None, "the end of the archive")
        for each in driver:
            _end(each, signal.SIGTERM)
        return archive.poll()

    @property
    def aeron(self):
        """The shared client of the archive's driver."""
        if self._aeron is None:
            directory = self.folder / "aeron"
            self._aeron = Aeron(context=ClientContext(dir=directory, driver_timeout_ms=60_000))
        return self._aeron

    def kill_while_connected(self):
        """Kill the archive while clients are connected."""
        archive, *driver = self._processes
        _end(archive, signal.SIGKILL)
        for each in driver:
            _end(each, signal.SIGTERM)

    def kill(self):
        """Kill the archive before closing the test's client ends its streams."""
        for each in self._processes:
            _end(each, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def stop(self):
        """Send the archive a shutdown signal."""
        self._end(signal.SIGTERM)

    def _end(self, number):
        if self._aeron is not None:
            self._aeron.close()
            self._aeron = None
        for each in self._processes:
            _end(each, number)
        self._processes = []


def _end(process, number):
    process.send_signal(number)
    if process.wait(TIMEOUT_S) is None:
        process.kill()
        raise AssertionError(f"{process.name}: signal {number} did not end it")


ACTIVITY_AT, VERSION_AT = 16, 8


def activity_ms(mark_file):
    """Return the activity time in the mark file, or -1 after a clean shutdown."""
    with mark_file.open("rb") as file:
        return int.from_bytes(file.read(24)[ACTIVITY_AT:], "little", signed=True)


def mark_is_ready(mark_file):
    """Return whether a starting archive is ready for clients."""
    with mark_file.open("rb") as file:
        head = file.read(24)
    version = int.from_bytes(head[VERSION_AT : VERSION_AT + 4], "little")
    activity = int.from_bytes(head[ACTIVITY_AT:], "little", signed=True)
    return version != 0 and time.time() * 1000 - activity < 5_000


def make_as_old(mark_file, age_ms):
    """Set the activity time in a dead archive's mark file to the given number of ms ago."""
    then_ms = int(time.time() * 1_000) - age_ms
    with mark_file.open("r+b") as file:
        file.seek(ACTIVITY_AT)
        file.write(then_ms.to_bytes(8, "little", signed=True))
