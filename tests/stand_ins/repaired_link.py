"""A synthetic stream over a link that loses, holds and duplicates, recovered by its receiver.

    sender    1 2 3 4 5 ..... 2 ...      each packet has the next number, retransmissions too
    receiver  1   3 4 5 NAK       2 2    2 was lost, and its retransmission arrives twice

Shares nothing with the analysis that it labels, except the names of the outcomes.
"""

import heapq
import itertools
import random
from typing import NamedTuple

from tests.stand_ins import synthetic_capture as made

STEP, FRAMES_A_TERM, SPACING_NS, WAY_NS = 256, 256, 20_000, 100_000
NAK_DELAY_NS, NAK_AGAIN_NS = 500_000, 1_000_000


class Sent(NamedTuple):
    """A transmission of a frame at the sender."""

    time_ns: int
    frame: int
    attempt: int
    number: int


class Arrival(NamedTuple):
    """An arrival of a frame at the receiver, and its outcome."""

    time_ns: int
    sent: Sent
    is_copy: bool
    outcome: str


class Link(NamedTuple):
    """Everything that happened on the link."""

    sent: list[Sent]
    arrivals: list[Arrival]
    naks: list[tuple[int, int]]
    "Time at the receiver, frame."


def run(seed, frames=600, loses=0.03, holds=0.03, copies=0.03, first_number=65_000):
    """Simulate the link once."""
    rng = random.Random(seed)
    numbers = itertools.count(first_number)
    sent, arrivals, naks, attempts = [], [], [], [0] * frames
    received, high = set(), -1
    order = itertools.count()
    due = [(frame * SPACING_NS, next(order), "send", frame) for frame in range(frames)]
    heapq.heapify(due)

    def schedule(at_ns, kind, what):
        heapq.heappush(due, (at_ns, next(order), kind, what))

    while due:
        now_ns, _, kind, what = heapq.heappop(due)
        if kind == "send":
            attempts[what] += 1
            transmission = Sent(now_ns, what, attempts[what], next(numbers))
            sent.append(transmission)
            # The last frames reveal what is missing before them: they always arrive.
            chance = rng.random() if what < frames - 8 else 1.0
            if chance < loses:
                continue
            held_ns = rng.randrange(200_000, 3_000_000) if chance < loses + holds else 0
            schedule(now_ns + WAY_NS + held_ns, "come", (transmission, False))
            if chance > 1 - copies and what < frames - 8:
                schedule(now_ns + WAY_NS + rng.randrange(30_000), "come", (transmission, True))
        elif kind == "come":
            transmission, is_copy = what
            frame = transmission.frame
            if is_copy:
                outcome = "duplicate"
            elif transmission.attempt > 1:
                outcome = "resent"
            elif frame in received:
                outcome = "late"
            else:
                outcome = "reordered" if frame < high else "first"
            arrivals.append(Arrival(now_ns, transmission, is_copy, outcome))
            received.add(frame)
            for missing in range(high + 1, frame):
                schedule(now_ns + NAK_DELAY_NS, "nak", missing)
            high = max(high, frame)
        elif what not in received:
            naks.append((now_ns, what))
            schedule(now_ns + WAY_NS, "send", what)
            schedule(now_ns + NAK_AGAIN_NS, "nak", what)
    return Link(sent, arrivals, naks)


def captures(link, has_numbers=True, batch=1):
    """The captures of the sender's and the receiver's host, as pcap files.

    With `batch` each packet holds that many frames, each shorter by that factor.
    """
    short = STEP // batch

    def data(time_ns, transmission):
        term, place = divmod(transmission.frame, FRAMES_A_TERM)
        frames = (
            made.data(place * STEP + index * short, bytes(short - 32), term=5 + term)
            for index in range(batch)
        )
        number = transmission.number % (1 << 16) if has_numbers else 0
        return made.packet(made.START_NS + time_ns, b"".join(frames), identification=number)

    def nak(time_ns, frame):
        term, place = divmod(frame, FRAMES_A_TERM)
        payload = made.nak(place * STEP, STEP, term=5 + term)
        back = {"source": made.B, "destination": made.A, "ports": (24_325, 40_000)}
        return made.packet(made.START_NS + time_ns, payload, **back)

    begin = made.packet(made.START_NS - 1_000, made.setup())
    near = [data(each.time_ns, each) for each in link.sent]
    near += [nak(time_ns + WAY_NS, frame) for time_ns, frame in link.naks]
    far = [data(each.time_ns, each.sent) for each in link.arrivals]
    far += [nak(*each) for each in link.naks]
    in_time = [sorted(each, key=lambda packet: packet.time_ns) for each in (near, far)]
    return [made.pcap([begin, *packets]) for packets in in_time]
