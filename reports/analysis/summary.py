"""Tables in plain words: one line a stream and destination, then what was not read."""

from typing import Any

import numpy as np

from reports.analysis.tables import Tables


def summary_lines(tables: Tables) -> list[str]:
    """The summary; never empty."""
    counts = _sums(tables)
    if not counts["frames"]:
        return [_nothing(counts), *_partial(tables)]
    gaps: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for gap in tables.gaps.to_pylist():
        gaps.setdefault(_key(gap), []).append(gap)
    lines = [_flow_line(flow, gaps.get(_key(flow), [])) for flow in tables.flows.to_pylist()]
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


def _flow_line(flow: dict[str, Any], gaps: list[dict[str, Any]]) -> str:
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
        told.append(f"{_counted(len(lost), 'gap')} of {_bytes(lost)} bytes")
        told += _repairs(lost)
    else:
        told.append("no gap seen")
    if flow["resent_frames"]:
        told.append(f"{flow['resent_bytes']:,} bytes sent again")
    if flow["reordered_frames"]:
        told.append(
            f"{_counted(flow['reordered_frames'], 'frame')} out of order, by up to "
            f"{_time(flow['reordered_ns_max'])}"
        )
    if flow["duplicate_frames"]:
        told.append(f"{_counted(flow['duplicate_frames'], 'frame')} twice without a NAK")
    return head + "; ".join(told)


def _repairs(lost: list[dict[str, Any]]) -> list[str]:
    told = []
    repaired = [gap["time_to_repair_ns"] for gap in lost if gap["outcome"] == "repaired"]
    if repaired:
        median, worst = float(np.median(repaired)), max(repaired)
        told.append(f"{len(repaired)} repaired in {_time(median)} median, {_time(worst)} at most")
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


def _time(nanoseconds: float) -> str:
    """Milliseconds with three digits that say something."""
    return f"{nanoseconds / 1e6:.3g} ms"
