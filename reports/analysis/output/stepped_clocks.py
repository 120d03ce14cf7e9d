"""Leaves the figures of time out of an analysis where the times of a capture go back.

10:00:03   10:00:04 | 09:00:04   09:00:05      the time from the first to the last is unknown
"""

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.streams.flow_control import WINDOWS

_OF_TIME = {
    "streams": ("frames_per_s", "payload_bytes_per_s"),
    "flows": ("reordered_ns_max",),
    "gaps": ("time_to_repair_ns", "time_to_resend_ns"),
    "windows": (
        *(each for each in WINDOWS.names if each.endswith("_ns")),
        "stalls", "idle_pauses", "repair_median_rtts",
    ),
}  # fmt: skip
"""By table, the columns that follow from differences of times."""


def stepped_points(captures: pa.Table) -> frozenset[str]:
    """Return the vantage points at which the times of captures go back."""
    stepped = captures.filter(pc.greater(captures["clock_steps"], 0))
    return frozenset(stepped["vantage_point"].to_pylist())


def without_times(tables: Tables) -> Tables:
    """Return tables whose figures of time are null for vantage points where times go back, and
    which have no stalls there. The times of single frames are left as they were captured.
    """
    points = stepped_points(tables.captures)
    if not points:
        return tables
    changed = {}
    for name, columns in _OF_TIME.items():
        table = getattr(tables, name)
        for column in columns:
            table = _cleared(table, column, points)
        changed[name] = table
    is_stepped = pc.is_in(tables.stalls["vantage_point"], pa.array(sorted(points)))
    return replace(tables, **changed, stalls=tables.stalls.filter(pc.invert(is_stepped)))


def without_lateness(outcomes: pa.RecordBatch, points: Collection[str]) -> pa.RecordBatch:
    """Return a batch of FRAME_OUTCOMES whose lateness is null at these vantage points."""
    return _cleared(outcomes, "late_ns", points) if points else outcomes


def _cleared(
    table: pa.Table | pa.RecordBatch, column: str, points: Collection[str]
) -> pa.Table | pa.RecordBatch:
    """Return a table whose column is null for these vantage points."""
    is_stepped = pc.is_in(table["vantage_point"], pa.array(sorted(points), pa.string()))
    field = table.schema.field(column)
    values = pc.if_else(is_stepped, pa.scalar(None, field.type), table[column])
    return table.set_column(table.schema.get_field_index(column), field, values)
