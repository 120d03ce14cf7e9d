"""Makes an archive replay a recording to a channel, in place of a publisher.

    archive of b   recording of `orders`  ---- replay ----> channel of `again` --> subscriber on a
    replayer       starts it, polls the driver's sender position

The replay starts as soon as there is a recording, from its start, and follows it to its end. The
document has a publisher's format, so the same checks apply to the replay.
"""

import struct

from windtunnel.driver.archive.client import session_id_of
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.dissect.driver_files.counter_key import SENDER_POSITION
from windtunnel.harness.workload.archive.archive_session import (
    LOOK_NS,
    NOT_STOPPED,
    SteppedArchive,
    connect,
    context,
    first_recording,
)
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import Routine, Surroundings, connected
from windtunnel.harness.workload.stop import GaveUp

_SESSION_AND_STREAM = struct.Struct("<ii")
_KEY_AT = 8
"""Offset of the session id and stream id in the key of a stream counter."""
NOT_SENT = -1


def replay(options: Options, facts: PublisherFacts, surroundings: Surroundings) -> Routine[None]:
    """Have the archive replay a recording to its end."""
    traffic, clock = options.traffic, surroundings.clock
    with (
        (yield from connected(surroundings)) as aeron,
        (yield from connect(aeron, context(options), clock)) as archive,
    ):
        recorded = options.case.traffic_by_id(traffic.replays)
        recording = yield from first_recording(archive, recorded.stream_id)
        replay_id = yield from archive.start_replay(
            recording.recording_id, traffic.channel, traffic.stream_id
        )
        note_replay(facts, recording, session_id_of(replay_id), surroundings.epoch_ns())
        yield from _follow(aeron, archive, recording.recording_id, facts)


def note_replay(
    facts: PublisherFacts, recording: RecordingDescriptor, session_id: int, started_ns: int
) -> None:
    """Copy a replay's session id and its recording's parameters to the facts for the result
    file.
    """
    facts.session_id = session_id
    facts.initial_term_id = recording.initial_term_id
    facts.term_length = recording.term_buffer_length
    facts.mtu = recording.mtu_length
    facts.start_position = facts.end_position = recording.start_position
    facts.started_ns = started_ns


def sent_position(aeron: Aeron, session_id: int, stream_id: int) -> int:
    """Return the driver's sender position of a stream, or NOT_SENT if the stream has no such
    counter.
    """
    ids = (session_id, stream_id)
    for each in aeron.counters:
        is_of_type = each.type_id == SENDER_POSITION
        if is_of_type and _SESSION_AND_STREAM.unpack_from(each.key, _KEY_AT) == ids:
            return each.value
    return NOT_SENT


def _follow(
    aeron: Aeron, archive: SteppedArchive, recording_id: int, facts: PublisherFacts
) -> Routine[None]:
    """Wait until the whole recording has been sent. Raises GaveUp if the replay ends early, and
    ArchiveError if the archive fails.
    """
    was_sending = False
    while True:
        # The stop position is read first, because a stopped recording does not grow.
        end = yield from archive.stop_position(recording_id)
        position = sent_position(aeron, facts.session_id, facts.stream_id)
        if position != NOT_SENT:
            was_sending, facts.end_position = True, position
        elif was_sending:
            text = f"the replay ended at position {facts.end_position}, before its end"
            raise GaveUp(text)
        if end != NOT_STOPPED and facts.end_position >= end:
            return
        archive.check_for_error_response()
        yield LOOK_NS
