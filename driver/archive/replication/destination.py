"""Prepares the destination recording of a replication.

none     a new entry with the source's values, whose stop position is its start position
empty    the entry of the given id gets the source's values
data     the recording is extended from its stop position
"""

from dataclasses import dataclass, replace

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_entry import descriptor_fault
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.channel.publication_parameters import MTU_LENGTH_MAX
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH


@dataclass(frozen=True, slots=True)
class Destination:
    """The recording that a replication writes, and the position from which it copies."""

    recording_id: int
    position: int
    is_new: bool


def source_fault(source: RecordingDescriptor) -> str:
    """Return an error message if the source recording's descriptor is invalid, or else an empty
    string.
    """
    start, stop = source.start_position, source.stop_position
    if start < 0 or start % ALIGNMENT:
        return f"start position is {start}"
    if stop != NULL_VALUE and (stop < start or stop % ALIGNMENT):
        return f"stop position is {stop}, start position is {start}"
    if not HEADER_LENGTH < source.mtu_length <= MTU_LENGTH_MAX:
        return f"MTU is {source.mtu_length}"
    return descriptor_fault(source)


def prepare_destination(
    resources: ArchiveResources, recording_id: int, source: RecordingDescriptor
) -> Destination:
    """Prepare the catalog entry of the destination recording. An id of -1 creates a new entry."""
    fault = source_fault(source)
    if fault:
        raise RequestRejected(f"invalid source recording: {fault}")
    catalog, start = resources.catalog, source.start_position
    copied = replace(
        source, control_session_id=0, correlation_id=0, stop_position=start,
        stop_timestamp=source.start_timestamp,
    )  # fmt: skip
    if recording_id == NULL_VALUE:
        _require_no_files(resources)
        return Destination(catalog.add(copied), start, True)
    found = resources.recording(recording_id)
    if found.start_position == found.stop_position:
        catalog.replace(replace(copied, recording_id=recording_id))
        return Destination(recording_id, start, False)
    return Destination(recording_id, found.stop_position, False)


def _require_no_files(resources: ArchiveResources) -> None:
    """Raise RequestRejected if segment files with the id of the new recording already exist."""
    files = segments_of(resources.directory, resources.catalog.next_recording_id)
    if files:
        raise RequestRejected(
            f"{files[0].path} exists, but the next recording will use this name: move the file away"
        )
