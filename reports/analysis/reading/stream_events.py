"""The frames of one stream at one vantage point as arrays of events, which kernels follow.

    frames of the stream, in capture order --> kind, flow, from, to, time --> kernels

A flow is what goes to one destination: a multi-destination publication sends each frame to each of
them, and what is sent to another receiver is no retransmission. NAKs and status messages belong to
the flow whose destination they come from.
"""

from dataclasses import dataclass
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
_KIND_OF = np.full(HEARTBEAT + 1, _NONE, dtype=np.uint8)
"By the code of a frame's type."
_KIND_OF[[DATA, PAD]] = kernel.FRAME
_KIND_OF[[HEARTBEAT, NAK, SM]] = kernel.HEARTBEAT, kernel.NAK, kernel.STATUS


@dataclass(frozen=True)
class Events:
    """Events of a batch; all arrays of one length."""

    rows: Any
    "Which rows of the batch these are."
    times_ns: Any
    kinds: Any
    flow_of: Any
    starts: Any
    ends: Any
    packets: Any
    "Which packet held it: the same number for frames of one packet."
    identifications: Any
    "Of the IP packet; NO_IDENTIFICATION where it has none, or where it may stand for several."
    charged: Any
    "Up to where the sender's limit must be: of padding, of which the header passes, its header."


class StreamEvents:
    """Makes the events of one stream; knows its flows."""

    COLUMNS = (
        "time_ns", "frame_type", "flags", "frame_length", "term_id", "term_offset", "nak_length",
        "window_bytes", "datagram_length", "ip_identification", "file_index", "record_at",
        "source_address", "source_port", "destination_address", "destination_port",
    )  # fmt: skip
    "Of the table of frames, that are needed beside the key."

    def __init__(self, key: tuple[str, int, int], geometry: Geometry) -> None:
        self._key, self._geometry = key, geometry
        self._flows: dict[str, int] = {}
        self._has_trains = False
        self.unmatched = 0
        "NAKs and status messages so far that belong to no flow."

    @property
    def destinations(self) -> list[str]:
        """Address and port of each flow, in the order of their indices."""
        return list(self._flows)

    def of(self, frames: pa.RecordBatch | pa.Table) -> Events:
        """The events of some frames of this stream."""
        types = types_of(frames)
        kinds = _KIND_OF[types]
        flags = ints(frames, "flags")
        kinds[(kinds == kernel.STATUS) & (flags & _STATUS_SETUP != 0)] = _NONE
        flow_of = self._flows_of(frames, kinds)
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
            kinds[rows],
            flow_of[rows],
            starts[rows],
            (starts + spans)[rows],
            packet_numbers(frames)[rows],
            identifications[rows],
            (starts + charges)[rows],
        )

    def _identifications(self, frames: Any) -> Any:
        """Of each frame's packet, up to the first that is longer than any.

        Such a one is a train of datagrams that the network card or the kernel takes for one: it
        has as many numbers, of which the capture holds the first.
        """
        found = ints(frames, "ip_identification", NO_IDENTIFICATION)
        if self._geometry.mtu is None:
            return found
        trains = np.flatnonzero(ints(frames, "datagram_length") > self._geometry.mtu)
        if not self._has_trains and not len(trains):
            return found
        first = 0 if self._has_trains else int(trains[0])
        self._has_trains = True
        return np.where(np.arange(len(found)) < first, found, NO_IDENTIFICATION)

    def _flows_of(self, frames: Any, kinds: Any) -> Any:
        """The flow of each frame; -1 of control frames that belong to none."""
        sent = (kinds == kernel.FRAME) | (kinds == kernel.HEARTBEAT)
        found = np.full(len(kinds), -1, dtype=np.int32)
        for where, side in ((sent, "destination"), (~sent & (kinds != _NONE), "source")):
            rows = np.flatnonzero(where)
            if not len(rows):
                continue
            codes, texts = ends_of(frames, side, rows)
            known = [self._flow_index(text, side == "destination") for text in texts]
            found[rows] = np.array(known, dtype=np.int32)[codes]
        self.unmatched += int(np.count_nonzero((kinds != _NONE) & (found < 0)))
        return found

    def _flow_index(self, end: str, is_destination: bool) -> int:
        index = self._flows.get(end)
        if index is None and not is_destination:
            # Receivers of a multicast group answer from addresses of their own.
            return 0 if len(self._flows) == 1 else -1
        if index is None:
            index = self._flows[end] = len(self._flows)
        return index


def grown(array: Any, needed: int) -> Any:
    """The array, or a longer copy with zeros behind if it has less than `needed` places."""
    if needed <= len(array):
        return array
    longer = np.zeros(max(needed, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def bools(values: Any) -> Any:
    """An Arrow column of truths as an array."""
    return values.to_numpy(zero_copy_only=False)


def ints(frames: Any, name: str, instead: int = 0) -> Any:
    """A column of integers as an array; null as 0, or as told."""
    column = frames.column(name)
    if column.null_count:
        column = pc.fill_null(column, instead)
    return column.to_numpy(zero_copy_only=False)


def with_session(frames: Any) -> Any:
    """Those frames that belong to a stream: all but the rare resolution frames."""
    sessions = frames.column("session_id")
    return frames.filter(pc.is_valid(sessions)) if sessions.null_count else frames


def packet_numbers(frames: Any) -> Any:
    """int64[n]: a number for the packet that held each frame, the same for no other packet."""
    return (ints(frames, "file_index").astype(np.int64) << 48) + ints(frames, "record_at")


def coded(column: Any) -> tuple[Any, pa.Array]:
    """A column of texts, which may be CODED: which of the texts each row has, and the texts."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.indices.to_numpy(), column.dictionary


def types_of(frames: Any) -> Any:
    """int32[n]: the type of each frame, a code of frame_class."""
    codes, names = coded(frames.column("frame_type"))
    return np.array([CODES[name] for name in names.to_pylist()], dtype=np.int32)[codes]


def end_codes(frames: Any, side: str) -> tuple[Any, pa.Array]:
    """int64[n]: a number for address and port of the `source` or `destination`; the addresses.

    The port is its lower 16 bits, above it is which of the addresses it is.
    """
    codes, addresses = coded(frames.column(f"{side}_address"))
    return codes.astype(np.int64) << 16 | ints(frames, f"{side}_port"), addresses


def end_text(code: int, addresses: pa.Array) -> str:
    """Address and port as one text."""
    return f"{addresses[code >> 16]} {code & 0xFFFF}"


def ends_of(frames: Any, side: str, rows: Any) -> tuple[Any, list[str]]:
    """Address and port of the `source` or `destination`: which of the texts each frame has.

    Of these rows only; texts come in the order in which the rows have them.
    """
    codes, addresses = end_codes(frames, side)
    chosen = codes[rows]
    if len(chosen) and (chosen == chosen[0]).all():
        return np.zeros(len(chosen), dtype=np.int32), [end_text(int(chosen[0]), addresses)]
    encoded = pa.array(chosen).dictionary_encode()
    texts = [end_text(code, addresses) for code in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy(), texts
