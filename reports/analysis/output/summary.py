"""Tables in plain words: one line a stream and destination, one a link, then what
was not read."""

from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.output.tables import Tables


def summary_lines(tables: Tables) -> list[str]:
    """The summary; never empty."""
    counts = _sums(tables)
    if not counts["frames"]:
        return [_nothing(counts), *_partial(tables)]
    gaps, stalls = _by_flow(tables.gaps), _by_flow(tables.stalls)
    lines = [
        _flow_line(flow, gaps.get(_key(flow), []), stalls.get(_key(flow), []))
        for flow in tables.flows.to_pylist()
    ]
    lines += _link_lines(tables)
    ignored = counts["unrecognised"] + counts["other_ports"] + counts["not_udp"]
    rest = f"; {ignored:,} packets are not Aeron's, or of other ports" if ignored else ""
    lines.append(f"{counts['frames']:,} frames in {counts['packets']:,} packets{rest}")
    return [*lines, *_partial(tables)]


def _partial(tables: Tables) -> list[str]:
    return [f"PARTIAL: {problem}" for problem in tables.problems]


def _sums(tables: Tables) -> dict[str, int]:
    names = ("frames", "packets", "unrecognised", "other_ports", "not_udp")
    return {name: sum(tables.captures[name].to_pylist()) for name in names}


def _nothing(counts: dict[str, int]) -> str:
    return (
        f"no Aeron frame in {counts['packets']:,} packets: {counts['unrecognised']:,} other UDP "
        f"datagrams, {counts['other_ports']:,} of other ports, {counts['not_udp']:,} not UDP"
    )


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("vantage_point", "session_id", "stream_id", "destination"))


def _by_flow(table: pa.Table) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(_key(row), []).append(row)
    return found


def _flow_line(
    flow: dict[str, Any], gaps: list[dict[str, Any]], stalls: list[dict[str, Any]]
) -> str:
    head = (
        f"stream {flow['stream_id']} session {flow['session_id']} at {flow['vantage_point']} to "
        f"{flow['destination'].replace(' ', ' port ')}: "
    )
    told = [
        f"{flow['messages']:,} messages in {flow['first_frames']:,} frames "
        f"to position {flow['high_position']:,}"
    ]
    lost = [gap for gap in gaps if gap["outcome"] != "reordered"]
    if lost:
        told.append(f"lost {_bytes(lost)} bytes in {_counted(len(lost), 'gap')}")
        told += _repairs(lost)
    else:
        told.append("no gap seen")
    if flow["resent_frames"]:
        told.append(f"{flow['resent_bytes']:,} bytes sent again")
    if flow["reordered_frames"]:
        told.append(
            f"{_counted(flow['reordered_frames'], 'frame')} out of order, by up to "
            f"{duration(flow['reordered_ns_max'])}"
        )
    if flow["duplicate_frames"]:
        told.append(f"{_counted(flow['duplicate_frames'], 'frame')} twice")
    if flow["late_frames"]:
        told.append(f"{_counted(flow['late_frames'], 'frame')} too late to be of use")
    return head + "; ".join([*told, *_stalls(stalls)])


def _stalls(stalls: list[dict[str, Any]]) -> list[str]:
    if not stalls:
        return []
    longest = max(stall["duration_ns"] for stall in stalls)
    by_hole = sum(stall["cause"] == "hole" for stall in stalls)
    told = f"{_counted(len(stalls), 'stall')} of up to {duration(longest)} without a window"
    if by_hole:
        told += f", {by_hole} of them behind a hole"
    return [told]


def _link_lines(tables: Tables) -> list[str]:
    lines = []
    for link in tables.links.to_pylist():
        lost = f"lost {link['lost_frames']:,} of {link['sent_frames']:,} frames"
        told = [
            f"link {link['from_point']} to {link['to_point']}, stream {link['stream_id']}: {lost}"
        ]
        if link["copied_frames"]:
            told.append(f"copied {link['copied_frames']:,}")
        if link["reordered_frames"]:
            told.append(f"turned around {link['reordered_frames']:,}")
        if link["unsent_frames"]:
            told.append(f"{_counted(link['unsent_frames'], 'frame')} came out that never went in")
        if link["delay_median_ns"] is not None:
            told.append(
                f"{duration(link['delay_median_ns'])} on the way, "
                f"{duration(link['delay_p99_ns'])} for one in a hundred"
            )
        if link["is_corrected"]:
            told.append(
                f"the further clock is {duration(link['clock_offset_ns'])} ahead, give or take "
                f"{duration(link['clock_error_ns'])}"
            )
        lines.append("; ".join(told))
    return lines


def _repairs(lost: list[dict[str, Any]]) -> list[str]:
    told = []
    repaired = [gap["time_to_repair_ns"] for gap in lost if gap["outcome"] == "repaired"]
    if repaired:
        median, worst = float(np.median(repaired)), max(repaired)
        told.append(
            f"{len(repaired)} repaired in {duration(median)} median, {duration(worst)} at most"
        )
    for outcome, text in (("passed", "passed over by the receiver"), ("open", "not repaired")):
        left = [gap for gap in lost if gap["outcome"] == outcome]
        if left:
            told.append(f"{len(left)} {text} ({_bytes(left)} bytes)")
    before = [gap for gap in lost if gap["cause"] == "before capture"]
    if before:
        told.append(f"{len(before)} lost before they came by here")
    return told


def _bytes(gaps: list[dict[str, Any]]) -> str:
    return f"{sum(gap['length'] for gap in gaps):,}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(nanoseconds: float | None) -> str | None:
    """A time with three digits in the unit that suits it; None of nothing."""
    if nanoseconds is None:
        return None
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
