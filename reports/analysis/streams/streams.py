"""The table `streams`: what each publication sent, with its times, endpoints and rates.

    totals --> one row per (vantage point, session, stream)

All frames on the wire at the vantage point are counted: a retransmit counts again, and a
multi-destination publication counts once per destination. `repair` distinguishes these cases.
"""

from typing import Any

import pyarrow as pa

from windtunnel.reports.analysis.streams.geometry import (
    FROM_SENDER,
    Geometry,
    StreamKey,
    wrapped,
)

SIZES = pa.list_(pa.struct([("at_most_bytes", pa.int64()), ("frames", pa.int64())]))
STREAMS = pa.schema(
    [
        ("vantage_point", pa.string()),
        ("session_id", pa.int32()),
        ("stream_id", pa.int32()),
        ("sources", pa.list_(pa.string())),
        ("destinations", pa.list_(pa.string())),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("initial_term_id", pa.int32()),
        ("term_length", pa.int32()),
        ("mtu", pa.int32()),
        ("position_basis", pa.string()),
        ("first_position", pa.int64()),
        ("end_position", pa.int64()),
        ("data_frames", pa.int64()),
        ("payload_bytes", pa.int64()),
        ("frames_per_s", pa.float64()),
        ("payload_bytes_per_s", pa.float64()),
        ("pad_frames", pa.int64()),
        ("padding_bytes", pa.int64()),
        ("padding_share", pa.float64()),
        ("term_count", pa.int64()),
        ("term_rotations", pa.int64()),
        ("heartbeats", pa.int64()),
        ("setups", pa.int64()),
        ("status_messages", pa.int64()),
        ("naks", pa.int64()),
        ("rtt_measurements", pa.int64()),
        ("errors", pa.int64()),
        ("has_ended", pa.bool_()),
        ("is_revoked", pa.bool_()),
        ("frame_sizes", SIZES),
        ("problem", pa.string()),
    ]
)
"""Columns of the table `streams`. `first_ns`, `last_ns`: times of the sender's first and last
frame. Rates are null if both times are equal.
"""

_EOS, _REVOKED = 0x20, 0x10


def streams_of(totals: pa.Table, known: dict[StreamKey, Geometry]) -> pa.Table:
    """Return the table `streams`: a row per vantage point and stream, ordered by first frame."""
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in totals.to_pylist():
        groups.setdefault((row["vantage_point"], row["session_id"], row["stream_id"]), []).append(
            row
        )
    rows = [
        _stream(key, group, known[key[1:]])
        for key, group in groups.items()
        if key[1:] in known and any(row["frame_type"] in FROM_SENDER for row in group)
    ]
    rows.sort(key=lambda row: (row["first_ns"], row["vantage_point"], row["session_id"]))
    return pa.Table.from_pylist(rows, schema=STREAMS)


def _stream(
    key: tuple[str, int, int], rows: list[dict[str, Any]], geometry: Geometry
) -> dict[str, Any]:
    sent = [row for row in rows if row["frame_type"] in FROM_SENDER]
    filled = [row for row in sent if row["frame_type"] in ("DATA", "PAD")]
    terms = {wrapped(row["term_id"] - geometry.initial_term_id) for row in filled}
    first_ns = min(row["first_ns"] for row in sent)
    last_ns = max(row["last_ns"] for row in sent)
    data_frames, payload = _count(rows, "DATA"), sum(row["payload_bytes"] for row in filled)
    span = sum(row["span_bytes"] for row in filled)
    padding = sum(row["span_bytes"] for row in filled if row["frame_type"] == "PAD")
    duration_s = (last_ns - first_ns) / 1e9
    ends = [row["end_flags"] for row in sent]
    return {
        "vantage_point": key[0],
        "session_id": key[1],
        "stream_id": key[2],
        "sources": sorted({row["source"] for row in sent}),
        "destinations": sorted({row["destination"] for row in sent}),
        "first_ns": first_ns,
        "last_ns": last_ns,
        "initial_term_id": geometry.initial_term_id,
        "term_length": geometry.term_length,
        "mtu": geometry.mtu,
        "position_basis": geometry.basis,
        "first_position": min(_position(row, geometry, "least_offset") for row in sent),
        "end_position": max(_position(row, geometry, "end_offset") for row in sent),
        "data_frames": data_frames,
        "payload_bytes": payload,
        "frames_per_s": data_frames / duration_s if duration_s else None,
        "payload_bytes_per_s": payload / duration_s if duration_s else None,
        "pad_frames": _count(rows, "PAD"),
        "padding_bytes": padding,
        "padding_share": padding / span if span else None,
        "term_count": len(terms),
        "term_rotations": max(terms) - min(terms) if terms else 0,
        "heartbeats": _count(rows, "HEARTBEAT"),
        "setups": _count(rows, "SETUP"),
        "status_messages": _count(rows, "SM"),
        "naks": _count(rows, "NAK"),
        "rtt_measurements": _count(rows, "RTTM"),
        "errors": _count(rows, "ERR"),
        "has_ended": any(each & _EOS for each in ends),
        "is_revoked": any(each & _REVOKED for each in ends),
        "frame_sizes": _sizes(filled),
        "problem": geometry.problem,
    }


def _count(rows: list[dict[str, Any]], kind: str) -> int:
    return sum(row["frames"] for row in rows if row["frame_type"] == kind)


def _position(row: dict[str, Any], geometry: Geometry, offset: str) -> int:
    terms = wrapped(row["term_id"] - geometry.initial_term_id)
    return int(terms * geometry.term_length + row[offset])


def _sizes(filled: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Count DATA frames by size class, which is frame_length rounded up to a power of two."""
    counted: dict[int, int] = {}
    for row in filled:
        if row["frame_type"] == "DATA":
            counted[row["size_class"]] = counted.get(row["size_class"], 0) + row["frames"]
    return [{"at_most_bytes": 1 << size, "frames": counted[size]} for size in sorted(counted)]
