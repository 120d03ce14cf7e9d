"""NAKs of a group of 200 receivers that lose the same frames, with Aeron's rule and with NAKs for
all gaps.

    sender --- 10 ms ---> 200 receivers: each has the same gaps, a random generator of its own
      ^------- 10 ms --- NAKs: only the first one for a gap within the linger has an effect

The receivers share a log, because the same frames arrive at all of them at the same time.
"""

import struct
from collections import Counter

import numpy as np

from windtunnel.driver.media_driver.image import (
    gap_rows,
    loss_detector,
    nak_delay,
    nak_schedule,
    open_gaps,
    publication_image,
)

MS = 1_000_000
TERM, BITS = 65_536, 16
RECEIVERS = 200
FRAME, FRAMES = 1_024, 64
HOLES = (3, 10, 17, 24, 31, 38, 45, 52, 59)
LOST_AGAIN = (17, 45)
"""Holes whose first retransmit is lost for all receivers, too."""
ONE_WAY_NS, LINGER_NS = 10 * MS, 10 * MS
TICK_NS = MS
DEFAULTS = (10 * MS, 10)
"""Aeron's defaults: maximum backoff and assumed size of the group."""
CONFIGURED = (200 * MS, RECEIVERS)
"""A backoff of ten round trips, and the size of this group."""


class Group:
    """Receivers of one stream with shared losses, and its sender."""

    def __init__(self, *, has_all_gaps: bool, backoff_ns: int, size: int) -> None:
        self.images = publication_image.make_images(RECEIVERS)[0]
        for index, image in enumerate(self.images):
            image.term_length, image.bits, image.initial_term_id = TERM, BITS, 0
            image.is_nak_all_gaps = int(has_all_gaps)
            nak_delay.fill_backoff(image, backoff_ns, size, 1_000_003 * (index + 1))
        self.gaps = gap_rows.make_gaps(RECEIVERS)
        self.log = np.zeros(3 * TERM + 4096, np.uint8)
        for number in range(FRAMES):
            if number not in HOLES:
                self._put(number)
        self.now_ns = 0
        self.naks: list[tuple[int, int]] = []
        """The time and the frame number of each NAK."""
        self._retransmits: list[tuple[int, int]] = []
        self._lingers_ns: dict[int, int] = {}
        self._left = Counter(LOST_AGAIN)
        self._due_ns = [0] * RECEIVERS
        """For each receiver, the time at which it must look at its gaps again."""

    def _put(self, number: int) -> None:
        struct.pack_into("<iBBH", self.log, FRAME * number, FRAME, 0, 0xC0, 1)

    def is_complete(self) -> bool:
        """Return whether every hole is filled."""
        return all(struct.unpack_from("<i", self.log, FRAME * number)[0] for number in HOLES)

    def tick(self) -> None:
        """Deliver retransmits, let every receiver scan for gaps, and retransmit for their NAKs."""
        for at_ns, number in [each for each in self._retransmits if each[0] <= self.now_ns]:
            self._retransmits.remove((at_ns, number))
            self._put(number)
            self._due_ns = [0] * RECEIVERS
        due = [index for index, at_ns in enumerate(self._due_ns) if at_ns <= self.now_ns]
        for number in sorted({number for index in due for number in self._naks_of(index)}):
            self._retransmit(number, self.now_ns + ONE_WAY_NS)
        self.now_ns += TICK_NS

    def _naks_of(self, index: int) -> list[int]:
        image, gaps, hwm = self.images[index], self.gaps[index], FRAME * FRAMES
        found = []
        if image.is_nak_all_gaps:
            open_gaps.scan(image, gaps, self.log, 0, hwm, self.now_ns)
            row = nak_schedule.take_due(image, gaps, self.log, 0, self.now_ns)
            while row:
                found.append(int(image.gap_offset) // FRAME)
                row = nak_schedule.take_due(image, gaps, self.log, row, self.now_ns)
            self._due_ns[index] = min(gaps["deadline_ns"][: image.gap_count].tolist(), default=0)
        else:
            _, _, is_due = loss_detector.scan(image, self.log, 0, hwm, self.now_ns)
            found = [int(image.gap_offset) // FRAME] if is_due else []
            self._due_ns[index] = int(image.gap_deadline_ns)
        self.naks += [(self.now_ns, number) for number in found]
        return found

    def _retransmit(self, number: int, at_ns: int) -> None:
        if at_ns < self._lingers_ns.get(number, 0):
            return
        self._lingers_ns[number] = at_ns + LINGER_NS
        if self._left[number] > 0:
            self._left[number] -= 1
        else:
            self._retransmits.append((at_ns + ONE_WAY_NS, number))


def naks_of_a_group(**settings) -> tuple[float, int]:
    """Return the number of NAKs for each hole, and the most NAKs within a millisecond."""
    group = Group(**settings)
    while not group.is_complete():
        group.tick()
        assert group.now_ns < 20_000 * MS
    busiest = Counter(at_ns for at_ns, _ in group.naks).most_common(1)[0][1]
    return len(group.naks) / len(HOLES), busiest


def test_with_default_settings_naks_for_all_gaps_are_fewer_than_by_aerons_rule():
    backoff_ns, size = DEFAULTS
    every, _ = naks_of_a_group(has_all_gaps=True, backoff_ns=backoff_ns, size=size)
    first, _ = naks_of_a_group(has_all_gaps=False, backoff_ns=backoff_ns, size=size)
    assert every < 0.6 * first
    # Aeron's defaults assume ten members: nearly all send a NAK before a retransmit can arrive.
    assert every >= RECEIVERS


def test_a_group_whose_size_is_configured_sends_few_naks_for_a_hole_of_all_members():
    backoff_ns, size = CONFIGURED
    every, busiest = naks_of_a_group(has_all_gaps=True, backoff_ns=backoff_ns, size=size)
    assert every < RECEIVERS / 20
    assert busiest < RECEIVERS / 20
