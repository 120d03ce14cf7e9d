"""Attacks a running archive: an epoch is a directory in which several archives live and are killed.

    life: start --> check earlier recordings --> hostile requests, recordings --> SIGKILL
      |                                                                              |
      '---- recover <-- refused <-- damage the catalog (after some kills) <----------'

A life begins with a new media driver. At the end of an epoch, the last archive is stopped in order,
and `windtunnel archive verify` must find all recordings valid. Equal seeds lead to equal requests,
kills and damage, but their order relative to the archive's work depends on the machine.
"""

import contextlib
import io
import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.tool.program import main as archive_tool
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.fuzz.archive.checked_recordings import CheckedClient, Recording
from windtunnel.harness.fuzz.archive.damages import DAMAGES
from windtunnel.harness.fuzz.archive.hostile_sessions import SESSIONS, HostileSession
from windtunnel.harness.fuzz.archive.messages import hostile_message
from windtunnel.harness.fuzz.archive_process import MARK_FILE, ArchiveProcess
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.commands import REGULAR_IDS_FROM
from windtunnel.harness.fuzz.driver_attack import DEFECT, GROWTH_BYTES_MAX
from windtunnel.harness.fuzz.finding import Input, Violation
from windtunnel.harness.fuzz.waiting import Waiting

EPOCH_REQUESTS, LIVES = 2_000, 4
BURST = 40
PATIENCE_S = 60.0
LAST_LOOP_S = 0.15
"""Longest time of recording between the last request of a life and the kill."""
DAMAGE_SHARE = 3
"""One kill in so many is followed by damage."""
LIMITS = {
    "AERON_ARCHIVE_MAX_CONCURRENT_RECORDINGS": "10000",
    "AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS": "10000",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "30s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "40s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "10s",
}
"""One client may use all recordings and replays of an archive; this is documented, and not tested.
"""
_TORN = re.compile(r"the last frame of recording (\d+), at position \d+, may be torn")
_ADVICE = "windtunnel archive recover --dir"


@dataclass
class Counts:
    """How much an attack has done so far."""

    requests: int = 0
    kills: int = 0
    damages: int = 0
    refusals: int = 0
    recoveries: int = 0
    torn: int = 0
    """Kills after which the last frame of a recording was torn, and had to be cut off."""
    recordings: int = 0
    replays: int = 0
    epochs: int = 0
    slowest_s: float = 0.0
    """The longest time for which the checked client waited for an answer."""


