"""The cases that a benchmark measures, and its settings.

stream cases    udp-1344, ipc-32, ...       sources and sinks, at full speed
echo cases      rtt-udp, rtt-ipc            a ping and a pong, 10,000 messages a second
call cases      python-offer, python-poll   single offers or polls from Python, each driver
                                            with its own client
startup                                     a driver alone
archive-1344, archive-64                    recorded and replayed over shared memory
swarm                                       simulated trials, of Windtunnel's driver alone
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from windtunnel.harness.scenario.schema.channel import parse_channel

Kind = Literal["stream", "echo", "offer", "poll", "startup", "swarm", "archive"]
Medium = Literal["udp", "ipc", ""]
Route = Literal["unicast", "mdc", "multicast"]

FIRST_STREAM_ID = 1001
STREAMS_PER_CASE = 10
SWARM = "swarm"
ARCHIVE = "archive"
"""Name of the group that contains all archive cases."""
SWARM_FRAMES = 10_000
"""Frames requested in each simulated trial. Streams with a low byte limit have fewer."""
ECHO_MESSAGE_LENGTH = 32
ECHO_RATE = 10_000.0
"""Round trips per second. Their latencies are measured from when each message was due."""
GROUP = "224.20.30.39"
"""Multicast group of the streams that are measured. Its control address is the next one."""
LOSS = {
    "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "loss",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.01|seed=7|recv-msg-mask=0x2",
}
"""Environment of a driver that drops 1 % of the DATA frames that it receives. Both drivers drop the
same frames.
"""
CLIENTS = ("windtunnel", "pyaeron")
PYAERON = "pyaeron"


@dataclass(frozen=True)
class BenchCase:
    """One case that a benchmark measures: a kind of load on a driver or an archive."""

    name: str
    kind: Kind
    medium: Medium = ""
    message_length: int = 0
    about: str = ""
    streams: int = 1
    """Number of streams, which share the window of the settings, because they share a socket."""
    sources: int = 1
    """Number of sources that share each stream."""
    sinks: int = 1
    """Number of sinks, each of which reads all streams."""
    route: Route = "unicast"
    mtu: str = ""
    """The MTU that the messages need, or an empty string for that of the settings."""
    environment: tuple[tuple[str, str], ...] = ()
    """Additional environment variables of both drivers."""


CASES = (
    BenchCase("startup", "startup", about="from the start of the process to a ready cnc file"),
    BenchCase("udp-1344", "stream", "udp", 1344, "messages of 1344 bytes over loopback"),
    BenchCase("udp-32", "stream", "udp", 32, "messages of 32 bytes over loopback"),
    BenchCase(
        "udp-8192", "stream", "udp", 8192, "messages of 8192 bytes, each in a datagram", mtu="8224"
    ),
    BenchCase("udp-1344-streams", "stream", "udp", 1344, "the same on ten streams", streams=10),
    BenchCase(
        "udp-1344-mdc",
        "stream",
        "udp",
        1344,
        "the same to three destinations",
        sinks=3,
        route="mdc",
    ),
    BenchCase(
        "udp-1344-multicast",
        "stream",
        "udp",
        1344,
        "the same to a multicast group",
        route="multicast",
    ),
    BenchCase(
        "udp-1344-loss",
        "stream",
        "udp",
        1344,
        "the same while 1 % of the frames are lost",
        environment=tuple(LOSS.items()),
    ),
    BenchCase("ipc-32", "stream", "ipc", 32, "messages of 32 bytes through shared memory"),
    BenchCase("ipc-32-sources", "stream", "ipc", 32, "the same by three publishers", sources=3),
    BenchCase("ipc-1344", "stream", "ipc", 1344, "messages of 1344 bytes through shared memory"),
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


def by_environment(
    cases: Iterable[BenchCase],
) -> list[tuple[tuple[tuple[str, str], ...], list[BenchCase]]]:
    """Group cases by the environment variables that they add. A driver can measure one group."""
    found: dict[tuple[tuple[str, str], ...], list[BenchCase]] = {}
    for case in cases:
        found.setdefault(case.environment, []).append(case)
    return list(found.items())


PORTS = 4
"""Number of ports that a case may need."""


class Channels(NamedTuple):
    """The channel URIs of a case."""

    sources: str
    sinks: tuple[str, ...]
    """The channel of each sink."""
    replies: str = ""
    """The channel of echoes, or an empty string."""


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
    client: str = CLIENTS[0]
    """The client of the stream and echo cases, with both drivers."""
    client_idle: str = "yield"
    peer: str = PYAERON
    """The driver to compare with: that of pyaeron, or `aeronmd:` and the path of a program."""
    both_set: dict[str, str] = field(default_factory=dict)
    """Additional environment variables for both drivers."""
    ours_set: dict[str, str] = field(default_factory=dict)
    """Additional environment variables for Windtunnel's driver only. They override all others."""
    memory: str | None = None
    """Parent of the directories of drivers, or None for the benchmark's folder."""
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


def channel(case: BenchCase, settings: BenchSettings, port: int) -> str:
    """Return the channel URI of a unicast stream. IPC ignores `port`."""
    return (
        f"aeron:ipc?{_parameters(case, settings)}"
        if case.medium == "ipc"
        else (f"aeron:udp?endpoint=127.0.0.1:{port}|{_parameters(case, settings)}")
    )


def channels(case: BenchCase, settings: BenchSettings, ports: Sequence[int]) -> Channels:
    """Return the channel URIs of a case, which needs up to PORTS ports."""
    first, *others = ports
    if case.route == "unicast":
        there, back = (channel(case, settings, port) for port in ports[:2])
        return Channels(there, (there,) * case.sinks, back)
    more = _parameters(case, settings)
    if case.route == "multicast":
        there = f"aeron:udp?endpoint={GROUP}:{first}|interface=127.0.0.1|{more}"
        return Channels(there, (there,) * case.sinks)
    # All sinks must have connected, or the stream would begin without some of them.
    control = f"control=127.0.0.1:{first}|{more}"
    return Channels(
        f"aeron:udp?{control}|control-mode=dynamic|fc=min,g:/{case.sinks}",
        tuple(f"aeron:udp?endpoint=127.0.0.1:{port}|{control}" for port in others[: case.sinks]),
    )


def _parameters(case: BenchCase, settings: BenchSettings) -> str:
    """Return the parameters of a case's channels."""
    parts = [f"term-length={settings.term_length}"]
    if mtu := case.mtu or settings.mtu:
        parts.append(f"mtu={mtu}")
    if case.medium == "udp":
        length = settings.window
        window = length if case.streams == 1 else str(length_of(length) // case.streams)
        parts += [f"rcv-wnd={window}", f"so-rcvbuf={length}", f"so-sndbuf={length}"]
    return "|".join(parts)


def length_of(window: str) -> int:
    """Return the length of a window in bytes. Raises ValueError if it is invalid."""
    length = parse_channel(f"aeron:udp?rcv-wnd={window}").receiver_window_bytes
    if length is None:
        raise ValueError(f"expected at least 1 byte, found {window}")
    return length
