"""The counter that contains the position of a recording.

    0              8            12        16                16 + n
    +--------------+------------+---------+-----------------+--------------+
    | recording id | session id | n       | source identity | archive id   |
    +--------------+------------+---------+-----------------+--------------+

The archive id follows the source identity without padding. Source: archive-protocol 5.5.
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
    """Return the key of a recording position counter. A long source identity is truncated."""
    identity = recording.source_identity.encode("ascii", "replace")[:IDENTITY_LENGTH_MAX]
    head = _HEAD.pack(recording.recording_id, recording.session_id, len(identity))
    return head + identity + _ARCHIVE_ID.pack(archive_id)


def label(recording: RecordingDescriptor, archive_id: int) -> str:
    """Return the label of a recording position counter. A long channel is truncated."""
    head = f"rec-pos: {recording.recording_id} {recording.session_id} {recording.stream_id} "
    tail = f" - archiveId={archive_id}"
    return counter_label.fit_label(head + recording.stripped_channel, tail)
