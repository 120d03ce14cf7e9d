"""Describes an archive directory, as lines of text or as one JSON document."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from windtunnel.driver.archive.protocol.codes import NULL_VALUE, version_text
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry
from windtunnel.driver.archive.storage.mark_file import MarkFileHeader
from windtunnel.driver.archive.storage.segment_file import SegmentFile
from windtunnel.driver.archive.tool.failure import printable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(epoch_ms: int) -> str:
    """Format a time as local time, or in milliseconds if it is outside the calendar's range."""
    if epoch_ms == NULL_VALUE:
        return "-"
    try:
        local = (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ms} ms"
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03}{local:%z}"


def mark_file_document(header: MarkFileHeader, now_ms: int) -> dict[str, Any]:
    """Return the fields of the mark file, and whether its archive is running, for JSON output."""
    return {"is_active": header.is_active(now_ms), **asdict(header)}


def mark_file_lines(header: MarkFileHeader | None, now_ms: int) -> Iterator[str]:
    """Yield a description of the mark file as lines of text."""
    if header is None:
        yield "mark file          none"
        return
    state = "running" if header.is_active(now_ms) else "not running"
    for name, value in (
        ("archive", f"id {header.archive_id}, process {header.pid}, {state}"),
        ("storage version", version_text(header.version)),
        ("started", time_text(header.start_timestamp)),
        ("last active", time_text(header.activity_timestamp)),
        ("control", f"{header.control_channel or '-'}, stream {header.control_stream_id}"),
        (
            "local control",
            f"{header.local_control_channel}, stream {header.local_control_stream_id}",
        ),
        ("events", f"{header.events_channel or '-'}, stream {header.events_stream_id}"),
        ("driver", header.aeron_directory or "-"),
    ):
        yield f"{name:<18} {printable(value)}"


def catalog_lines(catalog: Catalog) -> Iterator[str]:
    """Yield a description of the catalog's header as lines of text."""
    yield f"{'catalog version':<18} {version_text(catalog.version)}"
    yield f"{'catalog capacity':<18} {catalog.capacity} bytes"
    yield f"{'next recording id':<18} {catalog.next_recording_id}"


def entry_document(entry: CatalogEntry, segments: list[SegmentFile]) -> dict[str, Any]:
    """Return a description of one recording as a JSON object."""
    return {
        "state": entry.state_name,
        "fault": entry.fault,
        "entry_offset": entry.offset,
        "entry_length": entry.length,
        "entry_checksum": entry.checksum,
        "segments": [segment.path.name for segment in segments],
        **({} if entry.descriptor is None else asdict(entry.descriptor)),
    }


def entry_lines(entry: CatalogEntry, segments: list[SegmentFile]) -> Iterator[str]:
    """Yield a description of one recording as lines of text."""
    descriptor = entry.descriptor
    if descriptor is None:
        fault = printable(entry.fault)
        yield f"entry at {entry.offset}: {entry.state_name}, unreadable: {fault}"
        return
    fault = f", {printable(entry.fault)}" if entry.fault else ""
    yield f"recording {descriptor.recording_id}: {entry.state_name}{fault}"
    is_stopped = descriptor.stop_position != NULL_VALUE
    stop = str(descriptor.stop_position) if is_stopped else "not stopped"
    length = f", {descriptor.stop_position - descriptor.start_position} bytes" if is_stopped else ""
    times = f"{time_text(descriptor.start_timestamp)} to {time_text(descriptor.stop_timestamp)}"
    terms = f"{descriptor.term_buffer_length} bytes, initial term id {descriptor.initial_term_id}"
    control = f"{descriptor.control_session_id}, correlation {descriptor.correlation_id}"
    for name, value in (
        ("stream", f"{descriptor.stream_id}, session {descriptor.session_id}"),
        ("source", descriptor.source_identity),
        ("channel", descriptor.original_channel),
        ("stripped channel", descriptor.stripped_channel),
        ("position", f"{descriptor.start_position} to {stop}{length}"),
        ("time", times),
        ("terms", terms),
        ("mtu", str(descriptor.mtu_length)),
        ("segments", f"{len(segments)} files of {descriptor.segment_file_length} bytes"),
        ("control session", control),
    ):
        yield f"  {name:<16} {printable(value)}"


def document(
    catalog: Catalog,
    entries: list[CatalogEntry],
    segments: dict[int, list[SegmentFile]],
    header: MarkFileHeader | None,
    now_ms: int,
) -> dict[str, Any]:
    """Return the description of a whole archive directory as one JSON object."""
    return {
        "schema": "windtunnel-archive/1",
        "directory": str(Path(catalog.directory)),
        "mark_file": None if header is None else mark_file_document(header, now_ms),
        "catalog": {
            "version": version_text(catalog.version),
            "capacity": catalog.capacity,
            "alignment": catalog.alignment,
            "next_recording_id": catalog.next_recording_id,
            "damage": catalog.damage,
        },
        "recordings": [
            entry_document(entry, segments.get(entry.recording_id, [])) for entry in entries
        ],
    }
