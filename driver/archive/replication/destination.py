"""The recording that a copy goes to: a new one, an empty one that becomes it, or one that goes on.

none     a new entry that says what the source's says, but that it stopped where it starts
empty    its entry says that from now on; its id stays
data     what is missing is copied
"""

from dataclasses import dataclass, replace

from driver.archive.operation.facilities import Facilities
from driver.archive.operation.refusal import Refusal
from driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from driver.archive.protocol.responses import RecordingDescriptor


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a copy goes, and from where on it is made."""

    recording_id: int
    position: int
    is_new: bool


def prepared(facilities: Facilities, recording_id: int, source: RecordingDescriptor) -> Destination:
    """Make the entry ready; -1 makes a new one. Raises Refusal, StorageError."""
    catalog, start = facilities.catalog, source.start_position
    copied = replace(
        source, control_session_id=0, correlation_id=0, stop_position=start,
        stop_timestamp=source.start_timestamp,
    )  # fmt: skip
    if recording_id == NULL_VALUE:
        return Destination(catalog.add(copied), start, True)
    found = facilities.recording(recording_id)
    if found.start_position == found.stop_position:
        catalog.replace(replace(copied, recording_id=recording_id))
        return Destination(recording_id, start, False)
    if found.stream_id != source.stream_id:
        raise Refusal(
            f"cannot extend recording {recording_id} of stream {found.stream_id} "
            f"with stream {source.stream_id}", ErrorCode.UNKNOWN_RECORDING,
        )  # fmt: skip
    return Destination(recording_id, found.stop_position, False)
