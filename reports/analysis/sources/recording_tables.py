"""Tables of an Aeron archive directory: recordings, segment files, frames and messages.

    archive.catalog         recordings   one row per entry, including deleted ones
    <id>-<position>.rec     segments     one row per file: its extent and any problem
                            frames       DATA and PAD, each with the CRC-32 of its payload
                            messages     reassembled from them, with their CRC-32 or their bytes

Archives of Aeron and Windtunnel can be read, whether running or stopped. Only recordings with a
valid catalog entry are read. Rows are correct up to the position that `problem` reports. Messages
do not span terms, so they do not span files either.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from windtunnel.harness.dissect.archive_files.recording_catalog import (
    STATE_NAMES,
    Catalog,
    CatalogError,
    Recording,
    read_catalog,
    segment_files,
)
from windtunnel.reports.analysis.sources.run_tables import RunTableError

_IDENTITY = [("archive", pa.string()), ("recording_id", pa.int64())]
RECORDINGS = pa.schema(
    [
        *_IDENTITY,
        ("state", pa.string()),
        *((name, pa.int64()) for name in (
            "control_session_id", "correlation_id", "start_timestamp_ms", "stop_timestamp_ms",
            "start_position", "stop_position",
        )),
        *((name, pa.int32()) for name in (
            "initial_term_id", "segment_length", "term_length", "mtu", "session_id", "stream_id",
        )),
        ("stripped_channel", pa.string()),
        ("original_channel", pa.string()),
        ("source_identity", pa.string()),
        ("segment_files", pa.int32()),
        ("problem", pa.string()),
    ]
)  # fmt: skip
"""Columns of the table `recordings`. Stop position and time are null while the recording is active.
The last row of a damaged catalog has no recording, and its `problem` describes the damage.
"""
SEGMENTS = pa.schema(
    [
        *_IDENTITY,
        ("file", pa.string()),
        *((name, pa.int64()) for name in (
            "base_position", "file_length", "start_position", "end_position", "data_frames",
            "pad_frames", "messages", "message_bytes", "broken_messages",
        )),
        ("problem", pa.string()),
    ]
)  # fmt: skip
FRAMES = pa.schema(
    [
        *_IDENTITY,
        ("position", pa.int64()),
        ("frame_type", pa.string()),
        ("flags", pa.int32()),
        ("frame_length", pa.int32()),
        ("session_id", pa.int32()),
        ("stream_id", pa.int32()),
        ("term_id", pa.int32()),
        ("term_offset", pa.int32()),
        ("reserved_value", pa.int64()),
        ("payload_crc32", pa.int64()),
        ("checksum", pa.string()),
    ]
)
"""Columns of the table `frames`. `checksum`: CRC-32 or CRC-32C if the archive stored the frame's
checksum in its session id field, in which case `session_id` is null.
"""
MESSAGES = pa.schema(
    [
        *_IDENTITY,
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("crc32", pa.int64()),
        ("payload", pa.binary()),
    ]
)
"""Columns of the table `messages`. `position`: position of the message's first frame. `payload`:
null unless requested.
"""


@dataclass(frozen=True)
class SegmentPart:
    """A recording's segment file. Segment files can be read independently of each other."""

    archive: str
    recording: Recording
    base: int
    path: str


def recordings(archive: Path) -> pa.RecordBatch:
    """Return the table RECORDINGS of an archive directory. Raises RunTableError if the archive
    cannot be read or its catalog is invalid.
    """
    catalog, files = _catalog_of(archive)
    rows: list[dict[str, Any]] = []
    for each in catalog.recordings:
        own = _own_files(each, files)
        missing = each.missing_base(own) if each.is_readable else None
        row = {
            **asdict(each),
            "state": STATE_NAMES.get(each.state, str(each.state)),
            "archive": str(archive),
            "segment_files": len(own),
            "problem": each.fault
            or ("" if missing is None else f"no segment file for position {missing}"),
        }
        for name in ("stop_position", "stop_timestamp_ms"):
            row[name] = None if row[name] == -1 else row[name]
        rows.append({name: row[name] for name in RECORDINGS.names})
    if catalog.damage:
        damaged = dict.fromkeys(RECORDINGS.names)
        rows.append({**damaged, "archive": str(archive), "problem": catalog.damage})
    return pa.RecordBatch.from_pylist(rows, schema=RECORDINGS)


def segment_parts(archive: Path, recording_ids: frozenset[int] | None = None) -> list[SegmentPart]:
    """Return the segment files of the given recordings, or of all, in order. Raises RunTableError
    if the archive cannot be read or its catalog is invalid.
    """
    catalog, files = _catalog_of(archive)
    return [
        SegmentPart(str(archive), each, base, str(path))
        for each in catalog.recordings
        if each.is_readable and (recording_ids is None or each.recording_id in recording_ids)
        for base, path in _own_files(each, files).items()
    ]


def _catalog_of(archive: Path) -> tuple[Catalog, dict[int, dict[int, Path]]]:
    try:
        return read_catalog(archive), segment_files(archive)
    except CatalogError as error:
        raise RunTableError(str(error)) from error
    except OSError as error:
        raise RunTableError(f"{archive}: {error.strerror}") from error


def _own_files(recording: Recording, files: dict[int, dict[int, Path]]) -> dict[int, Path]:
    """Return a recording's current segment files, by base position."""
    if not recording.is_readable:
        return {}
    found = files.get(recording.recording_id, {})
    return {base: path for base, path in found.items() if recording.has_segment(base)}
