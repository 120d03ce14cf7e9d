"""Events of one stream at one vantage point: its frames as arrays for the compiled kernels.

    frames of the stream, in capture order --> kind, flow, start, end, time --> kernels

A flow is the traffic to one destination. A multi-destination publication sends each frame to every
destination, so a second frame is a retransmit only within a flow. NAKs and status messages belong
to the flow whose destination is their source, or to the multicast group's flow. The receivers of a
group are distinguished by their addresses.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.harness.artifact.middlebox.frame_class import CODES, DATA, HEARTBEAT, NAK, PAD, SM
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.streams.geometry import Geometry, positions_in

_STATUS_SETUP = 0x80
_NONE = 255
_LEFT_OUT = -2
_KIND_OF = np.full(HEARTBEAT + 1, _NONE, dtype=np.uint8)
"The event kind for each frame type code."
_KIND_OF[[DATA, PAD]] = kernel.FRAME
_KIND_OF[[HEARTBEAT, NAK, SM]] = kernel.HEARTBEAT, kernel.NAK, kernel.STATUS
UNUSED_MAX = 4
"""Number of unused entries up to which `trim` does not copy an array."""


@dataclass(frozen=True)
class Events:
    """The events of a batch of frames, as arrays of equal length."""

    rows: Any
    "Row index of each event in the batch."
    times_ns: Any
    types: Any
    "Type of each event's frame, a code of frame_class."
    kinds: Any
    flow_of: Any
    starts: Any
    ends: Any
    packets: Any
    "Packet numbers. All frames of a packet have the same number."
    identifications: Any
    "IPv4 identifications, or NO_IDENTIFICATION if absent or if the packet may consist of several."
    receivers: Any
    "Number of the receiver that sent the NAK or status message, or -1 for the sender's frames."
    charged: Any
    "The limit that a sender needs to send the frame. For padding, this is the end of its header."


class StreamEvents:
    """Converts one stream's frames to events, and assigns the events to flows. A flow is the
    traffic to one destination.
    """

    COLUMNS = (
        "time_ns", "frame_type", "flags", "frame_length", "term_id", "term_offset", "nak_length",
        "window_bytes", "datagram_length", "ip_identification", "file_index", "record_at",
        "source_address", "source_port", "destination_address", "destination_port",
    )  # fmt: skip
    "Columns of the frame table that this class needs in addition to the key columns."

    def __init__(self, key: tuple[str, int, int], geometry: Geometry) -> None:
        self._key, self._geometry = key, geometry
        self._flows: dict[str, int] = {}
        self._receivers: dict[str, int] = {}
        self._has_merged = False
        self.unmatched = 0
        "Number of NAKs and status messages so far that match no flow."

    @property
    def destinations(self) -> list[str]:
        """The destination address and port of each flow, by flow index."""
        return list(self._flows)

    def of(self, frames: pa.RecordBatch | pa.Table) -> Events:
        """Convert a batch of the stream's frames to events."""
        types = types_of(frames)
        kinds = _KIND_OF[types]
        flags = ints(frames, "flags")
        kinds[(kinds == kernel.STATUS) & (flags & _STATUS_SETUP != 0)] = _NONE
        flow_of, receivers = self._flows_of(frames, kinds)
        rows = np.flatnonzero((kinds != _NONE) & (flow_of >= 0))
        starts = positions_in(self._geometry, ints(frames, "term_id"), ints(frames, "term_offset"))
        spans = (ints(frames, "frame_length").astype(np.int64) + 31) & ~31
        spans[kinds == kernel.HEARTBEAT] = 0
        for kind, name in ((kernel.NAK, "nak_length"), (kernel.STATUS, "window_bytes")):
            of_kind = np.flatnonzero(kinds == kind)
            if len(of_kind):
                spans[of_kind] = ints(frames, name)[of_kind]
        identifications = self._identifications(frames)
        charges = np.where(types == PAD, DATA_HEADER_LENGTH, spans)
        return Events(
            rows,
            ints(frames, "time_ns")[rows],
            types[rows],
            kinds[rows],
            flow_of[rows],
            starts[rows],
            (starts + spans)[rows],
            packet_numbers(frames)[rows],
            identifications[rows],
            receivers[rows],
            (starts + charges)[rows],
        )

    def _identifications(self, frames: Any) -> Any:
        """Return the IPv4 identification of each frame's packet, up to the first packet longer than
        the MTU.

        A packet longer than the MTU consists of several datagrams, merged by the network card or
        the Linux kernel (GRO). Each had a different identification, and the capture contains only
        the first.
        """
        found = ints(frames, "ip_identification", NO_IDENTIFICATION)
        if self._geometry.mtu is None:
            return found
        merged = np.flatnonzero(ints(frames, "datagram_length") > self._geometry.mtu)
        if not self._has_merged and not len(merged):
            return found
        first = 0 if self._has_merged else int(merged[0])
        self._has_merged = True
        return np.where(np.arange(len(found)) < first, found, NO_IDENTIFICATION)

    def _flows_of(self, frames: Any, kinds: Any) -> tuple[Any, Any]:
        """Return each frame's flow (negative if none matches, or it is left out), and the number of
        the receiver that sent the frame (negative if the stream's sender did).
        """
        sent = (kinds == kernel.FRAME) | (kinds == kernel.HEARTBEAT)
        found = np.full(len(kinds), -1, dtype=np.int32)
        receivers = np.full(len(kinds), -1, dtype=np.int32)
        for where, side in ((sent, "destination"), (~sent & (kinds != _NONE), "source")):
            rows = np.flatnonzero(where)
            if not len(rows):
                continue
            codes, texts = endpoints_of(frames, side, rows)
            known = [self._flow_index(text, side == "destination") for text in texts]
            found[rows] = np.array(known, dtype=np.int32)[codes]
            if side == "source":
                numbers = [self._receiver_number(text) for text in texts]
                receivers[rows] = np.array(numbers, dtype=np.int32)[codes]
        self.unmatched += int(np.count_nonzero((kinds != _NONE) & (found == -1)))
        return found, receivers

    def _is_left_out(self, endpoint: str, is_destination: bool) -> bool:
        known = self._geometry.endpoints
        if known is None:
            return False
        return endpoint not in (known.destinations if is_destination else known.receivers)

    def _receiver_number(self, endpoint: str) -> int:
        if self._is_left_out(endpoint, False):
            return _LEFT_OUT
        return self._receivers.setdefault(endpoint, len(self._receivers))

    def _flow_index(self, endpoint: str, is_destination: bool) -> int:
        if self._is_left_out(endpoint, is_destination):
            return _LEFT_OUT
        index = self._flows.get(endpoint)
        if index is None and not is_destination:
            # Receivers in a multicast group send from their unicast addresses.
            return 0 if len(self._flows) == 1 else -1
        if index is None:
            index = self._flows[endpoint] = len(self._flows)
        return index


