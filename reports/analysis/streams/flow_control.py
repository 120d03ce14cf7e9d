"""Windows, limits, stalls and round-trip times of one stream at one vantage point.

    events and their outcomes from `repair` --> `flow_control_kernel` --> windows, stalls
    RTTM frames; NAKs and their retransmits                           --> round-trip times

A time between two frames that pass this point in opposite directions covers the path to the sender
and back. Near the sender it is only the sender's response time, and no round trip. So repair times
are given in round trips only for captures near the receiver, where the gaps were seen.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.artifact.middlebox.frame_class import RTTM
from windtunnel.reports.analysis.kernels import flow_control_kernel as kernel
from windtunnel.reports.analysis.reading.stream_events import (
    Events,
    grow,
    ints,
    trim,
    types_of,
    with_room,
)
from windtunnel.reports.analysis.streams.geometry import Geometry
from windtunnel.reports.analysis.streams.repair_tables import KEY

PAUSE_MIN_NS = 10_000_000
"""Minimum pause between new frames. Shorter pauses are ignored."""
TIMEOUT = "timeout"
STALL_CAUSES = ("hole", "receiver", TIMEOUT)
"""Causes of a stall: a gap that the receiver cannot pass, a slow receiver, or a receiver for which
a sender with several destinations waited until it sent beyond the receiver's limit.
"""

WINDOWS = pa.schema(
    [
        *KEY,
        ("status_messages", pa.int64()),
        ("status_interval_mean_ns", pa.int64()),
        ("status_interval_max_ns", pa.int64()),
        ("window_min", pa.int64()),
        ("window_max", pa.int64()),
        ("limit", pa.int64()),
        ("consumed_position", pa.int64()),
        ("rejoins", pa.int64()),
        ("rejoined_position", pa.int64()),
        ("over_runs", pa.int64()),
        ("stalls", pa.int64()),
        ("stall_ns", pa.int64()),
        ("idle_pauses", pa.int64()),
        ("idle_ns", pa.int64()),
        ("rtt_measurements", pa.int64()),
        ("rtt_min_ns", pa.int64()),
        ("rtt_median_ns", pa.int64()),
        ("rtt_max_ns", pa.int64()),
        ("nak_answers", pa.int64()),
        ("nak_answer_min_ns", pa.int64()),
        ("nak_answer_median_ns", pa.int64()),
        ("repairs", pa.int64()),
        ("repair_median_ns", pa.int64()),
        ("repair_p90_ns", pa.int64()),
        ("repair_p99_ns", pa.int64()),
        ("repair_max_ns", pa.int64()),
        ("repair_median_rtts", pa.float64()),
        ("resends", pa.int64()),
        ("resend_median_ns", pa.int64()),
        ("resend_max_ns", pa.int64()),
    ]
)
"""Columns of the table `windows`. `rejoins`: status messages that report consumption beyond what
the receiver could have accepted after all earlier ones: it joined the stream again, or earlier ones
did not arrive; `rejoined_position`: the position of the last one. `over_runs`: new frames that the
receiver drops because they end more than half a term after the consumption position. Padding may
legitimately end there, because only its header is checked against the limit. `idle`: pauses while
there was room, in which the sender had nothing to send. `rtt`: from an RTTM frame to its reply,
minus the reception delta that the reply reports. `nak_answer`: from a NAK to the first retransmit
for it. `repair`: from the first sign of a gap until it was filled completely, for bytes lost before
this vantage point. `resend`: from the first NAK until all was retransmitted once, for bytes lost
behind this vantage point, whose repair only the receiver sees. `repair_median_rtts` is the median
repair divided by the shortest RTTM round trip or, without RTTM, by the shortest `nak_answer` of
these gaps. It is null without either. In a multicast group only RTTM counts, because what another
receiver requested may arrive at any time after a NAK.
"""
STALLS = pa.schema(
    [
        *KEY,
        ("start_ns", pa.int64()),
        ("opened_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("position", pa.int64()),
        ("needed_limit", pa.int64()),
        ("opened_limit", pa.int64()),
        ("cause", pa.string()),
    ]
)
"""Columns of the table `stalls`. `start_ns`: time of the last new frame; `opened_ns`: when a status
message made room, or `end_ns` if none did; `end_ns`: time of the next new frame; `duration_ns`:
from `start_ns` to `opened_ns`. A pause is no stall if the sender used the room more than
PAUSE_MIN_NS later than usual, because then nothing was waiting. `needed_limit`: the limit that the
first frame after the stall needed; `opened_limit`: the limit of the status message that made room.
`cause`: `hole`, `receiver`, `timeout` or, with a second capture, `feedback` or `window` (see
`window_causes`).
"""

_ECHOES_MAX = 4_096
_TIMES_MAX = 1 << 16


class FlowControlWalk:
    """Measures the flow control of one stream at one vantage point."""

    def __init__(self, geometry: Geometry) -> None:
        self._reach_bytes = geometry.term_length // 2
        self._windows = np.zeros(1, dtype=kernel.WINDOW)
        self._stalls = np.zeros(1, dtype=kernel.STALL)
        self._count = 0
        self._echoes: dict[int, tuple[int, str]] = {}
        self._trips_ns: list[int] = []
        self._trip_count = 0

    def feed(self, events: Events, outcomes: Any, flow_count: int) -> Any:
        """Process events together with the outcomes that `RepairWalk.feed` returned for them.

        Returns: bool[n], whether the receiver drops the packet, because one of its frames is too
        far ahead
        """
        is_over_run = np.zeros(len(events.rows), dtype=np.bool_)
        self._windows = grow(self._windows, flow_count)
        self._stalls = with_room(self._stalls, self._count, len(events.rows))
        self._count = kernel.follow_windows(
            events.times_ns,
            events.kinds,
            events.flow_of,
            events.starts,
            events.ends,
            events.charged,
            outcomes,
            PAUSE_MIN_NS,
            self._reach_bytes,
            self._windows,
            self._stalls,
            self._count,
            is_over_run,
        )
        self._stalls = trim(self._stalls, self._count)
        return np.isin(events.packets, events.packets[is_over_run])

    def feed_echoes(self, frames: Any) -> None:
        """Process RTTM frames. A second frame with the same timestamp is the reply to the first."""
        echoes = np.flatnonzero(types_of(frames) == RTTM)
        if not len(echoes):
            return
        chosen = frames.take(pa.array(echoes))
        rows = zip(
            ints(chosen, "echo_timestamp_ns").tolist(),
            ints(chosen, "time_ns").tolist(),
            ints(chosen, "reception_delta_ns").tolist(),
            chosen.column("source_address").to_pylist(),
            ints(chosen, "source_port").tolist(),
            strict=True,
        )
        for echo, time_ns, delta_ns, address, port in rows:
            source = f"{address} {port}"
            request = self._echoes.get(echo)
            if request is None or request[1] == source:
                if len(self._echoes) >= _ECHOES_MAX:
                    self._echoes.pop(next(iter(self._echoes)))
                self._echoes[echo] = time_ns, source
                continue
            del self._echoes[echo]
            self._trip_count += 1
            if len(self._trips_ns) < _TIMES_MAX:
                self._trips_ns.append(time_ns - request[0] - delta_ns)

    def window(
        self, index: int, gaps: list[dict[str, Any]], is_group: bool = False
    ) -> dict[str, Any]:
        """Return one destination's row of the table WINDOWS, without key columns.

        `is_group`: whether the destination is a multicast group.
        """
        state: Any = self._windows[index] if index < len(self._windows) else None
        if state is None:
            state = np.zeros(1, dtype=kernel.WINDOW)[0]
        has = bool(state["status_count"])
        intervals = int(state["status_count"]) - 1
        answers = _answers_ns(gaps)
        round_trips, answer_times = _spread(self._trips_ns), _spread(answers)
        repairs = _times_of(gaps, "time_to_repair_ns")
        resends = _times_of(gaps, "time_to_resend_ns")
        round_trip_ns = round_trips[0] or (None if is_group else _shortest_answer_ns(gaps))
        median_ns = _quantile(repairs, 0.5)
        stalls, idle = self._parted(index)
        return {
            "resends": len(resends),
            "resend_median_ns": _quantile(resends, 0.5),
            "resend_max_ns": _quantile(resends, 1.0),
            "repairs": len(repairs),
            "repair_median_ns": median_ns,
            "repair_p90_ns": _quantile(repairs, 0.9),
            "repair_p99_ns": _quantile(repairs, 0.99),
            "repair_max_ns": _quantile(repairs, 1.0),
            "repair_median_rtts": median_ns / round_trip_ns
            if median_ns is not None and round_trip_ns
            else None,
            "status_messages": int(state["status_count"]),
            "status_interval_mean_ns": int(state["status_gap_sum_ns"]) // intervals
            if intervals > 0
            else None,
            "status_interval_max_ns": int(state["status_gap_max_ns"]) if intervals > 0 else None,
            "window_min": int(state["window_min"]) if has else None,
            "window_max": int(state["window_max"]) if has else None,
            "limit": int(state["limit"]) if has else None,
            "consumed_position": int(state["consumed"]) if has else None,
            "rejoins": int(state["joins"]),
            "rejoined_position": int(state["joined"]) if state["joins"] else None,
            "over_runs": int(state["over_runs"]),
            "stalls": len(stalls),
            "stall_ns": int((stalls["opened_ns"] - stalls["start_ns"]).sum()),
            "idle_pauses": int(state["idle_count"]) + len(idle),
            "idle_ns": int(state["idle_ns"]) + int((idle["end_ns"] - idle["start_ns"]).sum()),
            "rtt_measurements": self._trip_count,
            "rtt_min_ns": round_trips[0],
            "rtt_median_ns": round_trips[1],
            "rtt_max_ns": round_trips[2],
            "nak_answers": len(answers),
            "nak_answer_min_ns": answer_times[0],
            "nak_answer_median_ns": answer_times[1],
        }

    def stalls(self, flow: int) -> Iterator[dict[str, Any]]:
        """Yield one destination's rows of the table STALLS, without key columns."""
        for stall in self._parted(flow)[0]:
            start, opened = int(stall["start_ns"]), int(stall["opened_ns"])
            yield {
                "start_ns": start,
                "opened_ns": opened,
                "end_ns": int(stall["end_ns"]),
                "duration_ns": opened - start,
                "position": int(stall["position"]),
                "needed_limit": int(stall["needed_limit"]),
                "opened_limit": int(stall["opened_limit"]),
                "cause": STALL_CAUSES[int(stall["cause"])],
            }

    def _parted(self, flow: int) -> tuple[Any, Any]:
        """Split a destination's pauses without room into stalls and idle pauses.

        A sender that waits for room uses it at once, seen here a round trip later. If it does so
        much later than it otherwise did, it had nothing to send while there was no room.
        """
        found = self._stalls[: self._count]
        found = found[found["flow"] == flow]
        if not len(found):
            return found, found
        answer_ns = max(0, int(self._windows[flow]["answer_ns"]))
        late = found["end_ns"] - found["opened_ns"] > 2 * answer_ns + PAUSE_MIN_NS
        return found[~late], found[late]


