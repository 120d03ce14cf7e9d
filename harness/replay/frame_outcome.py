"""Infers from one capture what happened to a stream's frames between sender and receiver.

    a gap that a NAK requests and a later frame fills         attempt 1 was lost
    a NAK one round trip after the frame passed               it was lost downstream
    the same frame again, without a NAK for it                it was duplicated
    a frame below the highest position, without a NAK         it was late

If a receiver sent one NAK and the frame passed once, one transmission was lost. A NAK that was sent
before the last transmission could arrive does not show whether that transmission was lost, and how
many transmissions were lost is an estimate: see `naks`. If the sender's IP Identification field is
a counter, it distinguishes duplicates and late frames from retransmits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.replay.naks import END_OF_TIME_NS, Naks
from windtunnel.harness.replay.rules import merged
from windtunnel.harness.replay.sightings import Stream

DROP, LATE, COPY = "drop", "late", "copy"

_IDENTIFICATIONS = 1 << 16


class FrameOutcome(NamedTuple):
    """What happened to one transmission of a frame: it was lost, late or duplicated."""

    what: str
    frame_type: str
    position: int
    length: int
    attempt: int
    delay_ns: int = 0
    """For a late frame, the additional delay compared with the usual transit time. For a duplicate,
    the time since the earlier arrival.
    """
    overtaken_by: int = 0
    """Number of the stream's frames that were sent later but arrived earlier."""


def repeatable(outcomes: list[FrameOutcome]) -> tuple[list[FrameOutcome], int]:
    """Return the outcomes that a scenario can reproduce, and the number of those that it cannot.

    In a scenario, a frame is transmitted again only if all earlier transmissions were lost or late.
    """
    missed: dict[int, set[int]] = defaultdict(set)
    for each in outcomes:
        if each.what in (DROP, LATE):
            missed[each.position].add(each.attempt)
    kept = [each for each in outcomes if missed[each.position].issuperset(range(1, each.attempt))]
    return kept, len(outcomes) - len(kept)


def infer_outcomes(stream: Stream) -> list[FrameOutcome]:
    """Return a stream's lost, late and duplicate transmissions, inferred from one capture."""
    transmissions = stream.transmissions
    naks = Naks(stream)
    farthest = np.maximum.accumulate(transmissions["position"])
    before: dict[int, list[_Passage]] = {}
    highest = 0
    for index, row in enumerate(transmissions.tolist()):
        time_ns, position, length, _, kind, _, identification = row
        opened = -1
        if index and position < highest and position not in before:
            opened = int(np.searchsorted(farthest, position, side="right"))
        passage = _Passage(index, time_ns, NAMES[kind], length, identification, opened)
        before.setdefault(position, []).append(passage)
        highest = max(highest, position + length)
    # In a multicast group, NAKs for frames that passed this capture point come from other members.
    is_member = stream.in_group and any(each[0].opened >= 0 for each in before.values())
    found: list[FrameOutcome] = []
    for position, passages in before.items():
        if passages[0].opened >= 0:
            found += _outcomes_of_gap(position, passages, transmissions, naks)
        else:
            sent, copies = _without_copies(position, passages, 0, naks)
            found += [] if is_member else _losses_downstream(position, sent, naks)
            found += copies
    return found + list(_unfilled_gaps(stream, naks))


class _Passage(NamedTuple):
    """One appearance of a frame at the capture point: an original, a retransmit or a duplicate."""

    row: int
    time_ns: int
    frame_type: str
    length: int
    identification: int
    opened: int
    """Row of the first frame with a higher position that passed earlier, or -1 if there is none."""


