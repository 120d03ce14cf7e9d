"""Analysis of a stream at one vantage point, in a single pass over its frames.

    frames --> events --> repair --> outcome of each --> flow control, image, positions, outcomes

The result is a row of FLOWS per destination, with the flow's rows of the other tables nested in it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.reading.stream_events import Events, StreamEvents, is_group
from windtunnel.reports.analysis.streams.flow_control import STALLS, WINDOWS, FlowControlWalk
from windtunnel.reports.analysis.streams.geometry import Geometry
from windtunnel.reports.analysis.streams.image import IMAGES, MESSAGES, ImageWalk, NewFrames
from windtunnel.reports.analysis.streams.positions import POSITIONS, PositionSamples
from windtunnel.reports.analysis.streams.refused import RefusedRanges
from windtunnel.reports.analysis.streams.repair import (
    GAPS_MAX,
    RepairWalk,
    is_requested,
    lost_bytes,
)
from windtunnel.reports.analysis.streams.repair_tables import FLOWS, GAPS, KEY

WalkKey = tuple[str, int, int]
NESTED_TABLES = {
    "gaps": GAPS,
    "windows": WINDOWS,
    "stalls": STALLS,
    "positions": POSITIONS,
    "images": IMAGES,
    "message_rows": MESSAGES,
}
"""The tables whose rows are nested in their flow's row."""


def without_key(schema: pa.Schema) -> pa.DataType:
    """Return the Arrow type for a table's nested rows: a list of structs without key columns."""
    return pa.list_(pa.struct([schema.field(name) for name in schema.names[len(KEY) :]]))


NESTED_FLOWS = pa.schema(
    [*FLOWS, *(pa.field(name, without_key(schema)) for name, schema in NESTED_TABLES.items())]
)
"""The schema FLOWS, extended by the rows of all other tables, as returned by Spark workers."""


@dataclass(frozen=True)
class WalkSettings:
    """Settings of a StreamWalk: what it returns, and its limit."""

    keeps_messages: bool = False
    "Whether to return a row per message."
    max_gaps: int = GAPS_MAX
    "Maximum number of gaps that are tracked."


@dataclass(frozen=True)
class WalkedFrames:
    """The events of a batch of frames, with the outcome of each event as EVENT_OUTCOME[n]."""

    events: Events
    outcomes: Any


class StreamWalk:
    """Analyses one stream at one vantage point. Call `feed` in capture order, then `rows`."""

    COLUMNS = (
        *StreamEvents.COLUMNS, "payload_crc32", "echo_timestamp_ns", "reception_delta_ns",
    )  # fmt: skip
    "Columns of the frame table that this class needs in addition to the key columns."

    def __init__(self, key: WalkKey, geometry: Geometry, settings: WalkSettings) -> None:
        self._key, self._geometry, self._settings = key, geometry, settings
        self.events = StreamEvents(key, geometry)
        self._repair = RepairWalk(geometry, settings.max_gaps)
        self._control = FlowControlWalk(geometry)
        self._images: list[ImageWalk] = []
        self._images_in_order: list[ImageWalk] = []
        self._samples: list[PositionSamples] = []
        self._messages: list[list[Any]] = []
        self._refused: list[RefusedRanges] = []

    def feed(self, frames: pa.RecordBatch | pa.Table) -> WalkedFrames:
        """Process frames of the stream, and return their events and outcomes."""
        events = self.events.of(frames)
        count = len(self.events.destinations)
        outcomes = self._repair.feed(events, self.events.destinations)
        is_over_run = self._control.feed(events, outcomes, count)
        self._control.feed_echoes(frames)
        while len(self._images) < count:
            self._images.append(ImageWalk(self._geometry))
            self._images_in_order.append(ImageWalk(self._geometry))
            self._samples.append(PositionSamples())
            self._messages.append([])
            self._refused.append(RefusedRanges())
        new_frames = NewFrames(frames, events, outcomes)
        # Flows without frames in this batch are left as they are: a stream may have many.
        for flow in np.unique(events.flow_of).tolist():
            self._samples[flow].feed(events, outcomes, flow)
            self._keep(flow, self._images[flow].feed(new_frames.parts_of(flow)))
            self._images_in_order[flow].feed(new_frames.parts_of(flow, is_over_run))
            self._refused[flow].feed(events, is_over_run & (events.flow_of == flow))
        return WalkedFrames(events, outcomes)

    def _keep(self, flow: int, messages: Any) -> None:
        if self._settings.keeps_messages:
            self._messages[flow].append(messages)

    def rows(self) -> list[dict[str, Any]]:
        """Return the stream's rows of the table NESTED_FLOWS. Call this after its last frame."""
        return [self._row(index) for index in range(len(self.events.destinations))]

    def _row(self, index: int) -> dict[str, Any]:
        point, session, stream = self._key
        in_group = is_group(self.events.destinations[index])
        gaps = list(self._repair.gaps(index, in_group))
        for gap in gaps:
            end = gap["position"] + gap["length"]
            refused_bytes = self._refused[index].bytes_in(gap["position"], end)
            gap["refused_bytes"] = refused_bytes if is_requested(gap) else 0
        self._keep(index, self._images[index].finish())
        image = self._images[index].row()
        window = self._control.window(index, gaps, in_group)
        flow = self._repair.flow(index)
        # An unreliable receiver fills the gap that it makes when it drops a packet.
        flow["gap_fills_max"] += 0 if flow["naks"] else self._refused[index].packet_count
        lost_min, lost_max = lost_bytes(self._repair.late_bytes(index), gaps, in_group)
        self._images_in_order[index].finish()
        in_order = self._images_in_order[index].row()
        return {
            "vantage_point": point,
            "session_id": session,
            "stream_id": stream,
            "destination": self.events.destinations[index],
            **flow,
            "lost_bytes_min": lost_min,
            "lost_bytes_max": lost_max,
            "refused_bytes": sum(gap["refused_bytes"] for gap in gaps),
            "requested_bytes": sum(gap["length"] for gap in gaps if is_requested(gap)),
            "messages": image["messages"],
            "messages_min": (image if flow["naks"] else in_order)["messages"],
            "unmatched_control": self.events.unmatched,
            "gaps": gaps,
            "windows": [window],
            "stalls": list(self._control.stalls(index)),
            "positions": list(self._samples[index].rows()),
            "images": [image],
            "message_rows": _message_rows(self._messages[index]),
        }


def _message_rows(pieces: list[Any]) -> list[dict[str, Any]]:
    if not pieces:
        return []
    return [
        {
            "position": int(each["position"]),
            "length": int(each["length"]),
            "crc32": int(each["crc32"]) if each["has_crc"] else None,
            "time_ns": int(each["time_ns"]),
        }
        for each in np.concatenate(pieces)
    ]
