"""Commands that check and can repair recordings: verify, checksum, delete-orphans."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import click

from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.segment_file import SegmentFile, segments_by_recording
from windtunnel.driver.archive.tool import directory, failure, frame_checksums, verification
from windtunnel.driver.archive.tool.command import (
    EXIT_CODES,
    ChecksumName,
    all_segments_option,
    directory_option,
    id_argument,
    json_option,
)
from windtunnel.driver.archive.tool.failure import DAMAGED, OK, Failure
from windtunnel.driver.archive.tool.orphans import orphans
from windtunnel.driver.base.errors import StorageError

Row: TypeAlias = "tuple[int, str, str, list[str]]"
"""Recording id, result, fault or reason for the result, changes made."""
VALID, INVALID, SKIPPED, UNREAD = "OK", "NOT VALID", "skipped", "NOT VERIFIED"


@contextmanager
def _open_catalog(
    archive_dir: Path, read_only: bool, checksum: Checksum | None
) -> Iterator[Catalog]:
    if read_only:
        with directory.open_for_reading(archive_dir) as catalog:
            yield catalog
        return
    try:
        with directory.open_for_writing(archive_dir, checksum) as writer:
            yield writer
    except StorageError as error:
        if not _can_be_read(archive_dir):
            raise
        raise StorageError(f"{error}; use --read-only to check without writing") from error


def _can_be_read(archive_dir: Path) -> bool:
    try:
        with directory.open_for_reading(archive_dir):
            return True
    except (StorageError, Failure):
        return False


@click.command(short_help="Verify recordings and repair the catalog.", epilog=EXIT_CODES)
@id_argument()
@directory_option
@json_option
@all_segments_option
@click.option(
    "--checksum", type=ChecksumName(), help="Verify checksums of this type: CRC-32 or CRC-32C."
)
@click.option("--read-only", is_flag=True, help="Report faults without changing anything.")
@click.option(
    "--truncate/--keep", default=None,
    help="Whether to truncate recordings at the end of their data, or before a torn last frame. "
    "Default: ask.",
)  # fmt: skip
def verify(
    recording_id: int | None,
    archive_dir: Path,
    as_json: bool,
    all_segments: bool,
    checksum: Checksum | None,
    read_only: bool,
    truncate: bool | None,
) -> int:
    """Verify the catalog entry, segment files and frames of each recording, or only those of
    RECORDING_ID.

    A faulty recording is marked invalid. A recording without faults is marked valid again, and its
    stop position is set to the end of its data. A recording with a file that cannot be read is not
    verified and not changed. The exit code is 2 if any recording is faulty or not verified.
    """

    def may_truncate(recording: int, position: int, reason: str) -> bool:
        if truncate is not None or read_only:
            return bool(truncate)
        question = f"recording {recording}: {reason}. Truncate it at position {position}?"
        return click.confirm(question, default=False, err=True)

    options = verification.VerifyOptions(checksum, all_segments)
    rows: list[Row] = []
    with _open_catalog(archive_dir, read_only, checksum) as catalog:
        segments = segments_by_recording(archive_dir)
        for entry in directory.select_entries(catalog, recording_id):
            if entry.state == RecordingState.DELETED:
                rows.append((entry.recording_id, SKIPPED, "deleted", []))
                continue
            own = segments.get(entry.recording_id, [])
            verdict = verification.verify(archive_dir, entry, own, options, may_truncate)
            changes = _repair(catalog, entry, verdict)
            result = UNREAD if verdict.read_error else INVALID if verdict.fault else VALID
            reason = verdict.read_error or verdict.fault
            rows.append((entry.recording_id, result, reason, changes))
        damage = catalog.damage
    _show(rows, as_json, damage)
    if damage:
        raise Failure(damage, DAMAGED)
    return DAMAGED if any(result in (INVALID, UNREAD) for _, result, _, _ in rows) else OK


def _repair(catalog: Catalog, entry: CatalogEntry, verdict: verification.Verdict) -> list[str]:
    if not isinstance(catalog, CatalogWriter):
        return []
    return verification.repair(catalog, entry, verdict, directory.now_ms())


def _show(rows: list[Row], as_json: bool, damage: str) -> None:
    if as_json:
        recordings = [
            {
                "recording_id": recording_id,
                "is_whole": {VALID: True, INVALID: False}.get(result),
                "fault": reason,
                "changes": changes,
            }
            for recording_id, result, reason, changes in rows
        ]
        schema = "windtunnel-archive-verify/1"
        click.echo(json.dumps({"schema": schema, "damage": damage, "recordings": recordings}))
        return
    for recording_id, result, reason, changes in rows:
        text = failure.printable(f"{result}: {reason}" if reason else result)
        suffix = f" ({'; '.join(changes)})" if changes else ""
        click.echo(f"recording {recording_id}: {text}{suffix}")


@click.command(
    "checksum", short_help="Write checksums into the catalog and frames.", epilog=EXIT_CODES
)
@click.argument("checksum", type=ChecksumName())
@id_argument()
@directory_option
@all_segments_option
def put_checksums(
    checksum: Checksum, recording_id: int | None, archive_dir: Path, all_segments: bool
) -> int:
    """Write checksums (CRC-32 or CRC-32C) into catalog entries and frames.

    In a frame the checksum replaces the session id, as in a recording that was made with checksums.
    """
    has_failed = False
    with directory.open_for_writing(archive_dir, checksum) as catalog:
        segments = segments_by_recording(archive_dir)
        for entry in directory.select_entries(catalog, recording_id):
            if entry.state == RecordingState.DELETED or entry.descriptor is None:
                continue
            try:
                own = segments.get(entry.recording_id, [])
                _write_checksums(catalog, entry, own if all_segments else own[-1:], checksum)
                click.echo(f"recording {entry.recording_id}: {checksum.name} checksums written")
            except StorageError as error:
                has_failed = True
                click.echo(f"recording {entry.recording_id}: {error}", err=True)
    return DAMAGED if has_failed else OK


def _write_checksums(
    catalog: CatalogWriter, entry: CatalogEntry, own: list[SegmentFile], checksum: Checksum
) -> None:
    if entry.descriptor is None or entry.fault:
        raise StorageError(f"invalid catalog entry: {entry.fault}")
    catalog.refresh_checksum(entry.recording_id)
    for segment in own:
        frame_checksums.write_checksums(entry.descriptor, segment, checksum)
    if not own:
        raise StorageError("expected segment files, found none")


@click.command(
    "delete-orphans", short_help="Delete segment files outside their recording.", epilog=EXIT_CODES
)
@id_argument()
@directory_option
@click.option("--yes", is_flag=True, help="Delete the files without asking.")
def delete_orphans(recording_id: int | None, archive_dir: Path, yes: bool) -> int:
    """Delete segment files that are before the start or after the end of their recording.

    These are detached segment files, files that remained after a truncation, and .rec files whose
    name begins with a recording id but is not a valid segment file name.
    """
    with directory.open_for_writing(archive_dir) as catalog:
        found = orphans(archive_dir, directory.select_entries(catalog, recording_id))
        for path in found:
            click.echo(failure.printable(path.name))
        if found and not yes:
            click.confirm(f"Delete these {len(found)} files?", abort=True)
        for path in found:
            try:
                path.unlink()
            except OSError as error:
                raise StorageError(f"cannot delete {path}: {error.strerror}") from error
    click.echo(f"{len(found)} files deleted")
    return OK


COMMANDS = (verify, put_checksums, delete_orphans)
