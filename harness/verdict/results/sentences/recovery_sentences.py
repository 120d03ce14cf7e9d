"""Sentences about the recovery of one subscriber's gaps: what delayed it, and which NAKs and
retransmits no loss caused.

no frame followed the last 160 B           a heartbeat revealed that they were lost
212 of 249 gaps waited 5.2 s                until an earlier gap was repaired
10 frames arrived, but were rejected       they ended beyond the receiver's window
990 frames were sent again needlessly      they were only late, and arrived after a NAK
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.noun_form import counted, noun_for
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.verdict.results.result_rows import Reading, percentile
from windtunnel.harness.verdict.views.reader_gaps import ReaderGaps

BEHIND_NS_MIN = 1_000_000
"""Shortest wait for the repair of an earlier gap that is counted."""


def recovery_sentences(reading: Reading, *, is_grouped: bool) -> Iterator[str]:
    """Yield sentences about gaps that a heartbeat revealed or that waited for earlier ones, and
    about NAKs and retransmits of frames that the link did not lose, or about why they are unknown.

    With `is_grouped`, other subscribers receive the same retransmits. Those that this one did not
    need are then mentioned only if it requested them itself. How long gaps waited is left out: each
    NAK of a group has a random delay.
    """
    row, unknown = reading.row, reading.unknown
    if unknown is not None:
        yield (
            "lost frames, NAKs, repairs and stalls are not known: "
            f"{unknown.source} {unknown.reason}"
        )
    elif row.lost_frames is None and row.gaps is not None:
        yield (
            "lost frames are not counted, because the link may have duplicated frames: a copy may "
            "hide a lost transmission"
        )
    gaps = reading.gaps
    if gaps is not None and gaps.revealed is not None:
        yield (
            f"no frame followed the {gaps.revealed.length_bytes:,} B whose recovery took "
            f"longest: a heartbeat revealed the gap {duration(gaps.revealed.waited_ns)} after "
            "they were sent, and only then their repair began"
        )
    if gaps is not None and not is_grouped:
        yield from _behind_sentence(gaps)
    if row.rejected_frames:
        frames = counted(row.rejected_frames, "frame")
        text = f"{frames} arrived, but the receiver rejected"
        text += noun_for(row.rejected_frames, " it because it", " them because they")
        text += " ended beyond its window, and requested"
        yield text + noun_for(row.rejected_frames, " it with a NAK", " them with NAKs")
    if gaps is not None and row.unneeded_frames and (len(gaps.late_ns) or not is_grouped):
        yield _unneeded_sentence(row.unneeded_frames, np.sort(gaps.late_ns))


def _behind_sentence(gaps: ReaderGaps) -> Iterator[str]:
    """Yield a sentence about gaps that waited for the repair of earlier ones for long."""
    waits_ns = np.sort(gaps.behind_ns[gaps.behind_ns >= BEHIND_NS_MIN])
    if len(waits_ns):
        spread = duration(percentile(waits_ns, 50)), duration(int(waits_ns[-1]))
        yield (
            f"{len(waits_ns):,} of {counted(gaps.count, 'gap')} waited {spread[0]} (median; at "
            f"most {spread[1]}) until an earlier gap was repaired, before the first NAK for them: "
            "the receiver requested one gap at a time"
        )


def _unneeded_sentence(unneeded: int, late_ns: np.ndarray) -> str:
    """Return a sentence about retransmits of frames that arrived without them."""
    retransmits = counted(unneeded, "unneeded retransmit")
    text = f"{retransmits}, since another transmission of the same "
    text += noun_for(unneeded, "frame arrived", "frames arrived")
    if not len(late_ns):
        return text
    late = counted(len(late_ns), "frame")
    verb = noun_for(len(late_ns), "was", "were")
    spread = duration(percentile(late_ns, 50)), duration(int(late_ns[-1]))
    text += f": {late} {verb} only late, and arrived {spread[0]} (median; at most {spread[1]})"
    return f"{text} after the gap appeared, later than the first NAK"
