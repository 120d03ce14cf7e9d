"""What a benchmark measures and with which settings.

stream cases    udp-1344, udp-32, ipc-32    a source and a sink, as fast as it goes
echo cases      rtt-udp, rtt-ipc            a ping and a pong, one message at a time
startup                                     a driver alone
archive-1344, archive-64                    recorded and replayed over shared memory
swarm                                       simulated trials, of our driver alone
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["stream", "echo", "startup", "swarm", "archive"]
Medium = Literal["udp", "ipc", ""]

FIRST_STREAM_ID = 1001
STREAMS_PER_CASE = 2
SWARM = "swarm"
ARCHIVE = "archive"
"""Stands for all cases of an archive."""
SWARM_FRAMES = 10_000
"""Asked for in each trial; streams that must fit a bound of bytes have fewer."""
ECHO_MESSAGE_LENGTH = 32
IDLES = ("yield", "spin", "sleep")
THREADING_MODES = ("DEDICATED", "SHARED_NETWORK", "SHARED")


@dataclass(frozen=True)
class BenchCase:
    """One thing to measure."""

    name: str
    kind: Kind
    medium: Medium = ""
    message_length: int = 0
    about: str = ""


CASES = (
    BenchCase("startup", "startup", about="from the start of the process to a ready cnc file"),
    BenchCase("udp-1344", "stream", "udp", 1344, "messages of 1344 bytes over loopback"),
    BenchCase("udp-32", "stream", "udp", 32, "messages of 32 bytes over loopback"),
    BenchCase("ipc-32", "stream", "ipc", 32, "messages of 32 bytes through shared memory"),
    BenchCase("rtt-udp", "echo", "udp", ECHO_MESSAGE_LENGTH, "there and back over loopback"),
    BenchCase("rtt-ipc", "echo", "ipc", ECHO_MESSAGE_LENGTH, "there and back in shared memory"),
    BenchCase("archive-1344", "archive", "ipc", 1344, "recorded, then replayed"),
    BenchCase("archive-64", "archive", "ipc", 64, "the same with messages of 64 bytes"),
    BenchCase(SWARM, "swarm", about="trials on virtual time, one after the other on one core"),
)
CASE_NAMES = tuple(case.name for case in CASES)
GROUPS = {ARCHIVE: tuple(case.name for case in CASES if case.kind == "archive")}
"""Names that stand for several cases."""


def stream_id(case: BenchCase) -> int:
    """The first of the case's own stream ids: what a case before left behind is not its business.

    A driver keeps a closed IPC stream until its linger is over, and readers would still join it.
    """
    return FIRST_STREAM_ID + STREAMS_PER_CASE * CASE_NAMES.index(case.name)


@dataclass(frozen=True)
class BenchSettings:
    """How a benchmark goes about it; texts such as `2m` go into channels as they are."""

    rounds: int = 3
    seconds: float = 2.0
    warm_up_s: float = 1.0
    cases: tuple[str, ...] = CASE_NAMES
    drivers: tuple[str, ...] = ("ours", "c", "java")
    """`c` has no archive, and of `java` nothing but the archive is measured."""
    window: str = "2m"
    """Receiver window and socket buffers of UDP channels."""
    term_length: str = "16m"
    mtu: str = ""
    """Empty: the driver's own."""
    threading_mode: str = "DEDICATED"
    client_idle: str = "yield"
    both_set: dict[str, str] = field(default_factory=dict)
    """Variables of both drivers' environments."""
    ours_set: dict[str, str] = field(default_factory=dict)
    """Variables of our driver's alone; they win."""
    recording_bytes: int = 512 << 20
    """The most that one recording takes; it is gone before there is another."""

    def chosen(self) -> list[BenchCase]:
        """The cases to measure of a driver, start-up first."""
        others = (SWARM, ARCHIVE)
        return [case for case in CASES if case.name in self.cases and case.kind not in others]

    def archive_cases(self) -> list[BenchCase]:
        """The cases to measure of an archive."""
        return [case for case in CASES if case.name in self.cases and case.kind == ARCHIVE]


def channel(medium: Medium, settings: BenchSettings, port: int) -> str:
    """The channel URI of a stream; `port` is unused where there is none."""
    parts = [f"term-length={settings.term_length}"]
    if settings.mtu:
        parts.append(f"mtu={settings.mtu}")
    if medium == "ipc":
        return f"aeron:ipc?{'|'.join(parts)}"
    window = settings.window
    parts += [f"rcv-wnd={window}", f"so-rcvbuf={window}", f"so-sndbuf={window}"]
    return f"aeron:udp?{'|'.join([f'endpoint=127.0.0.1:{port}', *parts])}"
