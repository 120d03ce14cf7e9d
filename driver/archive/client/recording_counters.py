"""Finding the counter that tells how far a recording is, among a driver's counters.

    0              8            12        16                16 + n
    +--------------+------------+---------+-----------------+--------------+
    | recording id | session id | n       | source identity | archive id   |
    +--------------+------------+---------+-----------------+--------------+

Where several archives record on one driver, the archive's id tells their recordings apart.
Source: archive-protocol 5.5.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.cnc.counters_reader import Counter, CountersReader

TYPE_ID = 100
_HEAD = struct.Struct("<qii")
_ARCHIVE_ID = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class RecordingCounter:
    """A counter of one active recording; its value is the position recorded."""

    counter_id: int
    recording_id: int
    session_id: int
    source_identity: str
    archive_id: int


def read(counter: Counter) -> RecordingCounter | None:
    """What a counter's key says; None for one of another type, or with a key that is damaged."""
    if counter.type_id != TYPE_ID:
        return None
    recording_id, session_id, length = _HEAD.unpack_from(counter.key)
    end = _HEAD.size + length
    if length < 0 or end + _ARCHIVE_ID.size > len(counter.key):
        return None
    identity = counter.key[_HEAD.size : end].decode("ascii", "replace")
    (archive_id,) = _ARCHIVE_ID.unpack_from(counter.key, end)
    return RecordingCounter(counter.counter_id, recording_id, session_id, identity, archive_id)


def find_by_recording(
    counters: CountersReader, recording_id: int, archive_id: int = NULL_VALUE
) -> RecordingCounter | None:
    """The counter of an active recording; of any archive where that is -1."""
    return _find(counters, archive_id, lambda found: found.recording_id == recording_id)


def find_by_session(
    counters: CountersReader, session_id: int, archive_id: int = NULL_VALUE
) -> RecordingCounter | None:
    """The counter of the recording of a publication's session; of any archive where that is -1."""
    return _find(counters, archive_id, lambda found: found.session_id == session_id)


def _find(
    counters: CountersReader, archive_id: int, is_meant: Callable[[RecordingCounter], bool]
) -> RecordingCounter | None:
    for counter in counters:
        found = read(counter)
        if found is not None and is_meant(found) and archive_id in (NULL_VALUE, found.archive_id):
            return found
    return None
