"""Sentences about what one subscriber read, and about all subscribers of a stream.

no delivery for 5.21 s, until 209 ms after its end                 an interruption
12 stalls from 2.013 s to 3.602 s, 1.62 s in total: repair 1.6 s   stalls
371 ranges (489,552 B) were filled with padding                    gap filling
312 NAKs from 7 subscribers for 304 gaps                           a group
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.observed import (
    NS_PER_S,
    FilledRange,
    Interruption,
    Stall,
    clock_text,
)
from windtunnel.harness.artifact.run.result_row import (
    ResultRow,
    duration,
    listed,
)
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.results.result_rows import Reading
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS

DELIVERY, NEW_DATA = "delivery", "new data"
"""What an application reads, and what a subscriber's host gets that is in order."""
NAMED_MAX = 8
"""Maximum number of subscribers without a stall that a sentence names."""
REPEATED_MAX = 3
"""Maximum number of sentences about the repetitions of one rule."""
WORST_MAX = 3
"""Maximum number of subscribers whose stalled time a sentence states."""


def at(time_ns: int, start_ns: int) -> str:
    """Return a time in seconds since the first offer."""
    return f"{(time_ns - start_ns) / NS_PER_S:.3f} s"


def interruption_sentences(
    times_ns: NDArray[np.int64], happened: Sequence[Interruption], start_ns: int
) -> Iterator[str]:
    """Yield a sentence about the silence around each interruption. Of one that was repeated more
    than a few times, only the longest silence is described.
    """
    times_ns = np.sort(times_ns)
    by_id: dict[str, list[Interruption]] = {}
    for each in happened:
        by_id.setdefault(each.id, []).append(each)
    for repeated in by_id.values():
        if len(repeated) <= REPEATED_MAX:
            yield from (silence_text(times_ns, each, start_ns) for each in repeated)
            continue
        worst = max(repeated, key=lambda each: silence(times_ns, each, start_ns)[0])
        text = silence_text(times_ns, worst, start_ns)
        yield f"{text} (the longest silence of {len(repeated)} repetitions)"


def event_text(interruption: Interruption, start_ns: int) -> str:
    """Return an interruption with its times as text."""
    began_ns, ended_ns = interruption.began_ns, interruption.ended_ns
    text = f"{interruption.kind} {interruption.id!r} ({interruption.what}) from "
    return f"{text}{at(began_ns, start_ns)} to {at(ended_ns, start_ns)}"


def silence_text(
    times_ns: NDArray[np.int64],
    interruption: Interruption,
    start_ns: int,
    what: str = DELIVERY,
    first_ns: int | None = None,
) -> str:
    """Return a sentence about the longest time without a delivery during an interruption. The
    first silence begins at `first_ns`, if that is not `start_ns`.
    """
    text, ended_ns = event_text(interruption, start_ns), interruption.ended_ns
    if len(times_ns) == 0:
        return text
    length_ns, next_ns = silence(times_ns, interruption, start_ns if first_ns is None else first_ns)
    if next_ns == NEVER_NS:
        return f"{text}: the last {what} was at {at(int(times_ns[-1]), start_ns)}"
    side = "after" if next_ns >= ended_ns else "before"
    end = f"{duration(abs(next_ns - ended_ns))} {side} its end"
    return f"{text}: no {what} for {duration(length_ns)}, until {end}"


def silence(
    times_ns: NDArray[np.int64], interruption: Interruption, start_ns: int
) -> tuple[int, int]:
    """Return the longest time without a delivery during an interruption, and the time of the
    delivery after it. Both are NEVER_NS if no delivery followed.
    """
    first, last = np.searchsorted(times_ns, [interruption.began_ns, interruption.ended_ns]).tolist()
    if last == len(times_ns):
        return NEVER_NS, NEVER_NS
    silences_ns = np.diff(times_ns, prepend=start_ns)[first : last + 1]
    longest = int(silences_ns.argmax())
    return int(silences_ns[longest]), int(times_ns[first + longest])