def _outcomes_of_gap(
    position: int, passages: list[_Passage], transmissions: NDArray[Any], naks: Naks
) -> Iterator[FrameOutcome]:
    """Yield the outcomes of a frame that later frames overtook: the frame was either lost before
    the capture point, or late.
    """
    first = passages[0]
    frame = first.frame_type, position, first.length
    opener = transmissions[first.opened]
    lost = naks.losses(position, first.time_ns)
    was_sent_later = _was_sent_later(first.identification, int(opener["identification"]))
    if was_sent_later is not None:
        lost = max(lost, 1) if was_sent_later else 0
    for attempt in range(1, lost + 1):
        yield FrameOutcome(DROP, *frame, attempt)
    if not lost:
        late_ns, overtaken_by = first.time_ns - int(opener["time_ns"]), first.row - first.opened
        yield FrameOutcome(LATE, *frame, 1, late_ns, overtaken_by)
    yield from _without_copies(position, passages, lost, naks)[1]


def _losses_downstream(position: int, sent: list[_Passage], naks: Naks) -> Iterator[FrameOutcome]:
    """Yield the losses of a frame after the capture point. The frame passed the capture point in
    order and was sent again.

    If the receiver consumed the frame, the last transmission arrived, and later NAKs were already
    on their way.
    """
    could_be_lost = sent if len(sent) > 1 else []
    if naks.consumed_position > position:
        could_be_lost = could_be_lost[:-1]
    for attempt, passage in enumerate(could_be_lost, 1):
        if naks.last_ns(position) - passage.time_ns >= naks.round_trip_ns:
            yield FrameOutcome(DROP, passage.frame_type, position, passage.length, attempt)


def _without_copies(
    position: int, passages: list[_Passage], lost: int, naks: Naks
) -> tuple[list[_Passage], list[FrameOutcome]]:
    """Divide a frame's appearances into transmissions by the sender, and duplicates.

    `lost` is the number of transmissions that were lost before the capture point. Returns:
    (transmissions, outcomes of the duplicates)
    """
    sent, copies = passages[:1], []
    for earlier, passage in pairwise(passages):
        attempt = lost + len(sent)
        is_copy = attempt > naks.rounds(position, passage.time_ns)
        if earlier.identification and passage.identification:
            is_copy = earlier.identification == passage.identification
        if is_copy:
            frame = passage.frame_type, position, passage.length
            behind_ns = passage.time_ns - earlier.time_ns
            copies.append(FrameOutcome(COPY, *frame, attempt, behind_ns))
        else:
            sent.append(passage)
    return sent, copies


def _was_sent_later(identification: int, other: int) -> bool | None:
    """Return whether one packet was sent after another, or None if their IP Identification is
    unknown.
    """
    if not identification or not other:
        return None
    return 0 < (identification - other) % _IDENTIFICATIONS < _IDENTIFICATIONS // 2


def _unfilled_gaps(stream: Stream, naks: Naks) -> Iterator[FrameOutcome]:
    """Yield the losses in gaps that were never filled: those that the NAKs show, and at least one
    loss per gap.
    """
    starts = stream.transmissions["position"]
    seen = merged(
        zip(starts.tolist(), (starts + stream.transmissions["length"]).tolist(), strict=True)
    )
    for (_, begin), (end, _) in pairwise(seen):
        for attempt in range(1, max(1, naks.losses(begin, END_OF_TIME_NS)) + 1):
            yield FrameOutcome(DROP, "DATA", begin, end - begin, attempt)


def round_trip_ns(stream: Stream) -> int:
    """Estimate the round trip between a stream's sender and receiver from one capture, or return 0
    if NAKs and retransmits do not show it.

        sender ---- capture point ---- receiver       NAK after a frame that reveals a gap:
               <--- retransmit  NAK --->              both ways to the receiver; and to the sender

    Wherever the capture point is, the two waits together are one round trip, plus the receiver's
    NAK delay and the sender's response time.
    """
    if stream.in_group:
        return 0  # NAKs and retransmits of other members are not on this receiver's path.
    naks = Naks(stream)
    return naks.round_trip_ns + naks.fastest_ns if naks.has_repairs else 0
