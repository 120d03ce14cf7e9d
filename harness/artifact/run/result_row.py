"""A run's results: a row of figures for each stream and each of its subscribers, in verdict.json.

The terminal and the report page print the texts of `cells`. A figure that the run's evidence does
not show is absent from the document, and printed as `-`, or not at all if no row has it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.rate_text import rate_text

UNKNOWN = "-"
NS_PER_MS = 1e6
NS_PER_S = 1e9
FOUND_MAX = 8
"""Maximum number of rows of streams that the captures show. The others are counted."""
PACE_SHARE_MIN = 0.98
"""Minimum share of its pace that a stream reaches if nothing else limits it."""


@dataclass(frozen=True)
class ResultRow:
    """The figures of one stream at one of its subscribers. None means that a figure is unknown."""

    traffic: str
    from_host: str
    to_host: str
    found_stream: int | None = None
    "Stream id, if the scenario does not name the stream: the captures show it (`observe: all`)."
    published_messages: int | None = None
    "Messages that the publication accepted."
    delivered_messages: int | None = None
    "Different messages that the subscriber received."
    delivered_bytes: int | None = None
    asked_bytes_per_s: float | None = None
    "The average rate that the publisher's pace specifies, or None if the pace is unlimited."
    asked_messages_per_s: float | None = None
    reached_bytes_per_s: float | None = None
    """Delivered message bytes divided by the time from the first offer to the last delivery, or to
    `ended_ns` if that is known. Of an observed stream: payload bytes that arrived, divided by the
    time from the first frame that was sent to the last one that arrived."""
    reached_messages_per_s: float | None = None
    latency_p50_ns: int | None = None
    "Time from the first offer of a message to its delivery."
    latency_p99_ns: int | None = None
    latency_max_ns: int | None = None
    longest_silence_ns: int | None = None
    """Longest time without a delivery, from the first offer to the last delivery, or to `ended_ns`
    if the subscriber did not receive the end of the stream. Of an observed stream: without new data
    at the subscriber's host that is in order, from the first frame that was sent."""
    finished_ns: int | None = None
    "Time from the first offer to the last delivery, or, of an observed stream, as above."
    ended_ns: int | None = None
    """Only if the subscriber did not receive the last published message: time from the first offer
    to the last one, or to the subscriber's own end."""
    lost_frames: int | None = None
    "DATA and PAD frames that left the publisher's host and did not arrive at the subscriber's."
    lost_bytes: int | None = None
    resent_frames: int | None = None
    "Retransmits of DATA and PAD frames to this subscriber or its group."
    resent_bytes: int | None = None
    gaps: int | None = None
    """Ranges of frames that the subscriber's host missed until they were sent again, or for ever:
    lost and rejected ones, and those that were later than their retransmit was sent."""
    naks: int | None = None
    status_messages: int | None = None
    "Status messages of the subscriber's host, but for those that request a SETUP."
    requested_gaps: int | None = None
    "Gaps for which the subscriber's host sent a NAK."
    rejected_frames: int | None = None
    "Frames that arrived, but were rejected because they ended beyond the receiver's window."
    unneeded_frames: int | None = None
    "Retransmits that arrived although another transmission of the frame arrived, too."
    repair_p50_ns: int | None = None
    "Time from the first sign of a gap at the subscriber's host to the arrival of its last frame."
    repair_p99_ns: int | None = None
    stalled_ns: dict[str, int] | None = None
    "Time for which deliveries stalled although a message was due, by cause."

    @property
    def resent_per_lost(self) -> float | None:
        """Ratio of the bytes that were sent again to the bytes that were lost."""
        if self.resent_bytes is None or not self.lost_bytes:
            return None
        return self.resent_bytes / self.lost_bytes

    @property
    def stalled_total_ns(self) -> int | None:
        """Total time for which deliveries stalled, for any reason."""
        return None if self.stalled_ns is None else sum(self.stalled_ns.values())

    @property
    def kept_pace(self) -> bool:
        """Whether the stream has a pace and kept it."""
        reached, asked = self.reached_bytes_per_s, self.asked_bytes_per_s
        return bool(reached and asked) and (reached or 0) >= PACE_SHARE_MIN * (asked or 0)

    @property
    def is_eventful(self) -> bool:
        """Whether frames of the stream were lost, sent again or requested, or it was named."""
        return self.found_stream is None or any(self.events)

    @property
    def events(self) -> tuple[int, int, int]:
        """How many frames were lost, sent again and requested, or 0 if that is unknown."""
        return self.lost_frames or 0, self.resent_frames or 0, self.naks or 0

    def main_causes(self) -> str:
        """Return the causes of at least 1 % of the stalled time as text."""
        return causes_text(self.stalled_ns or {}, (self.stalled_total_ns or 0) // 100)

    def as_document(self) -> dict[str, Any]:
        """Return a dictionary of the known figures by field name."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def cells(self) -> Iterator[tuple[str, str]]:
        """Yield each figure's title and text, with the most important figure first."""
        rate = self.reached_bytes_per_s
        yield "goodput", UNKNOWN if rate is None else rate_text(rate, self.asked_bytes_per_s)
        yield "messages/s", _messages(self.reached_messages_per_s, self.asked_messages_per_s)
        yield "delivered", _share(self.delivered_messages, self.published_messages)
        latencies = self.latency_p50_ns, self.latency_p99_ns, self.latency_max_ns
        yield "latency p50/p99/max", " / ".join(map(duration, latencies))
        yield "longest silence", duration(self.longest_silence_ns)
        repairs = duration(self.repair_p50_ns), duration(self.repair_p99_ns)
        yield "repair p50/p99", " / ".join(repairs)
        yield "lost", _frames(self.lost_frames, self.lost_bytes)
        again = self.resent_per_lost
        ratio = f" (x{again:.2f})" if again else ""
        if self.resent_frames and self.resent_frames == self.unneeded_frames:
            ratio = " (none needed)"
        yield "sent again", _frames(self.resent_frames, self.resent_bytes) + ratio
        yield "NAKs", self._naks()
        yield "stalled", self._stalled()
        yield "finished after", self._finished()

    def _naks(self) -> str:
        if self.naks is None:
            return UNKNOWN
        if self.gaps is None:
            return f"{self.naks:,}"
        if self.naks and not self.gaps:
            # They requested frames that were only late.
            return f"{self.naks:,}, none for a lost frame"
        text, gaps = f"{self.naks:,} for ", counted(self.gaps, "gap")
        requested = self.gaps if self.requested_gaps is None else self.requested_gaps
        if self.naks and requested != self.gaps:
            text += f"{requested:,} of "
        return text + gaps + (f" ({self.naks / requested:.1f} each)" if requested else "")

    def _finished(self) -> str:
        text = duration(self.finished_ns)
        if self.ended_ns is None:
            return text
        return f"not finished: last delivery after {text} of {duration(self.ended_ns)}"

    def _stalled(self) -> str:
        if self.stalled_ns is None:
            return UNKNOWN
        return self.main_causes() or "never"


def causes_text(causes_ns: dict[str, int], least_ns: int = 0) -> str:
    """Return the causes of a stall that lasted for at least `least_ns` as text, such as
    `repair 9 ms, link 1 ms`.
    """
    longest_first = sorted(causes_ns.items(), key=lambda each: -each[1])
    return ", ".join(f"{cause} {duration(ns)}" for cause, ns in longest_first if ns >= least_ns)


def known_cells(rows: Sequence[ResultRow]) -> tuple[list[str], list[list[str]]]:
    """Return the titles of the figures that are known in at least one row, and their texts in each
    row.
    """
    titles = [title for title, _ in rows[0].cells()]
    texts = [[text for _, text in row.cells()] for row in rows]
    known = [at for at in range(len(titles)) if any(each[at].strip("- /") for each in texts)]
    return [titles[at] for at in known], [[each[at] for at in known] for each in texts]


def shown_first(rows: Sequence[ResultRow]) -> tuple[list[ResultRow], list[ResultRow]]:
    """Return the rows to show, and the others: if many streams were found in the captures, those
    without events, and all but the ones that lost most. Streams that the scenario names are shown.
    """
    found = [row for row in rows if row.found_stream is not None]
    if len(found) <= FOUND_MAX:
        return list(rows), []
    eventful = sorted(
        (row for row in found if row.is_eventful), key=lambda row: row.events, reverse=True
    )
    kept = {id(row) for row in eventful[:FOUND_MAX]}
    shown = [row for row in rows if row.found_stream is None or id(row) in kept]
    return shown, [row for row in found if id(row) not in kept]


def rest_text(rows: Sequence[ResultRow], *, is_more: bool = True) -> str:
    """Return the figures of many rows as one line. They are those of all streams unless there are
    more of them.
    """
    text = f"{counted(len(rows), 'more stream' if is_more else 'stream')}: "
    known = [row for row in rows if row.lost_frames is not None]
    lost, resent, naks = (sum(each) for each in zip(*(row.events for row in rows), strict=True))
    text += f"{counted(lost, 'frame')} lost"
    if len(known) < len(rows):
        text += f" (unknown for {len(rows) - len(known)})"
    text += f", {resent:,} sent again, {counted(naks, 'NAK')}"
    silent = max(rows, key=lambda row: row.longest_silence_ns or 0)
    if silent.longest_silence_ns:
        text += f"; longest silence {duration(silent.longest_silence_ns)} ({silent.traffic})"
    return text


def duration(value_ns: int | None) -> str:
    """Return a duration as text with about three digits, such as `12.3 ms`."""
    if value_ns is None:
        return UNKNOWN
    if abs(value_ns) >= 999_500_000:
        return f"{value_ns / NS_PER_S:.2f} s"
    return f"{value_ns / NS_PER_MS:.3g} ms"


def listed(names: Sequence[str]) -> str:
    """Return names as text, such as `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _messages(reached: float | None, asked: float | None) -> str:
    if reached is None:
        return UNKNOWN
    return f"{reached:,.0f}" + ("" if asked is None else f" of {asked:,.0f}")


def _share(delivered: int | None, published: int | None) -> str:
    if delivered is None:
        return UNKNOWN
    return f"{delivered:,} of {UNKNOWN if published is None else f'{published:,}'}"


def _frames(frames: int | None, length_bytes: int | None) -> str:
    if frames is None or length_bytes is None:
        return UNKNOWN
    return f"{counted(frames, 'frame')}, {length_bytes:,} B"
