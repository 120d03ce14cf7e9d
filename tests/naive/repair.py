"""Following a stream word by word: every 32 bytes are an item of a set.

Events are (kind, time_ns, start, end) of one flow; kinds are "frame", "heartbeat", "nak", "status".
"""

WORD = 32
BEFORE, BEHIND = "before capture", "behind capture"


def words(start, end):
    return set(range(start, end, WORD))


class Gap:
    def __init__(self, start, end, time_ns, cause):
        self.start, self.end, self.cause = start, end, cause
        self.open = words(start, end)
        self.opened_ns, self.naks = time_ns, 0
        self.filled_ns = self.passed_ns = None
        self.is_whole = False
        self.filled_words, self.filled_at = 0, None

    def is_missing(self):
        return self.cause == BEFORE and self.filled_words * WORD <= self.end - self.start

    def row(self):
        repaired = "repaired" if self.naks else "reordered"
        left = "open" if self.passed_ns is None else "passed"
        outcome = repaired if self.is_whole else left
        return self.start, self.end, self.cause, self.naks, outcome, self.opened_ns


def follow(events):
    """(fate of each frame, rows of the gaps, messages' worth of new frames)."""
    low = hwm = None
    gaps, fates, new_count = [], [], 0
    for kind, time_ns, start, end in events:
        if kind == "nak":
            _ask(gaps, hwm, time_ns, start, end)
            continue
        if kind == "status":
            for gap in gaps:
                if gap.passed_ns is None and gap.end <= end:
                    gap.passed_ns = time_ns
                gap.open -= {word for word in gap.open if _piece_end(gap.open, word) <= end}
            continue
        if hwm is None:
            low, hwm, is_first = start, end, True
        else:
            if start > hwm and not any(gap.open & words(hwm, start) for gap in gaps):
                gaps.append(Gap(hwm, start, time_ns, BEFORE))
            is_first = end > hwm
            hwm = max(hwm, end)
        if kind == "heartbeat":
            continue
        touched = _fill(gaps, time_ns, len(fates), start, end)
        asked = [gap for gap in touched if gap.naks]
        if is_first:
            fate, is_new = "first", True
        elif not touched:
            is_late = _is_late(gaps, len(fates), start, end, "duplicate" in fates)
            fate = "earlier" if end <= low else "late" if is_late else "duplicate"
            is_new = fate == "earlier"
        elif asked:
            missing = [gap for gap in asked if gap.cause == BEFORE] or asked
            fate, is_new = "resent", missing[0].is_missing()
        else:
            fate, is_new = "reordered", True
        fates.append(fate)
        new_count += is_new
    return fates, [gap.row() for gap in gaps], new_count


def _piece_end(open_words, word):
    while word in open_words:
        word += WORD
    return word


def _is_late(gaps, number, start, end, has_copies):
    """By the first gap there that was asked for or passed over."""
    for gap in gaps:
        was_passed = gap.passed_ns is not None and not gap.is_whole
        if gap.start < end and gap.end > start and (gap.naks or was_passed):
            is_behind = gap.filled_at is not None and number - gap.filled_at <= 4
            return not (is_behind and has_copies)
    return False


def _fill(gaps, time_ns, number, start, end):
    touched = []
    for gap in gaps:
        if gap.open & words(start, end):
            gap.filled_words += len(gap.open & words(start, end))
            gap.filled_at = number
            gap.open -= words(start, end)
            gap.filled_ns = time_ns
            gap.is_whole = gap.is_whole or not gap.open
            touched.append(gap)
    return touched


def _ask(gaps, hwm, time_ns, start, end):
    if end <= start:
        return
    matched = [gap for gap in gaps if gap.start < end and gap.end > start]
    if not matched:
        seen = hwm is not None and end <= hwm
        gap = Gap(start, end, time_ns, BEHIND if seen else BEFORE)
        gap.naks = 1
        gaps.append(gap)
        return
    covered = max([start, *(gap.end for gap in matched)])
    for gap in matched:
        gap.naks += 1
        if not gap.open and gap.passed_ns is None:
            gap.open = words(max(start, gap.start), min(end, gap.end))
    if covered < end:
        last = matched[-1]
        last.open |= words(max(last.end, start), end)
        last.end, last.is_whole = end, False
