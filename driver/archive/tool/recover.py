"""The verb that rebuilds a catalog: recover."""

import os
from pathlib import Path

import click

from windtunnel.driver.archive.storage import catalog_rebuild, mark_file
from windtunnel.driver.archive.storage.catalog import FILE_NAME
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_rebuild import Rebuild, RebuiltEntry
from windtunnel.driver.archive.storage.segment_file import names, segments_by_recording
from windtunnel.driver.archive.storage.segment_survey import CHANNEL
from windtunnel.driver.archive.tool import directory
from windtunnel.driver.archive.tool.command import EXIT_CODES, directory_option
from windtunnel.driver.archive.tool.failure import DAMAGED, NOTHING, OK, Failure, printable


@click.command(short_help="Rebuild a lost or damaged catalog.", epilog=EXIT_CODES)
@directory_option
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
def recover(where: Path, dry_run: bool) -> int:
    """Rebuild the catalog from the segment files and from what is left of the old catalog.

    Entries that can be read are kept. A recording that has segment files and no entry gets one from
    its frames; what these do not tell, such as the channel, is guessed and shown as a guess. A
    recording whose files cannot be made sense of is entered as INVALID. The old catalog is kept as
    archive.catalog.damaged-TIME, and segment files are never changed. A sound catalog is left
    alone. Exits 2 when a recording is entered as INVALID.
    """
    if not where.is_dir():
        raise Failure(f"{where}: there is no such directory", NOTHING)
    directory.require_dead(where)
    lock = mark_file.lock(where)
    try:
        return _recovered(where, dry_run=dry_run)
    finally:
        os.close(lock)


def _recovered(where: Path, *, dry_run: bool) -> int:
    segments = segments_by_recording(where)
    if not segments and FILE_NAME not in names(where):
        raise Failure(f"{where}: there is no archive: no {FILE_NAME}, no segment file", NOTHING)
    rebuild = catalog_rebuild.rebuilt(where, segments)
    if rebuild is None:
        click.echo(f"{where}: the catalog accounts for all segment files; nothing to recover")
        return OK
    click.echo(f"damage: {printable(rebuild.damage)}")
    for each in rebuild.recordings:
        for line in _lines(each):
            click.echo(line)
    click.echo(f"next recording id: {rebuild.next_recording_id}")
    if dry_run:
        click.echo("nothing was changed")
    else:
        _write(where, rebuild)
    return OK if all(_is_usable(each) for each in rebuild.recordings) else DAMAGED


def _write(where: Path, rebuild: Rebuild) -> None:
    kept = catalog_rebuild.write(where, rebuild, directory.now_ms())
    if kept is not None:
        click.echo(f"the damaged catalog is kept as {kept.name}")
    click.echo(f"{FILE_NAME} now has {len(rebuild.recordings)} recordings")


def _is_usable(entry: RebuiltEntry) -> bool:
    return entry.descriptor is None or entry.state == RecordingState.VALID


def _lines(entry: RebuiltEntry) -> list[str]:
    """One recording, for people."""
    found = entry.descriptor
    if found is None:
        return [f"recording {entry.recording_id}: entry kept"]
    if not _is_usable(entry):
        lines = [f"recording {entry.recording_id}: INVALID, its files could not be made sense of"]
    else:
        lines = [
            f"recording {entry.recording_id}: rebuilt, stream {found.stream_id}, session "
            f"{found.session_id}, position {found.start_position} to {found.stop_position}, terms "
            f"of {found.term_buffer_length} bytes from {found.initial_term_id}, segments of "
            f"{found.segment_file_length} bytes, MTU {found.mtu_length}"
        ]
        if found.original_channel == CHANNEL:
            lines.append(f"  unknown: channel, written as {CHANNEL}; source")
    if entry.guesses:
        lines.append(f"  guessed: {', '.join(entry.guesses)}")
    return [*lines, *(f"  {printable(note)}" for note in entry.notes)]


VERBS = (recover,)
