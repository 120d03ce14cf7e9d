"""Reference implementation of the analysis of loss recovery, with sets of 32-byte words.

Events are (kind, time_ns, start, end) of one flow; kinds are "frame", "heartbeat", "nak", "status".
If the sending order is known, each event has three more fields: an increasing number, whether that
number is trusted, and the packet number.
"""

WORD = 32
BEFORE, BEHIND = "before capture", "behind capture"


def words(start, end):
    return set(range(start, end, WORD))


class Gap:
    def __init__(self, start, end, time_ns, cause, place, order=None):
        self.start, self.end, self.cause = start, end, cause
        self.open = words(start, end)
        self.opened_at = place
        self.opened_ns, self.naks = time_ns, 0
        self.filled_ns = self.passed_ns = None
        self.is_whole = False
        self.filled_words, self.filled_at = 0, None
        self.order, self.seen, self.seams = order, [], set()
        self.late_words = self.repaired_words = self.words_now = 0

    def was_missing(self):
        return not self.naks or self.filled_words * WORD <= self.end - self.start

    def remember(self, order, packet, start, end):
        if self.seen and self.seen[-1][1] == packet:
            before, _, first, last = self.seen[-1]
            self.seen[-1] = before, packet, min(first, start), max(last, end)
        else:
            self.seen.append((order, packet, start, end))

    def row(self):
        by_itself = not self.naks or self.late_words > 0
        came_late = self.repaired_words == 0 and self.cause == BEFORE and by_itself
        repaired = "reordered" if came_late else "repaired"
        # A receiver that sends NAKs for a gap does not skip it: it continues after the repair.
        left = "open" if self.passed_ns is None else "repaired" if self.naks else "passed"
        outcome = repaired if self.is_whole else left
        return self.start, self.end, self.cause, self.naks, outcome, self.opened_ns


def follow(events, sent=None):
    """Return (outcome of each frame, rows of the gaps, new frames, extent of each frame)."""
    low = hwm = newest = None
    gaps, outcomes, arrived, extents, new_count = [], [], [], [], 0
    for (kind, time_ns, start, end), (order, is_believed, packet) in zip(
        events, sent or [(None, False, None)] * len(events), strict=True
    ):
        if kind == "nak":
            _request(gaps, hwm, time_ns, start, end, newest, len(arrived))
            continue
        if kind == "status":
            for gap in gaps:
                if gap.passed_ns is None and gap.end <= end:
                    gap.passed_ns = time_ns
                gap.open -= {word for word in gap.open if _piece_end(gap, word) <= end}
            continue
        if hwm is None:
            low, hwm, is_first = start, end, True
        else:
            if start > hwm and not any(gap.open & words(hwm, start) for gap in gaps):
                gaps.append(Gap(hwm, start, time_ns, BEFORE, len(arrived), order))
            is_first = end > hwm
            hwm = max(hwm, end)
        if kind == "frame":
            touched = _fill(gaps, time_ns, len(outcomes), start, end)
            extent = 0
            if is_first:
                extent = _first_ahead(arrived, order) if is_believed else 0
                outcome, is_new = ("reordered" if extent else "first"), True
            elif not touched and end <= low:
                outcome, is_new = "earlier", True
            else:
                has_copies = "duplicate" in outcomes
                is_here = [gap for gap in gaps if gap.start < end and gap.end > start]
                frame = touched, is_here, len(outcomes), start, end, has_copies
                sending = order, is_believed, packet, newest
                outcome, is_new = _place(*frame, *sending)
                if touched and outcome == "reordered":
                    gap = _best(touched)
                    known = is_believed and gap.order is not None
                    ahead = _first_ahead(arrived, order) if known else 0
                    extent = max(len(arrived) - gap.opened_at, ahead)
            outcomes.append(outcome)
            extents.append(extent)
            if outcome != "duplicate":
                arrived.append(order)
            new_count += is_new
        if order is not None and (newest is None or order > newest[0]):
            newest = order, packet
    return outcomes, [gap.row() for gap in gaps], new_count, extents


def _first_ahead(arrived, order):
    """Return how far back the first of the last 64 frames sent later is; 0 if there is none."""
    ahead = [len(arrived) - at for at, other in enumerate(arrived) if other and other > order]
    return max([each for each in ahead if each <= 64], default=0)


