"""The command line of a benchmark's load generator."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

ROLES = ("source", "sink", "ping", "pong", "offer", "poll", "archive")
CLIENTS = ("windtunnel", "pyaeron")
SLEEP_NS = 50_000


class Idle(IntEnum):
    """What a load generator does if there is nothing to read or no room to write."""

    YIELD = 0
    SPIN = 1
    SLEEP = 2


def spin() -> None:
    """Return immediately, so the caller keeps its core busy."""


def sleep() -> None:
    """Release the core for 50 microseconds."""
    time.sleep(SLEEP_NS / 1e9)


IDLES: dict[Idle, Callable[[], None]] = {
    Idle.YIELD: os.sched_yield,
    Idle.SPIN: spin,
    Idle.SLEEP: sleep,
}
STRATEGIES = {strategy.name.lower(): strategy for strategy in Idle}


@dataclass(frozen=True)
class Options:
    """Options of one load generator."""

    role: str
    aeron_dir: Path
    board: Path
    channel: str
    reply_channel: str
    """The channel for echoes, or an empty string for loads without echoes."""
    stream_id: int
    message_length: int
    strategy: Idle
    limit_s: float
    """Time in seconds after which the load ends itself, so no load runs forever."""
    control_channel: str = ""
    """Control channel of an archive, or an empty string for other loads."""
    message_count: int = 0
    """Number of messages per recording, or 0 for other loads."""
    client: str = CLIENTS[0]
    """The client that writes and reads."""
    streams: int = 1
    """Number of streams with consecutive ids, each with the same load."""
    sources: int = 1
    """Number of sources that share each stream."""
    source: int = 0
    """Index of this source."""
    rate: float = 0.0
    """Round trips per second, or 0 for one after the other."""

    @property
    def idle(self) -> Callable[[], None]:
        """The function that idles in Python. Compiled loops have their own."""
        return IDLES[self.strategy]

    @property
    def stream_ids(self) -> range:
        """The ids of the streams."""
        return range(self.stream_id, self.stream_id + self.streams)


def parse(arguments: Sequence[str] | None) -> Options:
    """Parse the command line. An error ends the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.workload.bench.bench_load")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--aeron-dir", type=Path, required=True, help="the driver's directory")
    parser.add_argument(
        "--board",
        type=Path,
        required=True,
        help="file in which the load counts its messages (its counter board)",
    )
    parser.add_argument("--channel", required=True)
    parser.add_argument(
        "--reply-channel", default="", help="channel for echoes (ping and pong only)"
    )
    parser.add_argument("--stream-id", type=int, required=True)
    parser.add_argument(
        "--message-length", type=int, required=True, help="message length in bytes, at least 8"
    )
    parser.add_argument("--idle", choices=list(STRATEGIES), default="yield")
    parser.add_argument(
        "--limit",
        dest="limit_s",
        type=float,
        default=600.0,
        help="time in seconds after which the load ends",
    )
    parser.add_argument(
        "--control-channel", default="", help="control channel of the archive (archive only)"
    )
    parser.add_argument(
        "--message-count", type=int, default=0, help="messages per recording (archive only)"
    )
    parser.add_argument(
        "--client",
        choices=CLIENTS,
        default=CLIENTS[0],
        help="client that writes and reads (an archive's is always windtunnel)",
    )
    parser.add_argument(
        "--streams", type=int, default=1, help="number of streams (source and sink only)"
    )
    parser.add_argument(
        "--sources", type=int, default=1, help="sources of each stream (source and sink only)"
    )
    parser.add_argument("--source", type=int, default=0, help="index of the source (source only)")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="round trips per second (ping only)"
    )
    parsed = parser.parse_args(arguments)
    if parsed.role in ("ping", "pong") and not parsed.reply_channel:
        parser.error(f"a {parsed.role} needs --reply-channel")
    if parsed.client != CLIENTS[0] and parsed.role == "archive":
        parser.error(f"an archive load uses {CLIENTS[0]}'s client")
    if parsed.role == "archive" and not (parsed.control_channel and parsed.message_count > 0):
        parser.error("an archive load needs --control-channel and --message-count")
    strategy = STRATEGIES[vars(parsed).pop("idle")]
    return Options(**vars(parsed), strategy=strategy)
