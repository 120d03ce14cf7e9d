"""Finds the position counter of a recording among the counters of a driver.

    0              8            12        16                16 + n
    +--------------+------------+---------+-----------------+--------------+
    | recording id | session id | n       | source identity | archive id   |
    +--------------+------------+---------+-----------------+--------------+

If several archives use one driver, the archive id distinguishes their recordings.
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
    """The counter of an active recording. The counter's value is the recorded position."""

    counter_id: int
    recording_id: int
    session_id: int
    source_identity: str
    archive_id: int


def read(counter: Counter) -> RecordingCounter | None:
    """Return the fields of a recording position counter's key, or None for any other counter."""
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
    """Return the position counter of an active recording, or None. An `archive_id` of -1 matches
    any archive.
    """
    return _find(counters, archive_id, lambda found: found.recording_id == recording_id)


def find_by_session(
    counters: CountersReader, session_id: int, archive_id: int = NULL_VALUE
) -> RecordingCounter | None:
    """Return the position counter of a session's recording, or None. An `archive_id` of -1 matches
    any archive.
    """
    return _find(counters, archive_id, lambda found: found.session_id == session_id)


def _find(
    counters: CountersReader, archive_id: int, matches: Callable[[RecordingCounter], bool]
) -> RecordingCounter | None:
    for counter in counters:
        found = read(counter)
        if found is not None and matches(found) and archive_id in (NULL_VALUE, found.archive_id):
            return found
    return None
