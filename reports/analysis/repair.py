"""Gaps and their repair, and the fate of frames, of one stream at one vantage point.

    frames of the stream, in capture order --> events --> `repair_kernel` --> flows, gaps, fates

A flow is what goes to one destination: a multi-destination publication sends each frame to each of
them, and what is sent to another receiver is no retransmission. NAKs and status messages belong to
the flow whose destination they come from. At one vantage point fates are inferred: the flow says
so.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reports.analysis import repair_kernel as kernel
from reports.analysis.geometry import Geometry, StreamKey, positions

FATE_NAMES = ("first", "resent", "reordered", "duplicate", "earlier")
_KEY = [("vantage_point", pa.string()), ("session_id", pa.int32()), ("stream_id", pa.int32())]
FLOWS = pa.schema(
    [
        *_KEY,
        ("destination", pa.string()),
        *((f"{name}_frames", pa.int64()) for name in FATE_NAMES),
        *((f"{name}_bytes", pa.int64()) for name in FATE_NAMES),
        ("messages", pa.int64()),
        ("high_position", pa.int64()),
        ("naks", pa.int64()),
        ("nak_bytes", pa.int64()),
        ("status_messages", pa.int64()),
        ("unmatched_control", pa.int64()),
        ("reordered_ns_max", pa.int64()),
        ("is_inferred", pa.bool_()),
        ("problem", pa.string()),
    ]
)
"""Bytes are of the stream, with headers and padding. `messages`: whose last frame was seen."""
GAPS = pa.schema(
    [
        *_KEY,
        ("destination", pa.string()),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("cause", pa.string()),
        ("outcome", pa.string()),
        ("opened_ns", pa.int64()),
        ("first_nak_ns", pa.int64()),
        ("last_nak_ns", pa.int64()),
        ("nak_count", pa.int64()),
        ("resent_frames", pa.int64()),
        ("resent_bytes", pa.int64()),
        ("repaired_ns", pa.int64()),
        ("passed_ns", pa.int64()),
        ("time_to_repair_ns", pa.int64()),
    ]
)
"""`time_to_repair_ns`: from the first sign, a later frame or a NAK, to the last that filled it."""

CAUSES = ("before capture", "behind capture")
OUTCOMES = ("repaired", "reordered", "passed", "open")
"""All of it came again after a NAK; it came late by itself; the receiver went on without it, as an
unreliable one does; neither came by until the capture's end."""

_PIECES_MAX = 1 << 16
_STATUS_SETUP = 0x80


