"""The recording that a copy goes to: a new one, an empty one that becomes it, or one that goes on.

none     a new entry that says what the source's says, but that it stopped where it starts
empty    its entry says that from now on; its id stays
data     what is missing is copied
"""

from dataclasses import dataclass, replace

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_entry import shape_fault
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.channel.publication_parameters import MTU_LENGTH_MAX
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a copy goes, and from where on it is made."""

    recording_id: int
    position: int
    is_new: bool


def fault_of(source: RecordingDescriptor) -> str:
    """Why no recording can be as another archive says that its is, or nothing."""
    start, stop = source.start_position, source.stop_position
    if start < 0 or start % ALIGNMENT:
        return f"its start position is {start}"
    if stop != NULL_VALUE and (stop < start or stop % ALIGNMENT):
        return f"its stop position is {stop}, and its start position {start}"
    if not HEADER_LENGTH < source.mtu_length <= MTU_LENGTH_MAX:
        return f"its MTU is {source.mtu_length}"
    return shape_fault(source)


def prepared(
    facilities: ArchiveResources, recording_id: int, source: RecordingDescriptor
) -> Destination:
    """Make the entry ready; -1 makes a new one. Raises Refusal, StorageError."""
    fault = fault_of(source)
    if fault:
        raise RequestRejected(f"the source recording cannot be copied: {fault}")
    catalog, start = facilities.catalog, source.start_position
    copied = replace(
        source, control_session_id=0, correlation_id=0, stop_position=start,
        stop_timestamp=source.start_timestamp,
    )  # fmt: skip
    if recording_id == NULL_VALUE:
        _require_no_files(facilities)
        return Destination(catalog.add(copied), start, True)
    found = facilities.recording(recording_id)
    if found.start_position == found.stop_position:
        catalog.replace(replace(copied, recording_id=recording_id))
        return Destination(recording_id, start, False)
    if found.stream_id != source.stream_id:
        raise RequestRejected(
            f"cannot extend recording {recording_id} of stream {found.stream_id} "
            f"with stream {source.stream_id}", ErrorCode.UNKNOWN_RECORDING,
        )  # fmt: skip
    return Destination(recording_id, found.stop_position, False)


def _require_no_files(facilities: ArchiveResources) -> None:
    """Raise Refusal where files have the names that a new recording's would get."""
    found = segments_of(facilities.directory, facilities.catalog.next_recording_id)
    if found:
        raise RequestRejected(
            f"expected no file of the next recording, found {found[0].path}: move it away"
        )
