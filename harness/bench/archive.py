"""Measures how fast an archive records, and how fast it replays its recordings.

    record  replay  record  replay  record  replay  record  replay ...
    -------- warm-up ------------>  ---- these are counted ---->

Each recording has as many messages as fit into the size limit, which is the same for every archive,
and starts with an empty stream. Recordings and replays that start within the warm-up time, one
second by default, are not counted, because a just-in-time compiler may need this time. A rate
covers all counted recordings, or all counted replays. The load generator's clock starts when the
stream is connected, before the first message, and stops at the last message written or read. A
reading is invalid (void) if a message is missing, out of order or duplicated, if a recording does
not end where the stream ended, if a process died, or if kernels were compiled during the
measurement.
"""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.kernels.sources import cache_root
from windtunnel.harness.artifact.run.bench_board import Command, State
from windtunnel.harness.bench.archive_host import ArchiveHost
from windtunnel.harness.bench.loads import Loads, MeasurementError
from windtunnel.harness.bench.measure import COMPILED, LOAD_LIMIT_S, Reading, compiled_between
from windtunnel.harness.bench.plan import BenchCase, BenchSettings, Channels, channel
from windtunnel.harness.bench.subject import plain_environment
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned
from windtunnel.harness.orchestrate.lab import LabError

CONNECT_LIMIT_S = 180.0
"""Connection timeout in seconds, long enough to compile kernels."""
TURN_LIMIT_S = 120.0
ROOM_FACTOR = 2
"""Number of recordings that need disk space at the same time. A purged recording may still exist
when the next one starts.
"""


@dataclass(frozen=True)
class Turn:
    """One measured recording or replay, with its duration and its processor time."""

    message_count: int
    duration_ns: int
    """Duration according to the load generator's clock."""
    processor_ns: int
    """Processor time used by the archive and its driver, including the start and end of the
    turn.
    """


def check_room(folder: Path, settings: BenchSettings) -> None:
    """Raise LabError if the benchmark's recordings could fill the disk."""
    needed, free = ROOM_FACTOR * settings.recording_bytes, shutil.disk_usage(folder).free
    if free < needed:
        raise LabError(
            f"recordings need {needed} bytes in {folder}, but only {free} are free: "
            f"free up some space, or exclude the archive cases with --only"
        )


def message_count(case: BenchCase, settings: BenchSettings) -> int:
    """Return the number of messages per recording: as many as the size limit permits, but at least
    one.
    """
    return max(1, settings.recording_bytes // aligned(DATA_HEADER_LENGTH + case.message_length))


def values_of(turns: Iterable[Turn], message_length: int) -> dict[str, float]:
    """Return messages/s, megabytes/s and nanoseconds of processor time per message, each for all
    given recordings or replays together.

    Raises MeasurementError if there are no messages or the time is zero.
    """
    kept = list(turns)
    messages = sum(turn.message_count for turn in kept)
    duration_ns = sum(turn.duration_ns for turn in kept)
    if messages <= 0 or duration_ns <= 0:
        raise MeasurementError(
            f"cannot compute a rate from {messages} messages in {duration_ns} ns: "
            "expected at least 1 of each"
        )
    rate = messages * 1e9 / duration_ns
    return {
        "messages": rate,
        "megabytes": rate * message_length / 1e6,
        "processor": sum(turn.processor_ns for turn in kept) / messages,
    }


def measure_archive(
    case: BenchCase, host: ArchiveHost, settings: BenchSettings, folder: Path, round_index: int
) -> Reading:
    """Measure one benchmark case with a running archive."""
    name = host.subject.name
    try:
        values = _under_load(case, host, settings, folder)
        if not host.is_alive:
            raise MeasurementError("the archive or its driver exited")
    except MeasurementError as error:
        return Reading(name, case.name, round_index, void=str(error))
    return Reading(name, case.name, round_index, values)


def _under_load(
    case: BenchCase, host: ArchiveHost, settings: BenchSettings, folder: Path
) -> dict[str, float]:
    count = message_count(case, settings)
    with Loads(
        case,
        folder,
        aeron_dir=host.directory,
        channels=Channels(channel(case, settings, 0), ()),
        idle=settings.client_idle,
        limit_s=settings.warm_up_s + settings.seconds + 2 * TURN_LIMIT_S + LOAD_LIMIT_S,
        environment=plain_environment(),
        more=("--control-channel", host.control_channel, "--message-count", str(count)),
    ) as loads:
        connected = State.CONNECTED
        loads.wait(lambda: loads.board.state is connected, CONNECT_LIMIT_S, "no archive responded")
        counting_s = time.monotonic() + settings.warm_up_s
        while time.monotonic() < counting_s:
            _record_and_replay(loads, host, count)
        first_ns, end_s = time.time_ns(), time.monotonic() + settings.seconds
        turns = [_record_and_replay(loads, host, count)]
        while time.monotonic() < end_s:
            turns.append(_record_and_replay(loads, host, count))
        last_ns = time.time_ns()
    if compiled_between(cache_root(), first_ns, last_ns):
        raise MeasurementError(COMPILED)
    return {
        f"{way}-{name}": value
        for way, each in zip(("record", "replay"), zip(*turns, strict=True), strict=True)
        for name, value in values_of(each, case.message_length).items()
    }


def _record_and_replay(loads: Loads, host: ArchiveHost, count: int) -> tuple[Turn, Turn]:
    recording = _turn(loads, host, count, Command.RECORD, State.RECORDED)
    return recording, _turn(loads, host, count, Command.REPLAY, State.REPLAYED)


def _turn(loads: Loads, host: ArchiveHost, count: int, order: Command, done: State) -> Turn:
    before_ns, board = host.processor_ns(), loads.board
    board.order = order

    def is_over() -> bool:
        if not host.is_alive:
            raise MeasurementError("the archive or its driver exited")
        return board.state is done

    loads.wait(is_over, TURN_LIMIT_S, f"{order.name} of {count} messages was not completed")
    if board.message_count != count:
        raise MeasurementError(
            f"{order.name}: expected {count} messages, counted {board.message_count}"
        )
    return Turn(count, board.duration_ns, host.processor_ns() - before_ns)
