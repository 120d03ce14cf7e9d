"""A model of a stream, its receivers and their captures, which records what really happened.

It has a sender with flow control, receivers that request gaps or fill them, readers that may pause,
and paths that lose and delay frames. Frame `i` is one message at position `i * STEP`. The model
shares nothing with the analysis of captures and keeps its own account: what was lost, filled and
delivered, and when a gap kept a receiver from consuming.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count
from random import Random

from tests.stand_ins import synthetic_capture as made

STEP, TERM_LENGTH = 64, 65_536
US, MS = 1_000, 1_000_000
GROUP, GROUP_CONTROL = "224.0.1.1", "224.0.1.2"
SENDER = "10.0.0.1"
NAK_DELAY_NS, NAK_AGAIN_NS = 100 * US, 10 * MS
POLL_NS, SAMPLE_NS, STATUS_NS = MS, MS // 2, 200 * MS


@dataclass
class Plan:
    seed: int
    frames: int = 400
    receivers: int = 1
    in_group: bool = False
    sees_others: bool = False
    is_reliable: bool = True
    has_numbers: bool = True
    loss: float = 0.0
    resend_loss: float = 0.0
    late: float = 0.0
    late_ns: int = 3 * MS
    window: int = 64
    way_ns: int = 5 * MS
    pace_ns: int = 500 * US
    rest_every: int = 0
    rest_ns: int = 0


@dataclass
class Receiver:
    name: str
    address: str
    consumed: int = 0
    reported: int = 0
    rebuilt: int = 0
    high: int = 0
    gap: int = -1
    rest_until_ns: int = 0
    rested_at: int = 0
    arrived: set = field(default_factory=set)
    filled: set = field(default_factory=set)
    lost: list = field(default_factory=list)
    fills: list = field(default_factory=list)
    blocked: list = field(default_factory=list)
    "Times of the samples at which it had a gap, and whether the reader could continue."

    @property
    def delivered(self):
        return len(self.arrived)


class LossyStream:
    """Runs a plan. Afterwards `packets` holds each point's capture, and `receivers` the truth."""

    def __init__(self, plan):
        self.plan, self._random = plan, Random(plan.seed)
        self.receivers = [
            Receiver(f"sub{n}", f"10.0.0.{n + 1}") for n in range(1, plan.receivers + 1)
        ]
        self.packets = {name: [] for name in ("pub", *(each.name for each in self.receivers))}
        self.resends = 0
        self.sent_ns = {}
        "Time of each frame's first transmission."
        self._heap, self._tick, self._number = [], count(), 0
        self._next, self._limit, self._next_at_ns = 0, 0, 0
        self._attempts = {}
        self._run()

    def capture(self, point):
        return made.pcap(sorted(self.packets[point], key=lambda each: each.time_ns))

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for point in self.packets:
            (folder / f"{point}.pcap").write_bytes(self.capture(point))
        return folder

    def blocked_share(self, receiver, start_ns, end_ns, *, is_reading):
        """Return the share of a period of the sender in which this receiver had a gap.

        With `is_reading`, only samples while the reader did not pause.
        """
        start, end = (each - made.START_NS - self.plan.way_ns for each in (start_ns, end_ns))
        samples = [
            at for at, was_reading in receiver.blocked
            if start <= at < end and (was_reading or not is_reading)
        ]  # fmt: skip
        return len(samples) * SAMPLE_NS / (end - start)

    def _at(self, time_ns, act, *arguments):
        heapq.heappush(self._heap, (time_ns, next(self._tick), act, arguments))

    def _run(self):
        self._record("pub", 0, made.setup(), SENDER, self._destination(self.receivers[0]))
        for each in self.receivers:
            self._at(MS, self._status, each)
            self._at(MS, self._poll, each)
            self._at(MS, self._sample, each)
            self._at(MS + STATUS_NS, self._status_timer, each)
        self._at(8 * self.plan.way_ns, self._send)
        while self._heap:
            time_ns, _, act, arguments = heapq.heappop(self._heap)
            if time_ns > 60_000 * MS:
                break
            act(time_ns, *arguments)

    def _is_over(self):
        plan = self.plan
        return self._next >= plan.frames and all(
            each.consumed >= plan.frames for each in self.receivers
        )

    def _destination(self, receiver):
        return GROUP if self.plan.in_group else receiver.address

    def _record(self, point, time_ns, payload, source, destination, *, back=False, number=0):
        ports = (24_325, 40_000) if back and not self.plan.in_group else (40_000, 24_325)
        if back and self.plan.in_group:
            ports = (30_000, 24_325)
        packet = made.packet(
            made.START_NS + time_ns, payload, source=source, destination=destination,
            ports=ports, identification=number,
        )  # fmt: skip
        self.packets[point].append(packet)

    def _send(self, time_ns):
        if self._next < self.plan.frames:
            if self._next < self._limit:
                self._transmit(time_ns, self._next)
                self._next += 1
            self._at(time_ns + self.plan.pace_ns, self._send)

    def _transmit(self, time_ns, index):
        plan = self.plan
        self._number += 1
        number = self._number if plan.has_numbers else 0
        attempt = self._attempts[index] = self._attempts.get(index, 0) + 1
        self.resends += attempt > 1
        self.sent_ns.setdefault(index, time_ns)
        payload = made.data(index * STEP, bytes(STEP - 32))
        self._record(
            "pub", time_ns, payload, SENDER, self._destination(self.receivers[0]), number=number
        )
        for each in self.receivers:
            # The first and the last frame always arrive, so that every gap is found.
            may_fail = 0 < index < plan.frames - 1
            draw, late = self._random.random(), self._random.random()
            if may_fail and draw < (plan.loss if attempt == 1 else plan.resend_loss):
                each.lost.append((index, attempt))
                continue
            way_ns = plan.way_ns + (plan.late_ns if may_fail and late < plan.late else 0)
            self._at(time_ns + way_ns, self._arrive, each, index, payload, number)

    def _arrive(self, time_ns, receiver, index, payload, number):
        destination = self._destination(receiver)
        self._record(receiver.name, time_ns, payload, SENDER, destination, number=number)
        if index >= receiver.rebuilt and index not in receiver.filled:
            receiver.arrived.add(index)
            receiver.high = max(receiver.high, index + 1)
            self._advance(time_ns, receiver)

    def _advance(self, time_ns, receiver):
        known = receiver.arrived, receiver.filled
        while receiver.rebuilt in known[0] or receiver.rebuilt in known[1]:
            receiver.rebuilt += 1
        gap = receiver.rebuilt if receiver.rebuilt < receiver.high else -1
        if gap != receiver.gap:
            receiver.gap = gap
            if gap >= 0:
                self._at(time_ns + NAK_DELAY_NS, self._on_gap, receiver, gap)

    def _on_gap(self, time_ns, receiver, gap):
        if receiver.gap != gap:
            return
        end = min(each for each in receiver.arrived if each > gap)
        if not self.plan.is_reliable:
            receiver.fills.append((gap, end))
            receiver.filled.update(range(gap, end))
            self._advance(time_ns, receiver)
            return
        nak = made.nak(gap * STEP, (end - gap) * STEP)
        self._send_feedback(time_ns, receiver, nak)
        self._at(time_ns + self.plan.way_ns, self._resend, gap, end)
        self._at(time_ns + NAK_AGAIN_NS, self._on_gap, receiver, gap)

    def _resend(self, time_ns, gap, end):
        for index in range(gap, end):
            self._transmit(time_ns, index)

    def _send_feedback(self, time_ns, receiver, payload):
        plan = self.plan
        destination = GROUP_CONTROL if plan.in_group else SENDER
        self._record(receiver.name, time_ns, payload, receiver.address, destination, back=True)
        later_ns = time_ns + plan.way_ns
        self._record("pub", later_ns, payload, receiver.address, destination, back=True)
        for each in self.receivers if plan.sees_others else ():
            if each is not receiver:
                self._record(each.name, later_ns, payload, receiver.address, destination, back=True)

    def _poll(self, time_ns, receiver):
        plan = self.plan
        if time_ns >= receiver.rest_until_ns:
            receiver.consumed = receiver.rebuilt
            if plan.rest_every and receiver.consumed - receiver.rested_at >= plan.rest_every:
                receiver.rested_at = receiver.consumed
                receiver.rest_until_ns = time_ns + plan.rest_ns
        if receiver.consumed - receiver.reported >= plan.window // 4:
            self._status(time_ns, receiver)
        if not self._is_over():
            self._at(time_ns + POLL_NS, self._poll, receiver)

    def _status_timer(self, time_ns, receiver):
        self._status(time_ns, receiver)
        if not self._is_over():
            self._at(time_ns + STATUS_NS, self._status_timer, receiver)

    def _status(self, time_ns, receiver):
        receiver.reported = receiver.consumed
        status = made.sm(receiver.consumed * STEP, self.plan.window * STEP)
        self._send_feedback(time_ns, receiver, status)
        limit = receiver.consumed + self.plan.window
        self._at(time_ns + self.plan.way_ns, self._raise_limit, limit)

    def _raise_limit(self, _, limit):
        self._limit = max(self._limit, limit)

    def _sample(self, time_ns, receiver):
        if receiver.gap >= 0:
            receiver.blocked.append((time_ns, time_ns >= receiver.rest_until_ns))
        if not self._is_over():
            self._at(time_ns + SAMPLE_NS, self._sample, receiver)
