"""Commands that inspect an archive directory, or change one field in the catalog."""

import json
from pathlib import Path

import click

from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CAPACITY_MAX
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
@click.option("--all", "show_all", is_flag=True, help="Include recordings that are not valid.")
def describe(recording_id: int | None, archive_dir: Path, as_json: bool, show_all: bool) -> int:
    """Show the mark file, the catalog and every valid recording. With RECORDING_ID, show that
    recording in any state.
    """
    with directory.open_for_reading(archive_dir) as catalog:
        entries = directory.select_entries(catalog, recording_id)
        if recording_id is None and not show_all:
            entries = [entry for entry in entries if entry.is_valid]
        segments = segments_by_recording(archive_dir)
        header, now_ms = directory.header_of(archive_dir), directory.now_ms()
        if as_json:
            document = description.document(catalog, entries, segments, header, now_ms)
            click.echo(json.dumps(document))
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
        return _report_damage(catalog.damage)


def _report_damage(damage: str) -> int:
    """Raise Failure if the catalog is damaged. Otherwise return exit code 0."""
    if damage:
        raise Failure(damage, failure.DAMAGED)
    return failure.OK


@click.command(short_help="Show frames with their payloads.", epilog=EXIT_CODES)
@id_argument()
@directory_option
@json_option
@click.option(
    "--limit", type=click.IntRange(min=0), help="Maximum number of frames to show per recording."
)
def dump(recording_id: int | None, archive_dir: Path, as_json: bool, limit: int | None) -> int:
    """Show the frames and payloads of each valid recording, or only those of RECORDING_ID.

    With --json, print one JSON object per line: a recording, then its frames. The exit code is 2
    if frames are missing between those shown, or before the stop position.
    """
    problems = []
    with directory.open_for_reading(archive_dir) as catalog:
        segments = segments_by_recording(archive_dir)
        for entry in directory.select_entries(catalog, recording_id):
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
            missing = frame_dump.MissingFrames(entry.descriptor)
            for count, (frame, payload) in enumerate(frame_dump.frames(entry.descriptor, own)):
                if count == limit:
                    break
                missing.on_frame(frame)
                if as_json:
                    click.echo(json.dumps(frame_dump.frame_document(frame, payload)))
                else:
                    click.echo("\n".join(frame_dump.frame_lines(frame, payload)))
            else:
                missing.on_end()
            problems.append(missing.text)
        return _report_damage(
            "; ".join([*problems, catalog.damage] if catalog.damage else problems)
        )


@click.command(short_help="Show the archive's error log.", epilog=EXIT_CODES)
@directory_option
@json_option
def errors(archive_dir: Path, as_json: bool) -> int:
    """Show the archive's error log. For its media driver's errors, use `windtunnel errors`."""
    directory.require_archive(archive_dir)
    observations = mark_file.read_error_log(_require_mark_file(archive_dir))
    if as_json:
        rows = [
            {
                "count": each.observation_count,
                "first_ms": each.first_observation_ms,
                "last_ms": each.last_observation_ms,
                "text": each.text,
            }
            for each in observations
        ]
        click.echo(json.dumps({"schema": "windtunnel-archive-errors/1", "errors": rows}))
        return failure.OK
    for each in observations:
        times = f"{description.time_text(each.first_observation_ms)} to "
        times += description.time_text(each.last_observation_ms)
        click.echo(f"{each.observation_count} from {times}: {failure.printable(each.text)}")
    click.echo(f"{len(observations)} distinct errors")
    return failure.OK


def _require_mark_file(archive_dir: Path) -> Path:
    path = directory.mark_file_of(archive_dir)
    if not path.exists():
        raise Failure(
            f"{path} does not exist: no archive has run in this directory", failure.NOT_FOUND
        )
    return path


@click.command(short_help="Print the archive's process id.", epilog=EXIT_CODES)
@directory_option
def pid(archive_dir: Path) -> int:
    """Print the process id of the archive that is running in the directory, or ran there last."""
    directory.require_archive(archive_dir)
    click.echo(mark_file.read_header(_require_mark_file(archive_dir)).pid)
    return failure.OK


@click.command(short_help="Print the number of valid recordings.", epilog=EXIT_CODES)
@directory_option
def count(archive_dir: Path) -> int:
    """Print the number of valid recordings."""
    with directory.open_for_reading(archive_dir) as catalog:
        click.echo(len(catalog.recording_ids))
        return _report_damage(catalog.damage)


@click.command(short_help="Print or raise the capacity of the catalog.", epilog=EXIT_CODES)
@click.argument(
    "capacity_bytes", metavar="[BYTES]", type=click.IntRange(1, CAPACITY_MAX), required=False
)
@directory_option
def capacity(capacity_bytes: int | None, archive_dir: Path) -> int:
    """Print the capacity of the catalog in bytes. With BYTES, first raise it to at least BYTES."""
    if capacity_bytes is None:
        with directory.open_for_reading(archive_dir) as catalog:
            click.echo(catalog.capacity)
            return failure.OK
    with directory.open_for_writing(archive_dir) as writer:
        writer.reserve(capacity_bytes)
        click.echo(writer.capacity)
    return failure.OK


def _set_state(archive_dir: Path, recording_id: int, state: RecordingState) -> int:
    with directory.open_for_writing(archive_dir) as catalog:
        (entry,) = directory.select_entries(catalog, recording_id)
        if entry.state == RecordingState.DELETED:
            raise Failure(
                f"recording {recording_id} is deleted and cannot be restored", failure.DAMAGED
            )
        if entry.state == state:
            click.echo(f"recording {recording_id} is already {state.name}")
        else:
            catalog.set_state(recording_id, state)
            click.echo(f"recording {recording_id} is now {state.name}")
    return failure.OK


@click.command("mark-valid", short_help="Mark a recording as valid.", epilog=EXIT_CODES)
@id_argument(required=True)
@directory_option
def mark_valid(recording_id: int, archive_dir: Path) -> int:
    """Mark an invalid recording as valid. Archives will list and replay it again."""
    return _set_state(archive_dir, recording_id, RecordingState.VALID)


@click.command("mark-invalid", short_help="Mark a recording as invalid.", epilog=EXIT_CODES)
@id_argument(required=True)
@directory_option
def mark_invalid(recording_id: int, archive_dir: Path) -> int:
    """Mark a recording as invalid. Archives will ignore it, but its files are kept."""
    return _set_state(archive_dir, recording_id, RecordingState.INVALID)


COMMANDS = (describe, dump, errors, pid, count, capacity, mark_valid, mark_invalid)