class RepairWalk:
    """Follows one stream at one vantage point; `feed` its frames in capture order, then read."""

    COLUMNS = (
        "time_ns", "frame_type", "flags", "frame_length", "term_id", "term_offset", "nak_length",
        "source_address", "source_port", "destination_address", "destination_port",
    )  # fmt: skip
    "Of the table of frames, that are needed beside the key."

    def __init__(self, key: tuple[str, int, int], geometry: Geometry) -> None:
        self._key, self._geometry = key, geometry
        self._flow_indices: dict[str, int] = {}
        self._flows = np.zeros(1, dtype=kernel.FLOW)
        self._gaps = np.zeros(1 << 10, dtype=kernel.GAP)
        self._pieces = np.zeros(_PIECES_MAX, dtype=kernel.PIECE)
        self._control = np.zeros(kernel.CONTROLS, dtype=np.int64)
        self._unmatched = 0

    def feed(self, frames: pa.RecordBatch | pa.Table) -> pa.Array:
        """Take in frames of this stream; returns the fate of each, null of what has none."""
        count = frames.num_rows
        names = frames.column("frame_type")
        kinds = np.full(count, 255, dtype=np.uint8)
        for kind, types in (
            (kernel.FRAME, ["DATA", "PAD"]),
            (kernel.HEARTBEAT, ["HEARTBEAT"]),
            (kernel.NAK, ["NAK"]),
            (kernel.STATUS, ["SM"]),
        ):
            kinds[_bools(pc.is_in(names, pa.array(types)))] = kind
        flags = _ints(frames, "flags")
        kinds[(kinds == kernel.STATUS) & (flags & _STATUS_SETUP != 0)] = 255
        flow_of = self._flows_of(frames, kinds)
        wanted = np.flatnonzero((kinds != 255) & (flow_of >= 0))
        fates = np.full(count, kernel.NO_FATE, dtype=np.uint8)
        if len(wanted):
            fates[wanted] = self._follow(frames, kinds, flow_of, flags, wanted)
        return pa.DictionaryArray.from_arrays(
            pa.array(fates, pa.uint8(), mask=fates == kernel.NO_FATE), pa.array(FATE_NAMES)
        ).cast(pa.string())

    def _follow(self, frames: Any, kinds: Any, flow_of: Any, flags: Any, wanted: Any) -> Any:
        key: StreamKey = self._key[1:]
        zeros = np.zeros(len(kinds), dtype=np.int64)
        terms, offsets = _ints(frames, "term_id"), _ints(frames, "term_offset")
        starts = positions(zeros + key[0], zeros + key[1], terms, offsets, {key: self._geometry})
        spans = (_ints(frames, "frame_length").astype(np.int64) + 31) & ~31
        spans[kinds == kernel.HEARTBEAT] = 0
        spans[kinds == kernel.STATUS] = 0
        spans = np.where(kinds == kernel.NAK, _ints(frames, "nak_length"), spans)
        needed = int(self._control[kernel.GAPS]) + len(wanted)
        if needed > len(self._gaps):
            self._gaps = np.resize(self._gaps, 2 * needed)
        fates = np.zeros(len(wanted), dtype=np.uint8)
        is_data = _bools(pc.equal(frames.column("frame_type"), "DATA"))
        kernel.follow(
            _ints(frames, "time_ns")[wanted],
            kinds[wanted],
            flow_of[wanted],
            starts[wanted],
            (starts + spans)[wanted],
            (is_data & (flags & 0x40 != 0)).astype(np.uint8)[wanted],
            self._geometry.term_length,
            fates,
            self._flows,
            self._gaps,
            self._pieces,
            self._control,
        )
        return fates

    def _flows_of(self, frames: Any, kinds: Any) -> Any:
        """The flow of each frame; -1 of control frames that belong to none."""
        sent = (kinds == kernel.FRAME) | (kinds == kernel.HEARTBEAT)
        found = np.full(len(kinds), -1, dtype=np.int32)
        for where, side in ((sent, "destination"), (~sent & (kinds != 255), "source")):
            rows = np.flatnonzero(where)
            if not len(rows):
                continue
            ends = _ends(frames, side).take(pa.array(rows)).dictionary_encode()
            texts = ends.dictionary.to_pylist()
            known = [self._flow_index(text, side == "destination") for text in texts]
            found[rows] = np.array(known, dtype=np.int32)[ends.indices.to_numpy()]
        self._unmatched += int(np.count_nonzero((kinds != 255) & (found < 0)))
        return found

    def _flow_index(self, end: str, is_destination: bool) -> int:
        index = self._flow_indices.get(end)
        if index is None and not is_destination:
            # Receivers of a multicast group answer from addresses of their own.
            return 0 if len(self._flow_indices) == 1 else -1
        if index is None:
            index = self._flow_indices[end] = len(self._flow_indices)
            if index >= len(self._flows):
                grown = np.zeros(2 * len(self._flows), dtype=kernel.FLOW)
                grown[: len(self._flows)] = self._flows
                self._flows = grown
        return index

    def flows(self) -> list[dict[str, Any]]:
        """One row of schema FLOWS for each destination."""
        problem = self._geometry.problem
        if self._control[kernel.LOST_TRACK]:
            problem = "more gaps were open at once than can be followed"
        rows = []
        for destination, index in self._flow_indices.items():
            flow = self._flows[index]
            row = self._about(destination)
            for fate, name in enumerate(FATE_NAMES):
                row[f"{name}_frames"] = int(flow["frames"][fate])
                row[f"{name}_bytes"] = int(flow["bytes"][fate])
            for name in ("messages", "naks", "nak_bytes", "status_messages", "reordered_ns_max"):
                row[name] = int(flow[name])
            row["high_position"] = int(flow["hwm"])
            row["unmatched_control"] = self._unmatched
            row["is_inferred"] = True
            row["problem"] = problem
            rows.append(row)
        return rows

    def gaps(self) -> Iterator[dict[str, Any]]:
        """The rows of schema GAPS, in the order in which the gaps were noticed."""
        destinations = {index: end for end, index in self._flow_indices.items()}
        for gap in self._gaps[: int(self._control[kernel.GAPS])]:
            yield {**self._about(destinations[int(gap["flow"])]), **_gap_row(gap)}

    def _about(self, destination: str) -> dict[str, Any]:
        names = [name for name, _ in _KEY]
        return {**dict(zip(names, self._key, strict=True)), "destination": destination}


def _gap_row(gap: Any) -> dict[str, Any]:
    length = int(gap["end"] - gap["start"])
    asked, filled = int(gap["first_nak_ns"]), int(gap["filled_ns"])
    is_whole = bool(gap["is_whole"])
    if is_whole:
        outcome = "repaired" if asked else "reordered"
    else:
        outcome = "passed" if gap["passed_ns"] else "open"
    first_sign = int(gap["opened_ns"])
    return {
        "position": int(gap["start"]),
        "length": length,
        "cause": CAUSES[int(gap["cause"])],
        "outcome": outcome,
        "opened_ns": first_sign,
        "first_nak_ns": asked or None,
        "last_nak_ns": int(gap["last_nak_ns"]) or None,
        "nak_count": int(gap["nak_count"]),
        "resent_frames": int(gap["filled_frames"]),
        "resent_bytes": int(gap["filled_bytes"]),
        "repaired_ns": filled if is_whole else None,
        "passed_ns": int(gap["passed_ns"]) or None,
        "time_to_repair_ns": filled - first_sign if is_whole else None,
    }


def _bools(values: Any) -> Any:
    return values.to_numpy(zero_copy_only=False)


def _ints(frames: Any, name: str) -> Any:
    return pc.fill_null(frames.column(name), 0).to_numpy(zero_copy_only=False)


def _ends(frames: Any, side: str) -> Any:
    ports = frames.column(f"{side}_port").cast(pa.string())
    joined = pc.binary_join_element_wise(frames.column(f"{side}_address"), ports, " ")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
