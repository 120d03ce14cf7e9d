"""Making recordings shorter, or giving them files back; another channel for one.

Where files are to be deleted, the answer is how many names were scheduled, and a DELETE signal
tells when they are gone. Source: archive-protocol 3.10 to 3.12, 3.14.
"""

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol.requests import (
    AttachSegmentsRequest,
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    MigrateSegmentsRequest,
    PurgeRecordingRequest,
    PurgeSegmentsRequest,
    Request,
    TruncateRecordingRequest,
    UpdateChannelRequest,
)
from windtunnel.driver.channel import uri


def _count(session: ControlSession, kind: type[Request], **fields: object) -> Turns[int]:
    answer = yield from session.ask(kind, **fields)
    return answer.relevant_id


def segment_base_position(
    start_position: int, position: int, term_length: int, segment_length: int
) -> int:
    """Where the segment file begins that holds a position; counted from the first term's begin."""
    term_base = start_position - start_position % term_length
    return term_base + (position - term_base) // segment_length * segment_length


def truncate_recording(session: ControlSession, recording_id: int, position: int) -> Turns[int]:
    """Take away everything from a position on. Returns how many files are to go."""
    return (
        yield from _count(
            session, TruncateRecordingRequest, recording_id=recording_id, position=position
        )
    )


def purge_recording(session: ControlSession, recording_id: int) -> Turns[int]:
    """Take a stopped recording away for good. Returns how many files are to go."""
    return (yield from _count(session, PurgeRecordingRequest, recording_id=recording_id))


def detach_segments(
    session: ControlSession, recording_id: int, new_start_position: int
) -> Turns[None]:
    """Let a recording start at a later segment; the files stay."""
    yield from session.ask(
        DetachSegmentsRequest, recording_id=recording_id, new_start_position=new_start_position
    )


def delete_detached_segments(session: ControlSession, recording_id: int) -> Turns[int]:
    """Delete the files before a recording's start. Returns how many are to go."""
    return (yield from _count(session, DeleteDetachedSegmentsRequest, recording_id=recording_id))


def purge_segments(
    session: ControlSession, recording_id: int, new_start_position: int
) -> Turns[int]:
    """Detach and delete in one. Returns how many files are to go."""
    return (
        yield from _count(
            session, PurgeSegmentsRequest,
            recording_id=recording_id, new_start_position=new_start_position,
        )
    )  # fmt: skip


def attach_segments(session: ControlSession, recording_id: int) -> Turns[int]:
    """Let a recording start with the files that lie before it. Returns how many there were."""
    return (yield from _count(session, AttachSegmentsRequest, recording_id=recording_id))


def migrate_segments(
    session: ControlSession, src_recording_id: int, dst_recording_id: int
) -> Turns[int]:
    """Give all files of one recording to its neighbour. Returns how many there were."""
    return (
        yield from _count(
            session, MigrateSegmentsRequest,
            src_recording_id=src_recording_id, dst_recording_id=dst_recording_id,
        )
    )  # fmt: skip


def update_channel(session: ControlSession, recording_id: int, channel: str) -> Turns[None]:
    """Change the channel in a descriptor.

    Raises InvalidChannelError for one that cannot be read: the archive would not answer
    """
    uri.parse(channel)
    yield from session.ask(UpdateChannelRequest, recording_id=recording_id, channel=channel)
