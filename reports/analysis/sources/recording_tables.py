"""What an Aeron archive's directory holds, as tables: recordings, their files, frames, messages.

    archive.catalog         recordings   a row an entry, deleted ones too
    <id>-<position>.rec     segments     a row a file: how far it goes, and what is wrong with it
                            frames       DATA and PAD, each with the CRC-32 of its payload
                            messages     put together from them, with their CRC-32 or their bytes

Any archive's files will do, Aeron's or ours, at work or dead. Only what the catalog calls valid is
read. Rows are right as far as they go: `problem` says where a recording could not be followed.
No message reaches over the end of a term, so none reaches into another file.
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
"""Stop position and time are null while it is recorded. The last row of a damaged catalog has no
recording, and the damage as its problem."""
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
"""`checksum` is CRC-32 or CRC-32C where the archive wrote the frame's own over its session, which
is null then."""
MESSAGES = pa.schema(
    [
        *_IDENTITY,
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("crc32", pa.int64()),
        ("payload", pa.binary()),
    ]
)
"""`position` is that of the first frame; `payload` is null unless it was asked for."""


@dataclass(frozen=True)
class SegmentPart:
    """One segment file of one recording, which can be read by itself."""

    archive: str
    recording: Recording
    base: int
    path: str


def recordings(archive: Path) -> pa.RecordBatch:
    """RECORDINGS of an archive's directory. Raises RunTableError."""
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
            "problem": each.fault or ("" if missing is None else f"no file for {missing}"),
        }
        for name in ("stop_position", "stop_timestamp_ms"):
            row[name] = None if row[name] == -1 else row[name]
        rows.append({name: row[name] for name in RECORDINGS.names})
    if catalog.damage:
        damaged = dict.fromkeys(RECORDINGS.names)
        rows.append({**damaged, "archive": str(archive), "problem": catalog.damage})
    return pa.RecordBatch.from_pylist(rows, schema=RECORDINGS)


def segment_parts(archive: Path, wanted: frozenset[int] | None = None) -> list[SegmentPart]:
    """The files to read for these recordings, or all, in order. Raises RunTableError."""
    catalog, files = _catalog_of(archive)
    return [
        SegmentPart(str(archive), each, base, str(path))
        for each in catalog.recordings
        if each.is_readable and (wanted is None or each.recording_id in wanted)
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
    """By base position, the files that belong to a recording as it is now."""
    if not recording.is_readable:
        return {}
    found = files.get(recording.recording_id, {})
    return {base: path for base, path in found.items() if recording.has_segment(base)}
