"""Summary lines of a capture analysis: one per flow, one per link, then frame and packet counts."""

from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.artifact.noun_form import counted, noun_for
from windtunnel.reports.analysis.links.window_causes import FEEDBACK, WINDOW
from windtunnel.reports.analysis.output.durations import duration
from windtunnel.reports.analysis.output.stepped_clocks import stepped_points
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.reading.stream_events import is_group
from windtunnel.reports.analysis.streams.flow_control import TIMEOUT
from windtunnel.reports.analysis.streams.repair import is_lost, is_requested


def summary_lines(tables: Tables) -> list[str]:
    """Return the summary lines of an analysis. There is at least one."""
    counts = _sums(tables)
    if not counts["frames"]:
        return [_no_frames_line(counts), *_partial(tables)]
    gaps, stalls = _by_flow(tables.gaps), _by_flow(tables.stalls)
    windows = {_key(window): window for window in tables.windows.to_pylist()}
    stepped = stepped_points(tables.captures)
    lines = [
        _head(flow, tables.host_names)
        + _flow_text(
            flow,
            gaps.get(_key(flow), []),
            stalls.get(_key(flow), []),
            windows[_key(flow)],
            flow["vantage_point"] not in stepped,
        )
        for flow in tables.flows.to_pylist()
    ]
    lines += _link_lines(tables)
    ignored = counts["unrecognised"] + counts["other_ports"] + counts["not_udp"]
    verb = noun_for(ignored, "packet is", "packets are")
    rest = f"; {ignored:,} {verb} not Aeron, or on other ports" if ignored else ""
    frames, packets = counted(counts["frames"], "frame"), counted(counts["packets"], "packet")
    lines.append(f"{frames} in {packets}{rest}")
    if counts["wrong_checksums"]:
        verb = noun_for(counts["wrong_checksums"], "packet has", "packets have")
        lines.append(
            f"{counts['wrong_checksums']:,} {verb} a wrong checksum: hosts discard such packets, "
            "and their frames are not counted"
        )
    return [*lines, *_partial(tables)]


def split_line(line: str) -> list[str]:
    """Return a summary line of a flow or link as short lines: the first figure, then the others."""
    if not line.startswith(("stream ", "link ")):
        return [line]
    first, *others = line.split("; ")
    return [first, *(f"    {each}" for each in others)]


def _partial(tables: Tables) -> list[str]:
    return [f"PARTIAL: {problem}" for problem in tables.problems]


def _sums(tables: Tables) -> dict[str, int]:
    names = ("frames", "packets", "wrong_checksums", "unrecognised", "other_ports", "not_udp")
    return {name: sum(tables.captures[name].to_pylist()) for name in names}


def _no_frames_line(counts: dict[str, int]) -> str:
    return (
        f"no Aeron frames in {counted(counts['packets'], 'packet')}: "
        f"{counted(counts['unrecognised'], 'other UDP datagram')}, "
        f"{counts['wrong_checksums']:,} with a wrong checksum, "
        f"{counts['other_ports']:,} on other ports, {counts['not_udp']:,} not UDP"
    )


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("vantage_point", "session_id", "stream_id", "destination"))


def _by_flow(table: pa.Table) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(_key(row), []).append(row)
    return found


def _head(flow: dict[str, Any], host_names: dict[str, str]) -> str:
    """Return which flow a line is about. The destination's address is replaced by a run's host."""
    address, _, port = flow["destination"].partition(" ")
    return (
        f"stream {flow['stream_id']} session {flow['session_id']} at {flow['vantage_point']} to "
        f"{host_names.get(address, address)} port {port}: "
    )


