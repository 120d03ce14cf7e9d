"""One measurement of one archive: how fast it records, and how fast it replays what it recorded.

    recording   first second dropped | sample 1 ....... sample 2 | the rest is written, closed
    replay      the same share of messages dropped | sample 1 ... sample 2, all have come

A recording lasts as long as every reading, unless it is as long as it may be before. A reading is
void when a message is missing, comes out of order or twice, when the recording does not end where
the stream did, when a process died, or when kernels were compiled in between.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from harness.artifact.bench_board import Order, State
from harness.bench.archive_host import ArchiveHost
from harness.bench.loads import DRAIN_LIMIT_S, Loads, MeasurementError
from harness.bench.measure import (
    LOAD_LIMIT_S,
    Reading,
    Sample,
    compiled_between,
    stream_values,
)
from harness.bench.plan import BenchCase, BenchSettings, channel
from harness.bench.subject import plain_environment
from harness.dissect.frames import DATA_HEADER_LENGTH, aligned
from harness.kernel import cache_root
from harness.orchestrate.lab import LabError

LOOK_S = 0.0005
"""Between looks at how far a replay is; the shortest takes a few hundred times as long."""
REPLAY_LIMIT_S = 180.0
ROOM_FACTOR = 2
"""Two recordings of a round may lie side by side."""


def check_room(folder: Path, settings: BenchSettings) -> None:
    """Raise LabError where recordings could fill what they lie on."""
    needed, free = ROOM_FACTOR * settings.recording_bytes, shutil.disk_usage(folder).free
    if free < needed:
        raise LabError(
            f"recordings need {needed} bytes in {folder}, where {free} are free; "
            f"leave the archive out with --only, or make room"
        )


def measure_archive(
    case: BenchCase, host: ArchiveHost, settings: BenchSettings, folder: Path, round_index: int
) -> Reading:
    """Measure one case on an archive that runs."""
    name = host.subject.name
    try:
        values = _under_load(case, host, settings, folder)
        if not host.is_alive:
            raise MeasurementError("the archive or its driver ended")
    except MeasurementError as error:
        return Reading(name, case.name, round_index, void=str(error))
    return Reading(name, case.name, round_index, values)


def _under_load(
    case: BenchCase, host: ArchiveHost, settings: BenchSettings, folder: Path
) -> dict[str, float]:
    with Loads(
        case,
        folder,
        aeron_dir=host.directory,
        channels=(channel(case.medium, settings, 0), ""),
        idle=settings.client_idle,
        limit_s=settings.warm_up_s + settings.seconds + LOAD_LIMIT_S,
        environment=plain_environment(),
        more=(
            *("--control-channel", host.control_channel),
            *("--bytes-max", str(settings.recording_bytes)),
        ),
    ) as loads:
        recording = _recording(case, loads, host, settings)
        replay = _replay(loads, host, settings)
    for first, second in (recording, replay):
        if compiled_between(cache_root(), first.wall_ns, second.wall_ns):
            raise MeasurementError("kernels were compiled on this machine while it was measured")
    return {
        f"{direction}-{name}": value
        for direction, samples in (("record", recording), ("replay", replay))
        for name, value in stream_values(*samples, case.message_length).items()
    }


def _recording(
    case: BenchCase, loads: Loads, host: ArchiveHost, settings: BenchSettings
) -> tuple[Sample, Sample]:
    """Both samples of a recording, which is closed and checked afterwards."""
    board = loads.board
    loads.wait_until_flowing()
    # A recording that is full early has a share of its messages dropped instead.
    frame_length = aligned(DATA_HEADER_LENGTH + case.message_length)
    share = settings.dropped_share * settings.recording_bytes / frame_length
    _for(settings.warm_up_s, loads, lambda: loads.count >= share)
    first = _sample(loads, host)
    _for(settings.seconds, loads, lambda: board.state is not State.CONNECTED)
    second = _sample(loads, host)
    board.order = Order.STOP
    loads.wait(
        lambda: board.state is State.RECORDED, DRAIN_LIMIT_S, "the recording was not complete"
    )
    return first, second


def _replay(loads: Loads, host: ArchiveHost, settings: BenchSettings) -> tuple[Sample, Sample]:
    """Both samples of a replay, of which every message has come in the end."""
    board, total = loads.board, loads.count
    dropped = max(1, int(total * settings.dropped_share))
    board.order = Order.REPLAY
    loads.wait(lambda: board.state is not State.RECORDED, DRAIN_LIMIT_S, "no replay was asked for")
    _until_count(loads, dropped)
    first = _sample(loads, host)
    _until_count(loads, total)
    second = _sample(loads, host)
    loads.wait(lambda: board.state is State.ENDED, DRAIN_LIMIT_S, "the replay did not end")
    if loads.count != total:
        raise MeasurementError(f"recorded {total} messages, replayed {loads.count}")
    return first, second


def _for(seconds: float, loads: Loads, is_enough: Callable[[], bool]) -> None:
    """Let a time pass, or less if there is enough."""
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s and not is_enough():
        time.sleep(LOOK_S)
    loads.check()


def _until_count(loads: Loads, count: int) -> None:
    loads.wait(
        lambda: loads.count >= count,
        REPLAY_LIMIT_S,
        f"{count} messages were not replayed",
        look_s=LOOK_S,
    )


def _sample(loads: Loads, host: ArchiveHost) -> Sample:
    return Sample(time.monotonic_ns(), time.time_ns(), loads.count, host.processor_ns())
