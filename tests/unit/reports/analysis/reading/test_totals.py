"""Totals equal a naive sum over the rows of frames, for any frames."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.reader import GOLDEN
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.kernels import totals_kernel as kernel
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.reading.schema import FRAMES, READ_FRAMES, decode_dictionaries
from windtunnel.reports.analysis.reading.totals import (
    COLUMNS,
    KEYS,
    MAXIMA,
    MINIMA,
    SUMS,
    TOTALS,
    totals_of,
)

ORDER = [(name, "ascending") for name, _ in KEYS]
POSITIONAL = ("DATA", "PAD")


def row_of(frame):
    """Return the row of totals of one frame."""
    kind, length, offset = frame["frame_type"], frame["frame_length"], frame["term_offset"] or 0
    span = -(-length // 32) * 32 if kind in POSITIONAL else 0
    return {
        "vantage_point": frame["vantage_point"],
        "session_id": frame["session_id"],
        "stream_id": frame["stream_id"],
        "source": f"{frame['source_address']} {frame['source_port']}",
        "destination": f"{frame['destination_address']} {frame['destination_port']}",
        "frame_type": kind,
        "term_id": frame["term_id"],
        "size_class": (length - 1).bit_length() if kind in POSITIONAL else 0,
        "end_flags": frame["flags"] & 0x30 if kind == "HEARTBEAT" else 0,
        "frames": 1,
        "payload_bytes": length - 32 if kind == "DATA" else 0,
        "span_bytes": span,
        "first_ns": frame["time_ns"],
        "last_ns": frame["time_ns"],
        "least_offset": offset,
        "end_offset": offset + span,
        "least_initial": frame["initial_term_id"],
        "most_initial": frame["initial_term_id"],
        "term_length": frame["term_length"],
        "mtu": frame["mtu"],
    }


def naive(frames):
    """Compute TOTALS of frames with dictionaries."""
    groups = {}
    for frame in frames:
        if frame["session_id"] is not None:
            row = row_of(frame)
            groups.setdefault(tuple(row[name] for name, _ in KEYS), []).append(row)
    totals = []
    for key, rows in groups.items():
        total = dict(zip((name for name, _ in KEYS), key, strict=True))
        for names, join in ((SUMS, sum), (MINIMA, min), (MAXIMA, max)):
            for name, _ in names:
                values = [row[name] for row in rows if row[name] is not None]
                total[name] = join(values) if values else None
        totals.append(total)
    return pa.Table.from_pylist(totals, schema=TOTALS).sort_by(ORDER)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.pcap.xz")), ids=lambda path: path.stem)
def test_totals_of_golden_captures(path):
    for batch in local_frames(find_captures([str(path)]), ReadSettings()).batches(COLUMNS):
        assert totals_of(batch).sort_by(ORDER) == naive(decode_dictionaries(batch).to_pylist())


IDS = st.sampled_from([0, 1, -1, 7, (1 << 31) - 1, -(1 << 31)])
OFFSETS = st.integers(0, 1 << 15).map(lambda each: each * 32)


@st.composite
def frames_of(draw):
    kind = draw(st.sampled_from(["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "RES"]))
    has_term, is_setup = kind not in ("RTTM", "RES"), kind == "SETUP"
    shortest = 0 if kind == "HEARTBEAT" else 32
    return {
        "vantage_point": draw(st.sampled_from(["near", "far"])),
        "session_id": None if kind == "RES" else draw(IDS),
        "stream_id": None if kind == "RES" else draw(IDS),
        "source_address": draw(st.sampled_from(["10.0.0.1", "fd00::1"])),
        "source_port": draw(st.sampled_from([1, 65_535])),
        "destination_address": draw(st.sampled_from(["10.0.0.2", "224.0.1.1"])),
        "destination_port": draw(st.sampled_from([1, 65_535])),
        "frame_type": kind,
        "term_id": draw(IDS) if has_term else None,
        "term_offset": draw(OFFSETS) if has_term else None,
        "frame_length": 0 if not shortest else draw(st.integers(shortest, 1 << 24)),
        "flags": draw(st.integers(0, 255)),
        "time_ns": draw(st.integers(0, 1 << 62)),
        "initial_term_id": draw(IDS) if is_setup else None,
        "term_length": draw(st.sampled_from([1 << 16, 1 << 30])) if is_setup else None,
        "mtu": draw(st.sampled_from([1_408, 65_504])) if is_setup else None,
    }


@given(st.lists(frames_of(), max_size=40), st.booleans())
@settings(max_examples=300)
def test_totals_of_any_frames_with_plain_and_dictionary_encoded_texts(frames, are_coded):
    fields = READ_FRAMES if are_coded else FRAMES
    schema = pa.schema([fields.field(name) for name in COLUMNS])
    batch = pa.RecordBatch.from_pylist(frames, schema=schema)
    assert totals_of(batch).sort_by(ORDER) == naive(frames)


def test_totals_of_no_frames():
    none = pa.RecordBatch.from_pylist([], schema=READ_FRAMES)
    assert totals_of(none) == TOTALS.empty_table()


def test_rows_of_totals_are_written_to_memory_that_is_not_zeroed():
    def summed(fill):
        numbers = [np.array([each, each], dtype=np.int32) for each in range(1, 11)]
        numbers[3], numbers[4] = (each.astype(np.int64) for each in numbers[3:5])
        times_ns = np.array([7, 9], dtype=np.int64)
        more = [np.array([each, each + 1], dtype=np.int32) for each in (20, 30, 40)]
        width = kernel.TOTAL.itemsize // 8
        found = np.full(2 * width, fill, dtype=np.int64).view(kernel.TOTAL)
        slots = np.empty(8, dtype=np.int32)
        return found[: kernel.sum_up(*numbers, times_ns, *more, slots, found)].tolist()

    assert summed(fill=-1) == summed(fill=0)
    assert len(summed(fill=0)) == 1
