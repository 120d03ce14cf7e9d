"""The command line of a load generator."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROLES = ("source", "sink", "ping", "pong", "archive")
SLEEP_S = 50e-6


def spin() -> None:
    """Do nothing, and so keep the core."""


def sleep() -> None:
    """Leave the core for a short time."""
    time.sleep(SLEEP_S)


IDLES: dict[str, Callable[[], None]] = {"yield": os.sched_yield, "spin": spin, "sleep": sleep}
"""What a load does when there is nothing to read and no room to write."""


@dataclass(frozen=True)
class Options:
    """What one load is asked to do."""

    role: str
    aeron_dir: Path
    board: Path
    channel: str
    reply_channel: str
    """The way back of a ping; empty for the other loads."""
    stream_id: int
    message_length: int
    idle: Callable[[], None]
    limit_s: float
    """After this it ends by itself, so that none is left behind for ever."""
    control_channel: str = ""
    """Where an archive hears its clients; empty for the other loads."""
    message_count: int = 0
    """Of each recording; 0 for the other loads."""


def parse(arguments: Sequence[str] | None) -> Options:
    """Read the command line; a fault ends the process with code 2."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.workload.bench.bench_load")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--aeron-dir", type=Path, required=True, help="the driver's directory")
    parser.add_argument("--board", type=Path, required=True, help="the record to keep up to date")
    parser.add_argument("--channel", required=True)
    parser.add_argument("--reply-channel", default="", help="the way back, for ping and pong")
    parser.add_argument("--stream-id", type=int, required=True)
    parser.add_argument("--message-length", type=int, required=True, help="bytes, at least 8")
    parser.add_argument("--idle", choices=list(IDLES), default="yield")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds until it ends itself")
    parser.add_argument("--control-channel", default="", help="the archive's, for archive")
    parser.add_argument("--message-count", type=int, default=0, help="of each recording")
    given = parser.parse_args(arguments)
    if given.role in ("ping", "pong") and not given.reply_channel:
        parser.error(f"a {given.role} needs --reply-channel")
    if given.role == "archive" and not (given.control_channel and given.message_count > 0):
        parser.error("the load of an archive needs --control-channel and --message-count")
    return Options(
        role=given.role,
        aeron_dir=given.aeron_dir,
        board=given.board,
        channel=given.channel,
        reply_channel=given.reply_channel,
        stream_id=given.stream_id,
        message_length=given.message_length,
        idle=IDLES[given.idle],
        limit_s=given.limit,
        control_channel=given.control_channel,
        message_count=given.message_count,
    )
