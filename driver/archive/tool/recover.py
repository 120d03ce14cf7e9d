"""The `recover` command, which rebuilds a catalog."""

import os
from pathlib import Path

import click

from windtunnel.driver.archive.storage import catalog_rebuild, mark_file_writer
from windtunnel.driver.archive.storage.catalog import FILE_NAME
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_rebuild import Rebuild, RebuiltEntry
from windtunnel.driver.archive.storage.segment_file import names, segments_by_recording
from windtunnel.driver.archive.storage.segment_survey import CHANNEL
from windtunnel.driver.archive.tool import directory
from windtunnel.driver.archive.tool.command import EXIT_CODES, directory_option
from windtunnel.driver.archive.tool.failure import DAMAGED, NOT_FOUND, OK, Failure, printable


@click.command(short_help="Rebuild a lost or damaged catalog.", epilog=EXIT_CODES)
@directory_option
@click.option("--dry-run", is_flag=True, help="Print what would be done without changing anything.")
def recover(archive_dir: Path, dry_run: bool) -> int:
    """Rebuild the catalog from the segment files and the readable part of the old catalog.

    Entries that can be read are kept. A recording with segment files but without an entry gets an
    entry that is derived from its frames. Fields that frames do not contain, such as the channel,
    are guessed, and the guesses are printed. A recording whose files cannot be read gets an INVALID
    entry. The old catalog is kept as archive.catalog.damaged-TIME. Segment files and undamaged
    catalogs are never changed. The exit code is 2 if a recording gets an INVALID entry.
    """
    if not archive_dir.is_dir():
        raise Failure(f"{archive_dir}: no such directory", NOT_FOUND)
    directory.require_inactive(archive_dir)
    lock = mark_file_writer.lock(archive_dir)
    try:
        return _recover(archive_dir, dry_run=dry_run)
    finally:
        os.close(lock)


def _recover(archive_dir: Path, *, dry_run: bool) -> int:
    segments = segments_by_recording(archive_dir)
    if not segments and FILE_NAME not in names(archive_dir):
        raise Failure(
            f"{archive_dir}: expected an archive, found no {FILE_NAME} and no segment file",
            NOT_FOUND,
        )
    rebuild = catalog_rebuild.rebuild(archive_dir, segments)
    if rebuild is None:
        click.echo(
            f"{archive_dir}: the catalog is undamaged and lists all segment files; "
            "nothing to recover"
        )
        return OK
    click.echo(f"damage: {printable(rebuild.damage)}")
    for each in rebuild.recordings:
        for line in _lines(each):
            click.echo(line)
    click.echo(f"next recording id: {rebuild.next_recording_id}")
    if dry_run:
        click.echo("dry run: nothing was changed")
    else:
        _write(archive_dir, rebuild)
    return OK if all(_is_usable(each) for each in rebuild.recordings) else DAMAGED


def _write(archive_dir: Path, rebuild: Rebuild) -> None:
    kept = catalog_rebuild.write(archive_dir, rebuild, directory.now_ms())
    if kept is not None:
        click.echo(f"the old catalog was kept as {kept.name}")
    click.echo(f"{FILE_NAME} now lists {len(rebuild.recordings)} recordings")


def _is_usable(entry: RebuiltEntry) -> bool:
    return entry.descriptor is None or entry.state == RecordingState.VALID


def _lines(entry: RebuiltEntry) -> list[str]:
    """Return a description of one recording as lines of text."""
    descriptor = entry.descriptor
    if descriptor is None:
        return [f"recording {entry.recording_id}: entry kept"]
    if not _is_usable(entry):
        lines = [f"recording {entry.recording_id}: INVALID, its segment files cannot be used"]
    else:
        lines = [
            f"recording {entry.recording_id}: rebuilt, stream {descriptor.stream_id}, session "
            f"{descriptor.session_id}, position {descriptor.start_position} to "
            f"{descriptor.stop_position}, term length {descriptor.term_buffer_length}, "
            f"initial term id {descriptor.initial_term_id}, segment length "
            f"{descriptor.segment_file_length}, MTU {descriptor.mtu_length}"
        ]
        if descriptor.original_channel == CHANNEL:
            lines.append(f"  unknown: source, and channel, entered as {CHANNEL}")
    if entry.guesses:
        lines.append(f"  guessed: {', '.join(entry.guesses)}")
    return [*lines, *(f"  {printable(note)}" for note in entry.notes)]


COMMANDS = (recover,)
