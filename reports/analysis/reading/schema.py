"""The columns of the frame table, which has one row per Aeron frame.

    identity         (file_index, record_at, frame_index) identifies a frame and orders a capture
    capture          vantage point, interface, time, addresses, ports
    contents         type, flags, lengths, session, stream, term, and the type's specific fields

The table is the same on both engines. A column that a frame's type does not have is null. Protocol
integers keep their width and sign. The table has no column `position`, because a position can only
be computed with the stream's SETUP, which may be in another file. `streams.geometry` adds it.
"""

from dataclasses import fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    ERR,
    HEARTBEAT,
    NAK,
    PAD,
    RES,
    RSP_SETUP,
    RTTM,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.capture.capture_clock import ClockSteps
from windtunnel.harness.dissect.capture.capture_rows import COUNT_NAMES

ANY = (PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP, HEARTBEAT)
POSITIONAL = (PAD, DATA, HEARTBEAT)
OF_STREAM = tuple(each for each in ANY if each != RES)
WITH_TERM = (*POSITIONAL, SETUP, SM, NAK)

RESOLUTION = pa.struct(
    [
        ("name", pa.string()),
        ("address", pa.string()),
        ("port", pa.int32()),
        ("age_ms", pa.int32()),
        ("is_self", pa.bool_()),
    ]
)


class FrameColumn(NamedTuple):
    """A column of the frame table: its Arrow field, its frame types, and a description."""

    name: str
    type: pa.DataType
    frame_types: tuple[int, ...]
    description: str


FRAME_COLUMNS = (
    FrameColumn("vantage_point", pa.string(), ANY, "capture point"),
    FrameColumn("file_index", pa.int32(), ANY, "row of the table `captures`"),
    FrameColumn(
        "record_at", pa.int64(), ANY, "offset of the packet record in the uncompressed file"
    ),
    FrameColumn("frame_index", pa.int32(), ANY, "index of the frame in its datagram"),
    FrameColumn("interface", pa.int32(), ANY, "interface of a pcapng section; 0 for pcap"),
    FrameColumn("time_ns", pa.int64(), ANY, "capture time since the epoch"),
    FrameColumn("source_address", pa.string(), ANY, "IPv4 or IPv6 address"),
    FrameColumn("source_port", pa.int32(), ANY, "UDP port"),
    FrameColumn("destination_address", pa.string(), ANY, "IPv4 or IPv6 address"),
    FrameColumn("destination_port", pa.int32(), ANY, "UDP port"),
    FrameColumn(
        "datagram_length", pa.int32(), ANY, "length of the UDP payload that contains the frame"
    ),
    FrameColumn("ip_identification", pa.int32(), ANY, "from the IPv4 header; null for IPv6"),
    FrameColumn("frame_type", pa.string(), ANY, "DATA, PAD, HEARTBEAT, SETUP, SM, NAK, ..."),
    FrameColumn("flags", pa.int32(), ANY, "from the frame header"),
    FrameColumn("frame_length", pa.int32(), ANY, "from the frame header; 0 for a heartbeat"),
    FrameColumn("session_id", pa.int32(), OF_STREAM, "session id of the publication"),
    FrameColumn("stream_id", pa.int32(), OF_STREAM, "stream id of the publication"),
    FrameColumn("term_id", pa.int32(), WITH_TERM, "SETUP: active; SM: consumed; NAK: missing"),
    FrameColumn("term_offset", pa.int32(), WITH_TERM, "offset in that term"),
    FrameColumn("reserved_value", pa.int64(), POSITIONAL, "value set by the application"),
    FrameColumn("payload_hash", pa.int64(), (DATA,), "XXH64; null if not captured completely"),
    FrameColumn(
        "payload_crc32", pa.int64(), (DATA,), "CRC-32; null if not requested or not captured"
    ),
    FrameColumn("initial_term_id", pa.int32(), (SETUP,), "first term id of the stream"),
    FrameColumn("term_length", pa.int32(), (SETUP,), "term length of the stream"),
    FrameColumn("mtu", pa.int32(), (SETUP,), "MTU of the stream"),
    FrameColumn("ttl", pa.int32(), (SETUP,), "multicast time to live"),
    FrameColumn("window_bytes", pa.int32(), (SM,), "receiver window"),
    FrameColumn("receiver_id", pa.int64(), (SM, RTTM, ERR), "id of the receiver"),
    FrameColumn("group_tag", pa.int64(), (SM, ERR), "multicast group tag; null if absent"),
    FrameColumn("nak_length", pa.int32(), (NAK,), "number of missing bytes"),
    FrameColumn("echo_timestamp_ns", pa.int64(), (RTTM,), "time by the requesting driver's clock"),
    FrameColumn("reception_delta_ns", pa.int64(), (RTTM,), "time spent in the replying driver"),
    FrameColumn("error_code", pa.int32(), (ERR,), "Aeron error code"),
    FrameColumn("error_text", pa.string(), (ERR,), "message; null if not captured completely"),
    FrameColumn(
        "response_session_id", pa.int32(), (RSP_SETUP,), "session id of the response publication"
    ),
    FrameColumn("resolutions", pa.list_(RESOLUTION), (RES,), "name resolver entries"),
)
FRAMES = pa.schema([(column.name, column.type) for column in FRAME_COLUMNS])

DICTIONARY_TYPES = {
    name: pa.dictionary(code, pa.string())
    for name, code in (
        ("vantage_point", pa.int8()),
        ("source_address", pa.int32()),
        ("destination_address", pa.int32()),
        ("frame_type", pa.int8()),
    )
}
"""Text columns with few distinct values, which readers dictionary-encode. Without the encoding,
writing and parsing strings for every frame took as long as the rest of the analysis.
"""
_DICTIONARY_SIZE_MIN = 64
"""Size below which a dictionary is not compacted."""
READ_FRAMES = pa.schema(
    [(each.name, DICTIONARY_TYPES.get(each.name, each.type)) for each in FRAME_COLUMNS]
)
"""The schema FRAMES with dictionary columns, as readers return it. See `decode_dictionaries`."""

CAPTURES = pa.schema(
    [
        ("file_index", pa.int32()),
        ("vantage_point", pa.string()),
        ("file", pa.string()),
        ("problem", pa.string()),
        *((name, pa.int64()) for name in COUNT_NAMES),
        *((each.name, pa.int64()) for each in fields(ClockSteps)),
    ]
)
"""Columns of the table `captures`: packet counts per file, or per part of a file, and where the
times go back. `first_packet`: number of the first packet that has a time, from 1, or 0 if none has
one; `first_ns`, `last_ns`: times of the first and the last of them; `clock_steps`: how often a
packet is earlier than the one before it by CLOCK_STEP_NS or more; `clock_step_ns`: by how much at
most; `clock_step_packet`: number of the first such packet, or 0. Before the first packet of a file
is the last one of the file before it at the same vantage point.
"""


def compact_dictionaries(frames: pa.RecordBatch) -> pa.RecordBatch:
    """Remove unused entries from the dictionaries of a batch's string columns.

    A slice of a batch refers to the dictionary of the entire batch, which may have thousands of
    other addresses.
    """
    columns = []
    for column in frames.columns:
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > _DICTIONARY_SIZE_MIN:
            used, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
            code_type = column.type.index_type.to_pandas_dtype()
            texts = column.dictionary.take(pa.array(used))
            column = pa.DictionaryArray.from_arrays(codes.astype(code_type), texts)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=frames.schema)


def decode_dictionaries(frames: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the dictionary-encoded strings of a batch to plain strings."""
    return frames.cast(pa.schema([FRAMES.field(name) for name in frames.schema.names]))
