"""The columns of a table of frames: one row per Aeron frame, of any engine.

    what a row is    (file_index, record_at, frame_index) names a frame and orders a capture
    who and when     vantage point, interface, time, addresses, ports
    what it says     type, flags, lengths, session, stream, term, and the fields of its type

A column that a frame's type does not have is null. Integers of the protocol keep their widths and
signs. `position` is not here: it takes the SETUP of the stream, which may lie in another file;
`streams` learns it and `position` adds it.
"""

from collections.abc import Iterator
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
    """A column, the frame types that have it, and what it holds."""

    name: str
    type: pa.DataType
    frame_types: tuple[int, ...]
    about: str


FRAME_COLUMNS = (
    FrameColumn("vantage_point", pa.string(), ANY, "where the capture was made"),
    FrameColumn("file_index", pa.int32(), ANY, "row of the table of captures"),
    FrameColumn("record_at", pa.int64(), ANY, "offset of the packet's record in the plain file"),
    FrameColumn("frame_index", pa.int32(), ANY, "within its datagram"),
    FrameColumn("interface", pa.int32(), ANY, "of a pcapng section; 0 of pcap"),
    FrameColumn("time_ns", pa.int64(), ANY, "of capture, epoch"),
    FrameColumn("source_address", pa.string(), ANY, "IPv4 or IPv6"),
    FrameColumn("source_port", pa.int32(), ANY, "UDP"),
    FrameColumn("destination_address", pa.string(), ANY, "IPv4 or IPv6"),
    FrameColumn("destination_port", pa.int32(), ANY, "UDP"),
    FrameColumn("datagram_length", pa.int32(), ANY, "UDP payload that held the frame"),
    FrameColumn("ip_identification", pa.int32(), ANY, "of the packet; null of IPv6"),
    FrameColumn("frame_type", pa.string(), ANY, "DATA, PAD, HEARTBEAT, SETUP, SM, NAK, ..."),
    FrameColumn("flags", pa.int32(), ANY, "as the header says"),
    FrameColumn("frame_length", pa.int32(), ANY, "as the header says; 0 of a heartbeat"),
    FrameColumn("session_id", pa.int32(), OF_STREAM, "of the publication"),
    FrameColumn("stream_id", pa.int32(), OF_STREAM, "of the publication"),
    FrameColumn("term_id", pa.int32(), WITH_TERM, "SETUP: active; SM: consumption; NAK: missing"),
    FrameColumn("term_offset", pa.int32(), WITH_TERM, "likewise"),
    FrameColumn("reserved_value", pa.int64(), POSITIONAL, "the application's own"),
    FrameColumn("payload_hash", pa.int64(), (DATA,), "XXH64; null where bytes are not captured"),
    FrameColumn("payload_crc32", pa.int64(), (DATA,), "likewise, CRC-32"),
    FrameColumn("initial_term_id", pa.int32(), (SETUP,), "of the stream"),
    FrameColumn("term_length", pa.int32(), (SETUP,), "of the stream"),
    FrameColumn("mtu", pa.int32(), (SETUP,), "of the stream"),
    FrameColumn("ttl", pa.int32(), (SETUP,), "multicast"),
    FrameColumn("window_bytes", pa.int32(), (SM,), "that the receiver takes"),
    FrameColumn("receiver_id", pa.int64(), (SM, RTTM, ERR), "of the driver that receives"),
    FrameColumn("group_tag", pa.int64(), (SM, ERR), "null where the frame has none"),
    FrameColumn("nak_length", pa.int32(), (NAK,), "missing bytes"),
    FrameColumn("echo_timestamp_ns", pa.int64(), (RTTM,), "of the asking driver's clock"),
    FrameColumn("reception_delta_ns", pa.int64(), (RTTM,), "spent at the answering driver"),
    FrameColumn("error_code", pa.int32(), (ERR,), "of Aeron's table"),
    FrameColumn("error_text", pa.string(), (ERR,), "null where bytes are not captured"),
    FrameColumn("response_session_id", pa.int32(), (RSP_SETUP,), "of the answering publication"),
    FrameColumn("resolutions", pa.list_(RESOLUTION), (RES,), "names that a driver knows"),
)
FRAMES = pa.schema([(column.name, column.type) for column in FRAME_COLUMNS])

CODED = {
    name: pa.dictionary(code, pa.string())
    for name, code in (
        ("vantage_point", pa.int8()),
        ("source_address", pa.int32()),
        ("destination_address", pa.int32()),
        ("frame_type", pa.int8()),
    )
}
"""Texts of which each frame has one of a few. From reader to walk they travel as numbers that point
to them: to write the text of each frame and to read it again took as long as all analyses."""
_TEXTS_FEW = 64
"""That may as well stay."""
READ_FRAMES = pa.schema([(each.name, CODED.get(each.name, each.type)) for each in FRAME_COLUMNS])
"""FRAMES as a reader makes it; `plain` makes those of it."""

CAPTURES = pa.schema(
    [
        ("file_index", pa.int32()),
        ("vantage_point", pa.string()),
        ("file", pa.string()),
        ("problem", pa.string()),
        *((name, pa.int64()) for name in COUNT_NAMES),
    ]
)
"""One row a file, or a part of one before they are summed: what became of its packets."""


def own_texts(frames: pa.RecordBatch) -> pa.RecordBatch:
    """The frames without those texts of CODED columns that no frame has.

    Some frames of a batch hold on to the texts of all, addresses of thousands of others.
    """
    columns = []
    for column in frames.columns:
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > _TEXTS_FEW:
            used, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
            code_type = column.type.index_type.to_pandas_dtype()
            texts = column.dictionary.take(pa.array(used))
            column = pa.DictionaryArray.from_arrays(codes.astype(code_type), texts)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=frames.schema)


def plain(frames: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of READ_FRAMES that there are as those of FRAMES."""
    return frames.cast(pa.schema([FRAMES.field(name) for name in frames.schema.names]))


def describe() -> Iterator[str]:
    """The columns of a frame, one line each."""
    for column in FRAME_COLUMNS:
        yield f"{column.name:<20} {column.type!s:<8} {column.about}"
