"""A synthetic stream over a link that loses, holds and duplicates, recovered by its receiver.

    sender    1 2 3 4 5 ..... 2 ...      each packet has the next number, retransmissions too
    receiver  1   3 4 5 NAK       2 2    2 was lost, and its retransmission arrives twice

Shares nothing with the analysis that it labels, except the names of the outcomes.
"""

import heapq
import itertools
import random
from typing import NamedTuple

from tests.stand_ins import made_capture as made

STEP, FRAMES_A_TERM, SPACING_NS, WAY_NS = 256, 256, 20_000, 100_000
NAK_DELAY_NS, NAK_AGAIN_NS = 500_000, 1_000_000


class Sent(NamedTuple):
    """A transmission of a frame at the sender."""

    time_ns: int
    frame: int
    attempt: int
    number: int


class Came(NamedTuple):
    """An arrival of a frame at the receiver, and its outcome."""

    time_ns: int
    sent: Sent
    is_copy: bool
    fate: str


class Link(NamedTuple):
    """Everything that happened on the link."""

    sent: list[Sent]
    came: list[Came]
    naks: list[tuple[int, int]]
    "Time at the receiver, frame."


def run(seed, frames=600, loses=0.03, holds=0.03, copies=0.03, first_number=65_000):
    """Simulate the link once."""
    rng = random.Random(seed)
    numbers = itertools.count(first_number)
    sent, came, naks, attempts = [], [], [], [0] * frames
    here, high = set(), -1
    order = itertools.count()
    due = [(frame * SPACING_NS, next(order), "send", frame) for frame in range(frames)]
    heapq.heapify(due)

    def soon(at_ns, kind, what):
        heapq.heappush(due, (at_ns, next(order), kind, what))

    while due:
        now_ns, _, kind, what = heapq.heappop(due)
        if kind == "send":
            attempts[what] += 1
            passage = Sent(now_ns, what, attempts[what], next(numbers))
            sent.append(passage)
            # The last frames show what is missing before them: they always come.
            chance = rng.random() if what < frames - 8 else 1.0
            if chance < loses:
                continue
            held_ns = rng.randrange(200_000, 3_000_000) if chance < loses + holds else 0
            soon(now_ns + WAY_NS + held_ns, "come", (passage, False))
            if chance > 1 - copies and what < frames - 8:
                soon(now_ns + WAY_NS + rng.randrange(30_000), "come", (passage, True))
        elif kind == "come":
            passage, is_copy = what
            frame = passage.frame
            if is_copy:
                fate = "duplicate"
            elif passage.attempt > 1:
                fate = "resent"
            elif frame in here:
                fate = "late"
            else:
                fate = "reordered" if frame < high else "first"
            came.append(Came(now_ns, passage, is_copy, fate))
            here.add(frame)
            for missing in range(high + 1, frame):
                soon(now_ns + NAK_DELAY_NS, "nak", missing)
            high = max(high, frame)
        elif what not in here:
            naks.append((now_ns, what))
            soon(now_ns + WAY_NS, "send", what)
            soon(now_ns + NAK_AGAIN_NS, "nak", what)
    return Link(sent, came, naks)


def captures(link, has_numbers=True, batch=1):
    """The captures of the sender's and the receiver's host, as pcap files.

    With `batch` each packet holds that many frames, each shorter by that factor.
    """
    short = STEP // batch

    def data(time_ns, passage):
        term, place = divmod(passage.frame, FRAMES_A_TERM)
        frames = (
            made.data(place * STEP + index * short, bytes(short - 32), term=5 + term)
            for index in range(batch)
        )
        number = passage.number % (1 << 16) if has_numbers else 0
        return made.packet(made.START_NS + time_ns, b"".join(frames), identification=number)

    def nak(time_ns, frame):
        term, place = divmod(frame, FRAMES_A_TERM)
        payload = made.nak(place * STEP, STEP, term=5 + term)
        back = {"source": made.B, "destination": made.A, "ports": (24_325, 40_000)}
        return made.packet(made.START_NS + time_ns, payload, **back)

    begin = made.packet(made.START_NS - 1_000, made.setup())
    near = [data(each.time_ns, each) for each in link.sent]
    near += [nak(time_ns + WAY_NS, frame) for time_ns, frame in link.naks]
    far = [data(each.time_ns, each.sent) for each in link.came]
    far += [nak(*each) for each in link.naks]
    in_time = [sorted(each, key=lambda packet: packet.time_ns) for each in (near, far)]
    return [made.pcap([begin, *packets]) for packets in in_time]
