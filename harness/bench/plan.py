"""The cases that a benchmark measures, and its settings.

stream cases    udp-1344, udp-32, ipc-32    a source and a sink, at full speed
echo cases      rtt-udp, rtt-ipc            a ping and a pong, one message at a time
call cases      python-offer, python-poll   single offers or polls from Python, each driver
                                            with its own client
startup                                     a driver alone
archive-1344, archive-64                    recorded and replayed over shared memory
swarm                                       simulated trials, of Windtunnel's driver alone
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["stream", "echo", "offer", "poll", "startup", "swarm", "archive"]
Medium = Literal["udp", "ipc", ""]

FIRST_STREAM_ID = 1001
STREAMS_PER_CASE = 2
SWARM = "swarm"
ARCHIVE = "archive"
"""Name of the group that contains all archive cases."""
SWARM_FRAMES = 10_000
"""Frames requested in each simulated trial. Streams with a low byte limit have fewer."""
ECHO_MESSAGE_LENGTH = 32
IDLES = ("yield", "spin", "sleep")
THREADING_MODES = ("DEDICATED", "SHARED_NETWORK", "SHARED")


@dataclass(frozen=True)
class BenchCase:
    """One case that a benchmark measures: a kind of load on a driver or an archive."""

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
    BenchCase("rtt-udp", "echo", "udp", ECHO_MESSAGE_LENGTH, "round trip over loopback"),
    BenchCase("rtt-ipc", "echo", "ipc", ECHO_MESSAGE_LENGTH, "round trip through shared memory"),
    BenchCase("python-offer", "offer", "ipc", 32, "single offers from Python, by each client"),
    BenchCase("python-poll", "poll", "ipc", 32, "single polls from Python, by each client"),
    BenchCase("archive-1344", "archive", "ipc", 1344, "recorded, then replayed"),
    BenchCase("archive-64", "archive", "ipc", 64, "the same with messages of 64 bytes"),
    BenchCase(SWARM, "swarm", about="trials on virtual time, one after the other on one core"),
)
CALLS: tuple[Kind, ...] = ("offer", "poll")
"""Kinds of cases that measure a client's calls instead of a driver."""
CASE_NAMES = tuple(case.name for case in CASES)
GROUPS = {ARCHIVE: tuple(case.name for case in CASES if case.kind == "archive")}
"""Group name -> names of the cases in the group."""


def stream_id(case: BenchCase) -> int:
    """Return the first stream id of a case. No two cases share a stream id.

    A driver keeps a closed IPC stream until its linger timeout, and subscribers with the same
    stream id would still join it.
    """
    return FIRST_STREAM_ID + STREAMS_PER_CASE * CASE_NAMES.index(case.name)


@dataclass(frozen=True)
class BenchSettings:
    """Settings of a benchmark. Strings such as `2m` are copied unchanged into channel URIs."""

    rounds: int = 3
    seconds: float = 2.0
    warm_up_s: float = 1.0
    cases: tuple[str, ...] = CASE_NAMES
    drivers: tuple[str, ...] = ("ours", "c", "java")
    """The implementations to measure. `c` has no archive, and for `java` only the archive is
    measured.
    """
    window: str = "2m"
    """Receiver window and socket buffer sizes for UDP channels."""
    term_length: str = "16m"
    mtu: str = ""
    """The MTU for all channels, or an empty string for the driver's default."""
    threading_mode: str = "DEDICATED"
    client_idle: str = "yield"
    both_set: dict[str, str] = field(default_factory=dict)
    """Additional environment variables for both drivers."""
    ours_set: dict[str, str] = field(default_factory=dict)
    """Additional environment variables for Windtunnel's driver only. They override all others."""
    recording_bytes: int = 512 << 20
    """Maximum size of one recording. Each recording is purged before the next one."""

    def chosen(self) -> list[BenchCase]:
        """Return the selected cases that measure a driver. If the start-up case is selected, it is
        the first.
        """
        others = (SWARM, ARCHIVE)
        return [case for case in CASES if case.name in self.cases and case.kind not in others]

    def archive_cases(self) -> list[BenchCase]:
        """Return the selected cases that measure an archive."""
        return [case for case in CASES if case.name in self.cases and case.kind == ARCHIVE]


def channel(medium: Medium, settings: BenchSettings, port: int) -> str:
    """Return the channel URI of a stream. IPC ignores `port`."""
    parts = [f"term-length={settings.term_length}"]
    if settings.mtu:
        parts.append(f"mtu={settings.mtu}")
    if medium == "ipc":
        return f"aeron:ipc?{'|'.join(parts)}"
    window = settings.window
    parts += [f"rcv-wnd={window}", f"so-rcvbuf={window}", f"so-sndbuf={window}"]
    return f"aeron:udp?{'|'.join([f'endpoint=127.0.0.1:{port}', *parts])}"