def _answers_ns(gaps: list[dict[str, Any]]) -> list[int]:
    """Return, for each gap, the time from the first NAK to the first frame that filled part of the
    gap.
    """
    # Times of a damaged capture can be negative, so that 0 is not less than any of them.
    seen = [gap for gap in gaps if gap["first_nak_ns"] and gap["first_filled_ns"]]
    found = (gap["first_filled_ns"] - gap["first_nak_ns"] for gap in seen)
    return [answer_ns for answer_ns in found if answer_ns > 0]


def _shortest_answer_ns(gaps: list[dict[str, Any]]) -> int | None:
    """Return the shortest time from a first NAK to the retransmit, or None if it is unknown.

    Only gaps whose bytes were lost before this vantage point are considered.
    """
    seen = [
        gap
        for gap in gaps
        if gap["cause"] == "before capture"
        and gap["outcome"] == "repaired"
        and not gap["late_bytes"]
    ]
    return min(_answers_ns(seen), default=None)


def _times_of(gaps: list[dict[str, Any]], name: str) -> list[int]:
    """Return the values of a time column for repaired gaps, in ascending order."""
    return sorted(
        gap[name] for gap in gaps if gap["outcome"] == "repaired" and gap[name] is not None
    )


def _spread(values: list[int]) -> tuple[int | None, int | None, int | None]:
    """Return the minimum, median and maximum of a list, each None if the list is empty."""
    if not values:
        return None, None, None
    ordered = sorted(values)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]


def _quantile(ordered: list[int], share: float) -> int | None:
    """Return a quantile of a sorted list, or None if the list is empty."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