def _best(touched):
    """Return the gap to attribute: requested by a NAK, with new bytes here, the oldest."""
    requested = [gap for gap in touched if gap.naks] or touched
    return ([gap for gap in requested if gap.cause == BEFORE] or requested)[0]


def _place(
    touched, is_here, number, start, end, has_copies, order, is_believed, packet, newest
):  # fmt: skip
    """Return the outcome of a frame below the highest, and whether its bytes are new."""
    requested = [gap for gap in touched if gap.naks]
    best = [_best(touched)] if touched else []
    found = best or (is_here[:1] if is_believed else [])
    is_newest = is_believed and newest is not None and (order > newest[0] or packet == newest[1])
    if is_believed and not found:
        return ("resent" if is_newest else "duplicate"), False
    is_ordered = is_believed and found[0].order is not None
    if is_ordered:
        outcome = _outcome_by_order(found[0], bool(touched), order, packet, start, is_newest)
    elif not touched:
        outcome = _outcome_without_order(is_here, number, has_copies)
    else:
        outcome = "resent" if requested else "reordered"
    if found and order is not None:
        found[0].remember(order, packet, start, end)
    if not touched or outcome == "duplicate":
        return outcome, False
    if best[0].was_missing():
        if outcome == "resent":
            best[0].repaired_words += best[0].words_now
        else:
            best[0].late_words += best[0].words_now
    return outcome, best[0].cause == BEFORE and best[0].was_missing()


def _outcome_by_order(gap, has_filled, order, packet, start, is_newest):
    for each, other, first, last in gap.seen[-8:]:
        if each == order and other != packet and first <= start < last:
            return "duplicate"
    if order > gap.order:
        is_ordered = has_filled or len(gap.seen) <= 8 or is_newest
        return "resent" if is_ordered else "duplicate"
    if gap.cause != BEFORE:
        return "duplicate"
    if has_filled:
        return "reordered" if gap.was_missing() else "late"
    was_passed = gap.passed_ns is not None and not gap.is_whole
    return "late" if was_passed or gap.repaired_words else "duplicate"


def _piece_end(gap, word):
    """Return the end of the missing range from a word on; a range that a NAK added is separate."""
    while word in gap.open:
        word += WORD
        if word in gap.seams:
            break
    return word


def _outcome_without_order(is_here, number, has_copies):
    """Decide by the first gap there that was requested by a NAK or skipped."""
    for gap in is_here:
        if gap.naks or (gap.passed_ns is not None and not gap.is_whole):
            is_behind = gap.filled_at is not None and number - gap.filled_at <= 4
            if is_behind and has_copies:
                return "duplicate"
            return "late" if gap.cause == BEFORE else "resent"
    return "duplicate"


def _fill(gaps, time_ns, number, start, end):
    touched = []
    for gap in gaps:
        if gap.open & words(start, end):
            gap.words_now = len(gap.open & words(start, end))
            gap.filled_words += gap.words_now
            gap.filled_at = number
            gap.open -= words(start, end)
            gap.filled_ns = time_ns
            gap.is_whole = gap.is_whole or not gap.open
            touched.append(gap)
    return touched


def _request(gaps, hwm, time_ns, start, end, newest, place):
    if end <= start:
        return
    matched = [gap for gap in gaps if gap.start < end and gap.end > start]
    if not matched:
        seen = hwm is not None and end <= hwm
        order = newest[0] if seen and newest else None
        gap = Gap(start, end, time_ns, BEHIND if seen else BEFORE, place, order)
        gap.naks = 1
        gaps.append(gap)
        return
    covered = max([start, *(gap.end for gap in matched)])
    for gap in matched:
        gap.naks += 1
        if not gap.open and gap.passed_ns is None:
            gap.open = words(max(start, gap.start), min(end, gap.end))
    last = matched[-1]
    if covered < end and hwm is not None and end <= hwm and last.cause == BEFORE:
        gap = Gap(covered, end, time_ns, BEHIND, place, newest[0] if newest else None)
        gap.naks = 1
        gaps.append(gap)
    elif covered < end:
        last.open |= words(max(last.end, start), end)
        last.seams.add(max(last.end, start))
        last.end, last.is_whole = end, False
        if hwm is None or end > hwm:
            last.order = None