def is_group(destination: str) -> bool:
    """Return whether a destination, in the form `address port`, is a multicast group."""
    return ip_address(destination.partition(" ")[0]).is_multicast


def grow(array: Any, needed: int) -> Any:
    """Return the array, or a copy extended with zeros if it has fewer than `needed` entries."""
    longer = with_room(array, len(array), needed - len(array))
    if longer is not array:
        longer[len(array) :] = np.zeros(1, dtype=array.dtype)
    return longer


def with_room(array: Any, used: int, count: int) -> Any:
    """Return the array, or a copy of its first `used` entries, with room for `count` more entries,
    which are undefined.
    """
    if used + count <= len(array):
        return array
    longer = np.empty(max(used + count, 2 * len(array)), dtype=array.dtype)
    longer[:used] = array[:used]
    return longer


def trim(array: Any, used: int) -> Any:
    """Return the array, or a copy of its first `used` entries if most entries are unused.

    A capture may contain very many streams, each of which keeps such arrays.
    """
    return array[:used].copy() if len(array) > 2 * used + UNUSED_MAX else array


def bools(values: Any) -> Any:
    """Return an Arrow column of booleans as a numpy array."""
    return values.to_numpy(zero_copy_only=False)


def ints(frames: Any, name: str, null_value: int = 0) -> Any:
    """Return an Arrow column of integers as a numpy array, with `null_value` in place of nulls."""
    column = frames.column(name)
    if column.null_count:
        column = pc.fill_null(column, null_value)
    return column.to_numpy(zero_copy_only=False)


def with_session(frames: Any) -> Any:
    """Return the frames that have a session id, which are all except resolution frames."""
    sessions = frames.column("session_id")
    return frames.filter(pc.is_valid(sessions)) if sessions.null_count else frames


def packet_numbers(frames: Any) -> Any:
    """Return a number for each frame that identifies its packet, as int64[n]."""
    return (ints(frames, "file_index").astype(np.int64) << 48) + ints(frames, "record_at")


def dictionary_codes(column: Any) -> tuple[Any, pa.Array]:
    """Return a text column's dictionary indices and its dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.indices.to_numpy(), column.dictionary


def types_of(frames: Any) -> Any:
    """Return each frame's type as a frame_class code, as int32[n]."""
    codes, names = dictionary_codes(frames.column("frame_type"))
    return np.array([CODES[name] for name in names.to_pylist()], dtype=np.int32)[codes]


def endpoint_codes(frames: Any, side: str) -> tuple[Any, pa.Array]:
    """Return each frame's `source` or `destination` as an int64 code, and the addresses.

    The lower 16 bits of a code are the port; above them is the index of the address.
    """
    codes, addresses = dictionary_codes(frames.column(f"{side}_address"))
    return codes.astype(np.int64) << 16 | ints(frames, f"{side}_port"), addresses


def endpoint_text(code: int, addresses: pa.Array) -> str:
    """Format an endpoint code as address and port."""
    return f"{addresses[code >> 16]} {code & 0xFFFF}"


def endpoints_of(frames: Any, side: str, rows: Any) -> tuple[Any, list[str]]:
    """Return the rows' `source` or `destination` as indices into a list of strings, and that list.

    The strings are in order of first occurrence.
    """
    codes, addresses = endpoint_codes(frames, side)
    chosen = codes[rows]
    if len(chosen) and (chosen == chosen[0]).all():
        return np.zeros(len(chosen), dtype=np.int32), [endpoint_text(int(chosen[0]), addresses)]
    encoded = pa.array(chosen).dictionary_encode()
    texts = [endpoint_text(code, addresses) for code in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy(), texts
