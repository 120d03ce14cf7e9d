"""Determines the range of positions and the limit of a replay from its request.

                     with a limit L (active, or bounded)       without (stopped)
    maximum          unlimited                                 stop - position
    length -1        maximum                                   maximum
    length -2        L - position                              stop - position
    other            the lesser of it and the maximum

If the whole of an empty recording is requested, Aeron sends an error, then replays nothing, and
sends a second response to the same request. Here only the error is sent. A replay of length 0 ends
immediately. In Aeron it never ends. Source: archive-protocol 3.6.
"""

from collections.abc import Callable

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    ErrorCode,
)
from windtunnel.driver.archive.protocol.requests import BoundedReplayRequest, ReplayRequest
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recorded_stream import (
    ActiveRecording,
    BeginningRecording,
)
from windtunnel.driver.archive.replay.counter_limit import CounterLimit
from windtunnel.driver.archive.replay.replay_run import ReplayPlan
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.wire.data import ALIGNMENT

Limit = tuple[Callable[[], int], Callable[[], bool]]
"""Two functions: one returns the current limit of a replay, the other whether this limit is
final.
"""


def make_plan(
    resources: ArchiveResources,
    request: ReplayRequest | BoundedReplayRequest,
    recording: RecordingDescriptor,
    limit: Limit | None,
) -> ReplayPlan:
    """Return the recording, range and limit of a requested replay. Raises RequestRejected if the
    request is invalid.
    """
    position = _position_of(request, recording)
    io_max_length = _io_max_length(resources, request, recording)
    if limit is None:
        known_end = recording.stop_position
        longest = known_end - position
    else:
        known_end = limit[0]()
        longest = I64_MAX - position
        if position > known_end:
            raise RequestRejected(
                f"replay position {position} of recording {recording.recording_id} is above the "
                f"limit position {known_end}", ErrorCode.INVALID_POSITION,
            )  # fmt: skip
    return ReplayPlan(
        recording=recording, position=position,
        end=position + _length(request, recording, longest, known_end - position),
        known_end=known_end,
        limit=(lambda: known_end) if limit is None else limit[0],
        is_final=(lambda: True) if limit is None else limit[1],
        io_max_length=io_max_length, timeout_ns=resources.settings.connect_timeout_ns,
    )  # fmt: skip


def limit_of_request(
    resources: ArchiveResources, request: ReplayRequest | BoundedReplayRequest
) -> Limit | None:
    """Return the limit of a bounded replay, or None if the request has no limit. Raises
    RequestRejected if the limit counter is not allocated.
    """
    if not isinstance(request, BoundedReplayRequest):
        return None
    counters = resources.client.counters
    counter = counters.read(request.limit_counter_id)
    if counter is None:
        raise RequestRejected(
            f"limit counter {request.limit_counter_id} is not allocated in the media driver"
        )
    bound = CounterLimit(counters, counter.counter_id, counter.registration_id)
    return bound.position, bound.is_final


def limit_of_recording(active: ActiveRecording | BeginningRecording | None) -> Limit | None:
    """Return the limit of an active recording, or None if the recording has stopped: the limit is
    its stop position then.
    """
    if active is None:
        return None
    return lambda: active.position, lambda: active.is_done


def _position_of(
    request: ReplayRequest | BoundedReplayRequest, recording: RecordingDescriptor
) -> int:
    position = request.position
    if position == NULL_VALUE:
        return recording.start_position
    if position % ALIGNMENT:
        raise RequestRejected(f"replay position {position}: expected a multiple of {ALIGNMENT}")
    if position < recording.start_position:
        raise RequestRejected(
            f"replay position {position} is before the start position "
            f"{recording.start_position} of recording {recording.recording_id}",
            ErrorCode.INVALID_POSITION,
        )
    if recording.stop_position != NULL_VALUE and position >= recording.stop_position:
        raise RequestRejected(
            f"replay position {position} is not before the stop position "
            f"{recording.stop_position} of recording {recording.recording_id}",
            ErrorCode.INVALID_POSITION,
        )
    return position


def _io_max_length(
    resources: ArchiveResources,
    request: ReplayRequest | BoundedReplayRequest,
    recording: RecordingDescriptor,
) -> int:
    requested, maximum = request.file_io_max_length, resources.settings.file_io_max_length
    for name, length in (("fileIoMaxLength", requested), ("archive I/O length", maximum)):
        if 0 < length < recording.mtu_length:
            raise RequestRejected(
                f"{name}={length}: expected at least mtuLength={recording.mtu_length}"
            )
    return min(requested, maximum) if requested > 0 else maximum


def _length(
    request: ReplayRequest | BoundedReplayRequest,
    recording: RecordingDescriptor,
    longest: int,
    available: int,
) -> int:
    if request.length == REPLAY_ALL_AND_FOLLOW:
        length = longest
    elif request.length == REPLAY_ALL_AND_STOP:
        length = available
        if length == 0:
            raise RequestRejected(
                f"recording {recording.recording_id} has no data to replay",
                ErrorCode.EMPTY_RECORDING,
            )
    else:
        length = min(request.length, longest)
    if length < 0:
        raise RequestRejected(
            f"replay of recording {recording.recording_id}: expected a length of at least 0 bytes, "
            f"found {length}: {request.length} were requested, and at most {longest} can follow "
            "the start position"
        )
    return length