def _flow_text(
    flow: dict[str, Any],
    gaps: list[dict[str, Any]],
    stalls: list[dict[str, Any]],
    window: dict[str, Any],
    is_timed: bool,
) -> str:
    parts = [
        f"{flow['messages']:,} messages to position {flow['high_position']:,}",
        f"{counted(flow['first_frames'], 'frame')} in order",
        *_consumption(flow, window),
    ]
    lost = [gap for gap in gaps if is_lost(gap)]
    requested = [gap for gap in gaps if is_requested(gap)]
    elsewhere = [gap for gap in gaps if gap["outcome"] == "elsewhere"]
    filled = [gap for gap in gaps if gap["outcome"] == "filled"]
    if flow["lost_bytes_max"]:
        lost_bytes = _range(flow["lost_bytes_min"], flow["lost_bytes_max"])
        gap_count = counted(len(lost), "gap")
        parts.append(f"lost {lost_bytes} bytes of first transmissions in {gap_count}")
    elif lost or filled or flow["reordered_frames"]:
        parts.append("no loss seen here")
    else:
        parts.append("no gap seen here")
    parts += _repairs(lost, is_timed)
    if requested:
        parts += _requests(flow, requested, is_timed)
    if filled:
        parts.append(
            f"{_bytes(filled)} bytes in {counted(len(filled), 'gap')} arrived late, or were "
            "repaired for another receiver in the group"
        )
    if elsewhere:
        parts.append(
            f"{_bytes(elsewhere)} bytes were not needed from this destination: the receiver "
            "joined later, or received them at another destination"
        )
    parts += _rejoins(window)
    if not window["rejoins"]:
        parts += _gap_fills(flow)
    if flow["resent_frames"]:
        frames = counted(flow["resent_frames"], "frame")
        parts.append(f"{frames} ({flow['resent_bytes']:,} bytes) retransmitted")
    if window["over_runs"] and not flow["refused_bytes"]:
        frames = counted(window["over_runs"], "frame")
        parts.append(f"{frames} ended beyond the window, where a receiver rejects frames")
    if flow["reordered_frames"] and not filled:
        late = f", late by up to {duration(flow['reordered_ns_max'])}" if is_timed else ""
        parts.append(f"{counted(flow['reordered_frames'], 'frame')} reordered{late}")
    if flow["duplicate_frames"]:
        parts.append(counted(flow["duplicate_frames"], "duplicate frame"))
    parts += _late(flow, gaps)
    return "; ".join([*parts, *_stalls(stalls)])


def _requests(flow: dict[str, Any], requested: list[dict[str, Any]], is_timed: bool) -> list[str]:
    """Return remarks about requests for bytes that had been captured here."""
    in_group = is_group(flow["destination"])
    who = "receivers in the group" if in_group else "the receiver"
    text = (
        f"{who} requested {flow['requested_bytes']:,} bytes in "
        f"{counted(len(requested), 'gap')}, which had been captured here"
    )
    if flow["refused_bytes"]:
        text += f", up to {flow['refused_bytes']:,} of them refused beyond the receiver window"
    else:
        text += " (a capture at the receiver shows what became of them)"
    return [text, *_repairs(requested, is_timed)]


def _late(flow: dict[str, Any], gaps: list[dict[str, Any]]) -> list[str]:
    """Return a remark about originals that arrived after their gap had been requested or filled."""
    if not flow["naks"]:
        late_frames = flow["late_frames"]
        return [f"{counted(late_frames, 'frame')} too late to be used"] if late_frames else []
    here = [gap for gap in gaps if gap["cause"] == "before capture" and gap["first_nak_ns"]]
    late_bytes = flow["late_bytes"] + sum(gap["late_bytes"] for gap in here)
    if not late_bytes:
        return []
    # Without the sending order, a second retransmit looks like a late original.
    most = "" if flow["is_order_known"] else "up to "
    return [
        f"{most}{late_bytes:,} bytes of gaps with NAKs were late, not lost: their retransmits "
        "were not needed"
    ]


def _consumption(flow: dict[str, Any], window: dict[str, Any]) -> list[str]:
    """Return a remark if status messages report consumption far below the captured positions."""
    consumed = window["consumed_position"]
    if consumed is None or flow["high_position"] - consumed <= window["window_max"]:
        return []
    return [f"status messages report consumption only to position {consumed:,}"]


def _rejoins(window: dict[str, Any]) -> list[str]:
    """Return a remark about status messages that report more consumption than their receiver could
    have accepted.
    """
    if not window["rejoins"]:
        return []
    text = f"status messages skipped to position {window['rejoined_position']:,}"
    if window["rejoins"] > 1:
        text += f", the last of {window['rejoins']:,} times"
    return [f"{text}: the receiver joined the stream again, or status messages were lost"]


def _gap_fills(flow: dict[str, Any]) -> list[str]:
    """Return a remark about gaps that an unreliable receiver filled with padding."""
    least, most = flow["gap_fills_min"], flow["gap_fills_max"]
    if not most:
        return []
    fills, messages = _range(least, most, "gap"), _range(flow["messages_min"], flow["messages"])
    if least:
        return [f"the unreliable receiver filled {fills}, and delivered {messages} messages"]
    return [
        f"no NAK: an unreliable receiver would have filled up to {counted(most, 'gap')} and "
        f"delivered {messages} messages"
    ]


