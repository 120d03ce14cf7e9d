"""Functions that truncate and purge recordings, manage their segment files, and change their
channels.

When a request deletes files, the response contains the number of files, and a DELETE signal follows
when they are deleted. Source: archive-protocol 3.10 to 3.12, 3.14.
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


def _request_count(session: ControlSession, kind: type[Request], **fields: object) -> Turns[int]:
    response = yield from session.request(kind, **fields)
    return response.relevant_id


def segment_base_position(
    start_position: int, position: int, term_length: int, segment_length: int
) -> int:
    """Return the base position of the segment file that contains a position."""
    term_base = start_position - start_position % term_length
    return term_base + (position - term_base) // segment_length * segment_length


def truncate_recording(session: ControlSession, recording_id: int, position: int) -> Turns[int]:
    """Ask the archive to truncate a recording at a position. Returns the number of files that the
    archive will delete.
    """
    return (
        yield from _request_count(
            session, TruncateRecordingRequest, recording_id=recording_id, position=position
        )
    )


def purge_recording(session: ControlSession, recording_id: int) -> Turns[int]:
    """Ask the archive to delete a stopped recording. Returns the number of files that the archive
    will delete.
    """
    return (yield from _request_count(session, PurgeRecordingRequest, recording_id=recording_id))


def detach_segments(
    session: ControlSession, recording_id: int, new_start_position: int
) -> Turns[None]:
    """Move a recording's start position forward to a later segment, and keep the earlier files."""
    yield from session.request(
        DetachSegmentsRequest, recording_id=recording_id, new_start_position=new_start_position
    )


def delete_detached_segments(session: ControlSession, recording_id: int) -> Turns[int]:
    """Ask the archive to delete the segment files before a recording's start position. Returns the
    number of files that the archive will delete.
    """
    return (
        yield from _request_count(session, DeleteDetachedSegmentsRequest, recording_id=recording_id)
    )


def purge_segments(
    session: ControlSession, recording_id: int, new_start_position: int
) -> Turns[int]:
    """Ask the archive to move a recording's start position forward and to delete earlier files.
    Returns the number of files that the archive will delete.
    """
    return (
        yield from _request_count(
            session, PurgeSegmentsRequest,
            recording_id=recording_id, new_start_position=new_start_position,
        )
    )  # fmt: skip


def attach_segments(session: ControlSession, recording_id: int) -> Turns[int]:
    """Attach the existing segment files that directly precede a recording, and move its start
    position back. Returns the number of attached files.
    """
    return (yield from _request_count(session, AttachSegmentsRequest, recording_id=recording_id))


def migrate_segments(
    session: ControlSession, src_recording_id: int, dst_recording_id: int
) -> Turns[int]:
    """Move all files of a recording to an adjacent recording. Returns the number of moved files."""
    return (
        yield from _request_count(
            session, MigrateSegmentsRequest,
            src_recording_id=src_recording_id, dst_recording_id=dst_recording_id,
        )
    )  # fmt: skip


def update_channel(session: ControlSession, recording_id: int, channel: str) -> Turns[None]:
    """Change the channel of a recording in the archive's catalog.

    Raises InvalidChannelError for an invalid channel, to which the archive would not respond.
    """
    uri.parse(channel)
    yield from session.request(UpdateChannelRequest, recording_id=recording_id, channel=channel)
