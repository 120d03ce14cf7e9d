"""The verbs that look, and those that change one number: describe, dump, errors, marks, sizes."""

import json
from pathlib import Path

import click

from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.segment_file import segments_by_recording
from windtunnel.driver.archive.tool import description, directory, failure, frame_dump
from windtunnel.driver.archive.tool.command import (
    EXIT_CODES,
    directory_option,
    id_argument,
    json_option,
)
from windtunnel.driver.archive.tool.failure import Failure


@click.command(short_help="Show the recordings, the catalog and the mark file.", epilog=EXIT_CODES)
@id_argument()
@directory_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Those that are not valid, too.")
def describe(recording_id: int | None, where: Path, as_json: bool, show_all: bool) -> int:
    """Show the mark file, the catalog, and each recording, or RECORDING_ID in any state."""
    with directory.reading(where) as catalog:
        entries = directory.chosen(catalog, recording_id)
        if recording_id is None and not show_all:
            entries = [entry for entry in entries if entry.is_valid]
        segments = segments_by_recording(where)
        header, now_ms = directory.header_of(where), directory.now_ms()
        if as_json:
            found = description.document(catalog, entries, segments, header, now_ms)
            click.echo(json.dumps(found))
        else:
            if recording_id is None:
                for line in (
                    *description.mark_file_lines(header, now_ms),
                    *description.catalog_lines(catalog),
                ):
                    click.echo(line)
            for entry in entries:
                for line in description.entry_lines(entry, segments.get(entry.recording_id, [])):
                    click.echo(line)
        return _told_damage(catalog.damage)


def _told_damage(damage: str) -> int:
    if damage:
        raise Failure(damage, failure.DAMAGED)
    return failure.OK


@click.command(short_help="Show frames with their bytes.", epilog=EXIT_CODES)
@id_argument()
@directory_option
@json_option
@click.option("--limit", type=click.IntRange(min=0), help="At most so many frames a recording.")
def dump(recording_id: int | None, where: Path, as_json: bool, limit: int | None) -> int:
    """Show the frames of each valid recording, or of RECORDING_ID, with their bytes.

    With --json one document a line: a recording, then its frames.
    """
    with directory.reading(where) as catalog:
        segments = segments_by_recording(where)
        for entry in directory.chosen(catalog, recording_id):
            if recording_id is None and not entry.is_valid:
                continue
            own = segments.get(entry.recording_id, [])
            if as_json:
                click.echo(json.dumps(description.entry_document(entry, own)))
            else:
                for line in description.entry_lines(entry, own):
                    click.echo(line)
            if entry.descriptor is None or entry.fault:
                raise Failure(f"{catalog.path}: {entry.fault}", failure.DAMAGED)
            for count, (frame, payload) in enumerate(frame_dump.frames(entry.descriptor, own)):
                if count == limit:
                    break
                if as_json:
                    click.echo(json.dumps(frame_dump.frame_document(frame, payload)))
                else:
                    click.echo("\n".join(frame_dump.frame_lines(frame, payload)))
        return _told_damage(catalog.damage)


@click.command(short_help="Show the errors that the archive noted.", epilog=EXIT_CODES)
@directory_option
@json_option
def errors(where: Path, as_json: bool) -> int:
    """Show the errors that the archive noted; those of its driver: windtunnel errors."""
    directory.require_archive(where)
    found = mark_file.read_error_log(_mark_file(where))
    if as_json:
        rows = [
            {
                "count": each.observation_count,
                "first_ms": each.first_observation_ms,
                "last_ms": each.last_observation_ms,
                "text": each.text,
            }
            for each in found
        ]
        click.echo(json.dumps({"schema": "windtunnel-archive-errors/1", "errors": rows}))
        return failure.OK
    for each in found:
        times = f"{description.time_text(each.first_observation_ms)} to "
        times += description.time_text(each.last_observation_ms)
        click.echo(f"{each.observation_count} from {times}: {failure.printable(each.text)}")
    click.echo(f"{len(found)} distinct errors")
    return failure.OK


def _mark_file(where: Path) -> Path:
    path = directory.mark_file_of(where)
    if not path.exists():
        raise Failure(f"{path}: there is no mark file", failure.NOTHING)
    return path


@click.command(short_help="Print the archive's process id.", epilog=EXIT_CODES)
@directory_option
def pid(where: Path) -> int:
    """Print the process id of the archive that has the directory, or had it last."""
    directory.require_archive(where)
    click.echo(mark_file.read_header(_mark_file(where)).pid)
    return failure.OK


@click.command(short_help="Print how many valid recordings there are.", epilog=EXIT_CODES)
@directory_option
def count(where: Path) -> int:
    """Print how many valid recordings there are."""
    with directory.reading(where) as catalog:
        click.echo(len(catalog.recording_ids))
        return _told_damage(catalog.damage)


@click.command(short_help="Print or raise the catalog's capacity.", epilog=EXIT_CODES)
@click.argument("capacity_bytes", metavar="[BYTES]", type=click.IntRange(min=1), required=False)
@directory_option
def capacity(capacity_bytes: int | None, where: Path) -> int:
    """Print how many bytes the catalog has room for; with BYTES, make it at least so many."""
    if capacity_bytes is None:
        with directory.reading(where) as catalog:
            click.echo(catalog.capacity)
            return failure.OK
    with directory.writing(where) as writer:
        writer.reserve(capacity_bytes)
        click.echo(writer.capacity)
    return failure.OK


def _mark(where: Path, recording_id: int, state: RecordingState) -> int:
    with directory.writing(where) as catalog:
        (entry,) = directory.chosen(catalog, recording_id)
        if entry.state == RecordingState.DELETED:
            raise Failure(f"recording {recording_id} is deleted for good", failure.DAMAGED)
        if entry.state == state:
            click.echo(f"recording {recording_id} is {state.name} already")
        else:
            catalog.set_state(recording_id, state)
            click.echo(f"recording {recording_id} is {state.name} now")
    return failure.OK


@click.command("mark-valid", short_help="Let an invalid recording count again.", epilog=EXIT_CODES)
@id_argument(required=True)
@directory_option
def mark_valid(recording_id: int, where: Path) -> int:
    """Let an invalid recording count again."""
    return _mark(where, recording_id, RecordingState.VALID)


@click.command("mark-invalid", short_help="Let a recording not count.", epilog=EXIT_CODES)
@id_argument(required=True)
@directory_option
def mark_invalid(recording_id: int, where: Path) -> int:
    """Let a valid recording not count; nothing of it is lost."""
    return _mark(where, recording_id, RecordingState.INVALID)


VERBS = (describe, dump, errors, pid, count, capacity, mark_valid, mark_invalid)