class ArchiveAttack:
    """An attack on archives in a directory."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed, self.counts = seed, Counts()
        self.folder = folder / "archive-attack"
        self.inputs: list[Input] = []
        self.recordings: list[Recording] = []
        self._hostile: list[HostileSession] = []
        self._client: CheckedClient | None = None

    def epoch(self, number: int, requests: int, lives: int = LIVES) -> None:
        """Run one epoch of random inputs. Raises Violation if a check fails."""
        self._run(self._random_lives(random.Random(f"{self.seed}/{number}"), requests, lives))
        self.counts.epochs += 1

    def replay(self, inputs: list[Input]) -> None:
        """Repeat the inputs of a finding. Raises Violation if a check fails again."""
        self._run(_lives_of(inputs))

    def _random_lives(
        self, chance: random.Random, requests: int, lives: int
    ) -> Iterator[list[Input]]:
        for _ in range(lives):
            made = [
                Input("request", chance.randrange(SESSIONS), hostile_message(chance))
                for _ in range(requests // lives)
            ]
            kill_us = int(chance.random() * LAST_LOOP_S * 1e6)
            made.append(Input("kill", kill_us, b""))
            if chance.randrange(DAMAGE_SHARE) == 0:
                kind = chance.randrange(len(DAMAGES))
                made.append(Input("damage", kind, chance.randbytes(8)))
            yield made

    def _run(self, lives: Iterator[list[Input]]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.inputs.clear()
        self.recordings = []
        for inputs in lives:
            with self._alive() as process:
                for index, item in enumerate(each for each in inputs if each.kind == "request"):
                    self._send(item)
                    if index % BURST == 0:
                        self._turn(process)
                (kill, *_), damage = (
                    [each for each in inputs if each.kind == kind] for kind in ("kill", "damage")
                )
                self._kill(process, kill)
            for item in damage:
                self._damage(item)
        with self._alive() as process:
            if process.stop() != 0:
                raise Violation(f"the archive did not stop cleanly: {process.output()[-2_000:]}")
        self._tool("verify", "-a", "--read-only")

    @contextlib.contextmanager
    def _alive(self) -> Iterator[ArchiveProcess]:
        """Start an archive with its clients, and check all recordings of earlier lives."""
        port = free_ports(4)[0]
        channel = f"aeron:udp?endpoint={LOOPBACK}:{port}"
        with ExitStack() as stack:
            process = stack.enter_context(ArchiveProcess(self.folder, channel, LIMITS))
            self._start(process)
            _raise_ids(process.driver.directory)
            checked, hostile = (
                stack.enter_context(_client(process.driver.directory)) for _ in range(2)
            )
            is_local = len(self.recordings) % 4 == 0
            self._client = CheckedClient(
                checked, "aeron:ipc" if is_local else channel,
                "aeron:ipc" if is_local else f"aeron:udp?endpoint={LOOPBACK}:0",
            )  # fmt: skip
            for recording in self.recordings:
                self._client.check(recording)
                self.counts.replays += 1
            self._record(port)
            self._hostile = [HostileSession(hostile, number, channel) for number in range(SESSIONS)]
            self._resident = process.memory().anonymous
            yield process
            self.counts.slowest_s = max(self.counts.slowest_s, self._client.slowest_s)

    def _record(self, port: int) -> None:
        assert self._client is not None
        for medium in ("aeron:ipc?", f"aeron:udp?endpoint={LOOPBACK}:{port + 1}|"):
            recording = Recording(len(self.recordings), f"{medium}term-length=64k|ssc=true")
            self.recordings.append(recording)
            self._client.record(recording)
            self.counts.recordings += 1

    def _start(self, process: ArchiveProcess) -> None:
        """Start the archive. If it refuses, do what its message advises, once."""
        for _ in range(2):
            waiting = Waiting(process.launch().pid)
            before = _segments(process.directory)
            while not process.is_ready():
                code = process.wait(0)
                if code is not None:
                    break
                if waiting.seconds() > PATIENCE_S:
                    raise Violation(f"the archive was not ready within {PATIENCE_S:g} s")
                time.sleep(0.002)
            else:
                return
            output = process.output()
            if code != 2 or "Traceback" in output:
                raise Violation(f"the archive ended with exit code {code}: {output[-2_000:]}")
            if _segments(process.directory) != before:
                raise Violation("an archive that refused to start has changed segment files")
            self._mend(output, before)
        raise Violation(f"the archive refused to start a second time: {output[-2_000:]}")

    def _mend(self, output: str, before: dict[str, bytes]) -> None:
        self.counts.refusals += 1
        torn = _TORN.search(output)
        if torn is not None:
            self.counts.torn += 1
            self._tool("verify", torn[1], "--truncate")
        elif _ADVICE in output:
            self._tool("recover", codes=(0, 2))
            self.counts.recoveries += 1
            if _segments(self.folder / "archive") != before:
                raise Violation("`archive recover` has changed segment files")
        else:
            raise Violation(f"the archive refused to start without advice: {output[-2_000:]}")

    def _tool(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = archive_tool([*words, "--dir", str(self.folder / "archive")])
        if code not in codes:
            text = output.getvalue()[-2_000:]
            raise Violation(f"`archive {' '.join(words)}` ended with exit code {code}: {text}")

    def _send(self, item: Input) -> None:
        assert self._client is not None
        self.inputs.append(item)
        session = self._hostile[item.target % SESSIONS]
        guarded = {each.recording_id for each in self.recordings}
        deadline_s = time.monotonic() + PATIENCE_S
        while not session.send(item.content, self._client.control_session_id, guarded):
            self._client.publish(1)
            session.drain()
            if time.monotonic() > deadline_s:
                raise Violation(f"the archive read no requests for {PATIENCE_S:g} s")
            time.sleep(0.0002)
        self.counts.requests += 1

    def _turn(self, process: ArchiveProcess) -> None:
        """Let the checked client work, and check the archive."""
        assert self._client is not None
        process.check()
        for session in self._hostile:
            session.drain()
        self._client.publish(4)
        self._client.acknowledge()

    def _kill(self, process: ArchiveProcess, item: Input) -> None:
        """Kill the archive while the checked client is publishing."""
        assert self._client is not None
        self.inputs.append(item)
        self._client.settle()
        self._check(process)
        end_s = time.monotonic() + item.target / 1e6
        while time.monotonic() < end_s:
            self._client.publish(8)
            self._client.acknowledge()
        self._client.publish(100)
        process.kill()
        self._client.close()
        self.counts.kills += 1

    def _check(self, process: ArchiveProcess) -> None:
        grown = process.memory().anonymous - self._resident
        if grown > GROWTH_BYTES_MAX:
            raise Violation(f"the archive's memory has grown by {grown >> 20} MiB")
        errors = mark_file.read_error_log(process.directory / MARK_FILE)
        for text in (process.output(), *(each.text for each in errors)):
            if DEFECT.search(text):
                raise Violation(f"the archive reports a Python exception: {text[-2_000:]}")

    def _damage(self, item: Input) -> None:
        self.inputs.append(item)
        path = self.folder / "archive" / "archive.catalog"
        damage = DAMAGES[item.target % len(DAMAGES)]
        content = damage(random.Random(item.content), path.read_bytes())
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        self.counts.damages += 1


def _lives_of(inputs: list[Input]) -> Iterator[list[Input]]:
    """Split inputs into lives, each of which ends with a kill and the damage that follows it."""
    life: list[Input] = []
    for item in inputs:
        if life and life[-1].kind in ("kill", "damage") and item.kind == "request":
            yield life
            life = []
        life.append(item)
    if life:
        yield [*life, Input("kill", 0, b"")]


@contextlib.contextmanager
def _client(directory: Path) -> Iterator[Aeron]:
    context = ClientContext(dir=directory, driver_timeout_ms=int(PATIENCE_S * 1_000))
    with Aeron(context=context) as aeron:
        yield aeron


def _raise_ids(directory: Path) -> None:
    """Let the driver's ids begin where no number of a hostile request is."""
    cnc = open_existing(directory, writable=True)
    ring = cnc.to_driver
    at = ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID
    put_i64(ring, at, REGULAR_IDS_FROM)
    cnc.close()


def _segments(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.rec")}
