"""The verbs that look at everything and may change it: verify, checksum, delete-orphans."""

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

Row: TypeAlias = "tuple[int, str, list[str], bool | None]"
"""Recording id, what is wrong, what was changed, whether it fits together."""


@contextmanager
def _opened(where: Path, read_only: bool, checksum: Checksum | None) -> Iterator[Catalog]:
    if read_only:
        with directory.reading(where) as catalog:
            yield catalog
        return
    try:
        with directory.writing(where, checksum) as writer:
            yield writer
    except StorageError as error:
        raise StorageError(f"{error}; to look only, use --read-only") from error


@click.command(short_help="Look whether all fits together, and mend it.", epilog=EXIT_CODES)
@id_argument()
@directory_option
@json_option
@all_segments_option
@click.option("--checksum", type=ChecksumName(), help="Compare checksums: CRC-32 or CRC-32C.")
@click.option("--read-only", is_flag=True, help="Tell what is wrong, and change nothing.")
@click.option(
    "--truncate/--keep", default=None,
    help="Cut a recording off where its data ends or may be torn, or do not; else you are asked.",
)  # fmt: skip
def verify(
    recording_id: int | None,
    where: Path,
    as_json: bool,
    all_segments: bool,
    checksum: Checksum | None,
    read_only: bool,
    truncate: bool | None,
) -> int:
    """Does each recording, or RECORDING_ID, fit together: catalog, files, frames?

    One that does not is marked invalid, one that does again is marked valid, and a stop position
    is set to where the data ends. Exits 2 when any recording does not fit together.
    """

    def may_truncate(which: int, position: int, why: str) -> bool:
        if truncate is not None or read_only:
            return bool(truncate)
        question = f"recording {which}: {why}. Cut it off at position {position}?"
        return click.confirm(question, default=False, err=True)

    how = verification.How(checksum, all_segments)
    rows: list[Row] = []
    with _opened(where, read_only, checksum) as catalog:
        segments = segments_by_recording(where)
        for entry in directory.chosen(catalog, recording_id):
            if entry.state == RecordingState.DELETED:
                rows.append((entry.recording_id, "deleted", [], None))
                continue
            own = segments.get(entry.recording_id, [])
            verdict = verification.verify(where, entry, own, how, may_truncate)
            done = _mended(catalog, entry, verdict)
            rows.append((entry.recording_id, verdict.fault, done, not verdict.fault))
        damage = catalog.damage
    _show(rows, as_json, damage)
    if damage:
        raise Failure(damage, DAMAGED)
    return DAMAGED if any(fits is False for _, _, _, fits in rows) else OK


def _mended(catalog: Catalog, entry: CatalogEntry, verdict: verification.Verdict) -> list[str]:
    if not isinstance(catalog, CatalogWriter):
        return []
    return verification.mend(catalog, entry, verdict, directory.now_ms())


def _show(rows: list[tuple[int, str, list[str], bool | None]], as_json: bool, damage: str) -> None:
    if as_json:
        found = [
            {"recording_id": which, "is_whole": fits, "fault": text, "changes": done}
            for which, text, done, fits in rows
        ]
        document = {"schema": "windtunnel-archive-verify/1", "damage": damage, "recordings": found}
        click.echo(json.dumps(document))
        return
    for which, text, done, fits in rows:
        told = "OK" if fits else ("skipped: " if fits is None else "NOT VALID: ") + text
        changes = f" ({'; '.join(done)})" if done else ""
        click.echo(f"recording {which}: {failure.printable(told)}{changes}")


@click.command("checksum", short_help="Write checksums into catalog and frames.", epilog=EXIT_CODES)
@click.argument("checksum", type=ChecksumName())
@id_argument()
@directory_option
@all_segments_option
def put_checksums(
    checksum: Checksum, recording_id: int | None, where: Path, all_segments: bool
) -> int:
    """Write checksums (CRC-32, CRC-32C) into catalog entries and frames.

    In a frame the checksum takes the place of the session id, as in a recording made with it.
    """
    is_any_faulty = False
    with directory.writing(where, checksum) as catalog:
        segments = segments_by_recording(where)
        for entry in directory.chosen(catalog, recording_id):
            if entry.state == RecordingState.DELETED or entry.descriptor is None:
                continue
            try:
                own = segments.get(entry.recording_id, [])
                _put(catalog, entry, own if all_segments else own[-1:], checksum)
                click.echo(f"recording {entry.recording_id}: {checksum.name} written")
            except StorageError as error:
                is_any_faulty = True
                click.echo(f"recording {entry.recording_id}: {error}", err=True)
    return DAMAGED if is_any_faulty else OK


def _put(
    catalog: CatalogWriter, entry: CatalogEntry, own: list[SegmentFile], checksum: Checksum
) -> None:
    if entry.descriptor is None or entry.fault:
        raise StorageError(f"its catalog entry cannot be used: {entry.fault}")
    catalog.refresh_checksum(entry.recording_id)
    for segment in own:
        frame_checksums.put_into(entry.descriptor, segment, checksum)
    if not own:
        raise StorageError("it has no segment files")


@click.command(
    "delete-orphans", short_help="Delete files of no recording's positions.", epilog=EXIT_CODES
)
@id_argument()
@directory_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_orphans(recording_id: int | None, where: Path, yes: bool) -> int:
    """Delete the segment files that no position of their recording lies in.

    Those are the files of detached segments, what truncation left behind, and files whose names
    are no segment's.
    """
    with directory.writing(where) as catalog:
        found = orphans(where, directory.chosen(catalog, recording_id))
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


VERBS = (verify, put_checksums, delete_orphans)