def _range(least: int, most: int, noun: str = "") -> str:
    top = counted(most, noun) if noun else f"{most:,}"
    return top if least == most else f"{least:,} to {top}"


def _stalls(stalls: list[dict[str, Any]]) -> list[str]:
    if not stalls:
        return []
    longest = max(stall["duration_ns"] for stall in stalls)
    behind_gap = sum(stall["cause"] == "hole" for stall in stalls)
    text = f"{counted(len(stalls), 'flow control stall')}, up to {duration(longest)}"
    if behind_gap:
        text += f", {behind_gap} of them behind a gap"
    for cause, reason in (
        (FEEDBACK, "because status messages were lost"),
        (WINDOW, "because the window was used up within a round trip"),
        (TIMEOUT, "until the sender no longer waited for this receiver"),
    ):
        if count := sum(stall["cause"] == cause for stall in stalls):
            text += f", {count} of them {reason}"
    return [text]


def _link_lines(tables: Tables) -> list[str]:
    lines = []
    for link in tables.links.to_pylist():
        lost = f"lost {link['lost_frames']:,} of {link['sent_frames']:,} frames sent"
        points = f"link {link['from_point']} to {link['to_point']}"
        parts = [f"{points}, stream {link['stream_id']}: {lost}, retransmits included"]
        if link["copied_frames"]:
            parts.append(f"duplicated {link['copied_frames']:,}")
        if link["reordered_frames"]:
            parts.append(f"reordered {link['reordered_frames']:,}")
        if link["unsent_frames"]:
            parts.append(f"{counted(link['unsent_frames'], 'frame')} received but never sent")
        if link["unobserved_frames"]:
            unobserved = counted(link["unobserved_frames"], "frame")
            parts.append(f"{unobserved} outside the period of the other capture not counted")
        if link["control_lost"]:
            naks = counted(link["control_lost"] - link["status_lost"], "NAK")
            statuses = counted(link["status_lost"], "status message")
            parts.append(
                f"lost {statuses} and {naks} of {link['control_sent']:,} in the other direction"
            )
        if link["delay_median_ns"] is not None:
            parts.append(
                f"delay {duration(link['delay_median_ns'])} median, "
                f"{duration(link['delay_p99_ns'])} p99"
            )
        if link["is_corrected"]:
            parts.append(
                f"clock of {link['to_point']} is {duration(link['clock_offset_ns'])} ahead "
                f"± {duration(link['clock_error_ns'])}"
            )
        lines.append("; ".join(parts))
    return lines


def _repairs(gaps: list[dict[str, Any]], is_timed: bool) -> list[str]:
    """Return remarks about what became of gaps. `is_timed`: whether their times are known."""
    parts = []
    for name, text in (
        ("time_to_repair_ns", "repaired in {} median, {} maximum"),
        ("time_to_resend_ns", "retransmitted, {} median and {} maximum after the first NAK"),
    ):
        timed = [gap for gap in gaps if gap["outcome"] == "repaired" and gap[name] is not None]
        if timed:
            times = [gap[name] for gap in timed]
            text = text.format(duration(float(np.median(times))), duration(max(times)))
            parts.append(f"{counted(len(timed), 'gap')} {text}")
            again = sum(gap["over_filled_bytes"] > 0 for gap in timed)
            if again and name == "time_to_resend_ns":
                parts[-1] += f", {again:,} of them more than once"
    untimed = sum(
        gap["outcome"] == "repaired"
        and gap["time_to_repair_ns"] is None
        and gap["time_to_resend_ns"] is None
        for gap in gaps
    )
    if untimed and is_timed:
        parts.append(f"{counted(untimed, 'gap')} repaired without a retransmit after the NAK")
    elif untimed:
        parts.append(f"{counted(untimed, 'gap')} repaired")
    for outcome, text in (("passed", "skipped by the receiver"), ("open", "not repaired")):
        left = [gap for gap in gaps if gap["outcome"] == outcome]
        if left:
            parts.append(f"{counted(len(left), 'gap')} {text} ({_bytes(left)} bytes)")
    return parts


def _bytes(gaps: list[dict[str, Any]]) -> str:
    return f"{sum(gap['length'] for gap in gaps):,}"
