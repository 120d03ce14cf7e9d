"""The counter that tells everybody how far a recording is.

    0              8            12        16                16 + n
    +--------------+------------+---------+-----------------+--------------+
    | recording id | session id | n       | source identity | archive id   |
    +--------------+------------+---------+-----------------+--------------+

The archive id follows the identity at once, at whatever offset that is. Source: archive-protocol
5.5.
"""

import struct

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.cnc import counter_label
from windtunnel.driver.cnc.counters import KEY_LENGTH_MAX

TYPE_ID = 100
_HEAD = struct.Struct("<qii")
_ARCHIVE_ID = struct.Struct("<q")
IDENTITY_LENGTH_MAX = KEY_LENGTH_MAX - _HEAD.size - _ARCHIVE_ID.size


def key(recording: RecordingDescriptor, archive_id: int) -> bytes:
    """The counter's key; a long identity is cut."""
    identity = recording.source_identity.encode("ascii", "replace")[:IDENTITY_LENGTH_MAX]
    head = _HEAD.pack(recording.recording_id, recording.session_id, len(identity))
    return head + identity + _ARCHIVE_ID.pack(archive_id)


def label(recording: RecordingDescriptor, archive_id: int) -> str:
    """The counter's label; a long channel is cut."""
    head = f"rec-pos: {recording.recording_id} {recording.session_id} {recording.stream_id} "
    tail = f" - archiveId={archive_id}"
    return counter_label.fitting(head + recording.stripped_channel, tail)