def stall_sentence(stalls: Sequence[Stall], row: ResultRow, start_ns: int, is_virtual: bool) -> str:
    """Return a sentence with number, times and causes of a subscriber's stalls."""
    longest = max(stalls, key=lambda each: each.lasted_ns)
    from_ns = min(each.began_ns for each in stalls)
    until_ns = max(each.ended_ns for each in stalls)
    # The date is that of the run.
    clock = "" if is_virtual else f" ({clock_text(longest.began_ns).partition(' ')[2]})"
    span = f"from {at(from_ns, start_ns)}{clock if len(stalls) == 1 else ''}"
    text = f"{counted(len(stalls), 'stall')} {span} to {at(until_ns, start_ns)}"
    total = f", {duration(row.stalled_total_ns)} in total" if len(stalls) > 1 else ""
    text += f"{total}: {row.main_causes()}"
    if len(stalls) == 1:
        return text
    began = f"{at(longest.began_ns, start_ns)}{clock}"
    return f"{text}; the longest lasted {duration(longest.lasted_ns)}, from {began}"


def fill_sentence(filled: Sequence[FilledRange], row: ResultRow) -> str:
    """Return a sentence with the ranges that a receiver filled, and what they cover."""
    total = sum(each.length for each in filled)
    verb = "was" if len(filled) == 1 else "were"
    text = f"{counted(len(filled), 'range')} ({total:,} B) {verb} filled with padding"
    lost = [each.lost_frames for each in filled if each.lost_frames is not None]
    late = [each.late_frames for each in filled if each.late_frames is not None]
    if len(lost) == len(filled):
        rejected = sum(each.rejected_frames for each in filled)
        text += f", over {_covered(sum(lost), sum(late), rejected)}"
    if row.delivered_messages is not None and row.published_messages is not None:
        missing = row.published_messages - row.delivered_messages
        verb = "is" if missing == 1 else "are"
        text += f"; {missing:,} of {counted(row.published_messages, 'message')} {verb} missing"
    return text


def _covered(lost: int, late: int, rejected: int) -> str:
    """Return what filled ranges cover, such as `3 lost frames`."""
    parts = [counted(lost, "lost frame")] if lost else []
    for count, reason in ((late, "too late"), (rejected, "beyond the receiver window")):
        were = "was" if count == 1 else "were"
        if count:
            frames = f"{count:,}" if parts else counted(count, "frame")
            parts.append(f"{frames} that arrived {reason} and {were} discarded")
    return " and ".join(parts) or "0 frames"


def group_sentences(readings: Sequence[Reading], traffic: TrafficCase) -> Iterator[str]:
    """Yield sentences about all subscribers of a stream, if there are several."""
    rows = [each.row for each in readings]
    if len(rows) < 2:
        return
    yield from _recovery_sentence(traffic, rows)
    yield from _stalled_sentence(traffic, rows)


def _recovery_sentence(traffic: TrafficCase, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield a sentence with the NAKs and retransmits of all subscribers, if all are known."""
    naks = [row.naks for row in rows if row.naks is not None]
    gaps = [row.gaps for row in rows if row.gaps is not None]
    resent = [row.resent_frames for row in rows if row.resent_frames is not None]
    if not len(naks) == len(gaps) == len(resent) == len(rows) or not sum(gaps) + sum(naks):
        return
    text = f"{traffic.id}: {counted(sum(naks), 'NAK')} from {len(rows)} subscribers"
    if min(naks) != max(naks):
        text += f" ({min(naks):,} to {max(naks):,} each)"
    text += f" for {counted(sum(gaps), 'gap')}; "
    if parse_channel(traffic.channel).is_multicast:
        yield f"{text}{counted(max(resent), 'frame')} sent again, each to the whole group"
    else:
        frames = counted(max(resent), "frame")
        if min(resent) != max(resent):
            frames = f"{min(resent):,} to {max(resent):,} frames"
        yield f"{text}{frames} sent again to each of them"


def _stalled_sentence(traffic: TrafficCase, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield a sentence that says which subscribers stalled, the longest first."""
    known = [(row.stalled_total_ns or 0, row) for row in rows if row.stalled_ns is not None]
    stalled = sorted((each for each in known if each[0]), key=lambda each: -each[0])
    if not stalled:
        return
    texts = [f"{row.to_host} {duration(total)} ({row.main_causes()})" for total, row in stalled]
    text = f"{traffic.id}: stalled in total: {', '.join(texts[:WORST_MAX])}"
    if len(stalled) > WORST_MAX:
        text += f", {len(stalled) - WORST_MAX} more at most {duration(stalled[WORST_MAX][0])}"
    others = [row.to_host for total, row in known if not total]
    yield f"{text}; {_names(others)} never" if others else text


def _names(hosts: Sequence[str]) -> str:
    if len(hosts) > NAMED_MAX:
        return f"{', '.join(hosts[:NAMED_MAX])} and {len(hosts) - NAMED_MAX} more"
    return listed(hosts)
