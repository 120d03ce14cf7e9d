"""Reference implementations of flow control, retransmit handling and gap detection."""

from dataclasses import dataclass, field

FOREVER = 2**63 - 1


@dataclass
class Receivers:
    """Receivers of one stream: id -> time of the last status message, and highest position."""

    most: int
    alive: dict[int, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)

    def on_status(self, receiver: int, now: int, position: int = 0) -> int:
        if receiver not in self.alive and len(self.alive) == self.most:
            del self.alive[min(self.alive, key=self.alive.__getitem__)]
        known = self.positions.get(receiver, position) if receiver in self.alive else position
        self.positions[receiver] = max(known, position)
        self.alive[receiver] = now
        return len(self.alive)

    def lowest(self) -> int:
        return min((self.positions[receiver] for receiver in self.alive), default=FOREVER)

    def done(self, receiver: int) -> int:
        self.alive.pop(receiver, None)
        return len(self.alive)

    def expire(self, timeout: int, now: int) -> int:
        self.alive = {key: last for key, last in self.alive.items() if now - last < timeout}
        return len(self.alive)


@dataclass
class Member:
    """A receiver of a group that limits the sender."""

    limit: int
    last_status: int
    is_done: bool = False


@dataclass
class Group:
    """Flow control by the slowest member; every call that changes the limit returns it.

    The number of members has no bound, as in Aeron.
    """

    timeout: int
    least: int
    tag: int | None = None
    members: dict[int, Member] = field(default_factory=dict)
    is_setup_elicited: bool = False
    latch: tuple[int, int] | None = None
    """(limit, time of the latch)."""

    def _floor(self, now: int) -> int:
        if self.latch and now > self.latch[1] + self.timeout:
            self.latch = None
        return min([FOREVER] + ([self.latch[0]] if self.latch else []) + self._limits())

    def _limits(self) -> list[int]:
        return [member.limit for member in self.members.values()]

    def _belongs(self, tag: int | None) -> bool:
        return self.tag is None or tag == self.tag

    def on_status(
        self, now: int, at: int, receiver: int, limit: int, window: int, tag: int | None, done: bool
    ) -> int:
        belongs = self._belongs(tag)
        if belongs and receiver in self.members:
            self.members[receiver] = Member(limit, now, done)
        floor = self._floor(now)
        is_new = belongs and receiver not in self.members and not done
        is_near = not self.members or limit >= floor - window
        if is_new and is_near:
            self.members[receiver] = Member(limit, now)
            self.latch = None
            floor = min(floor, limit)
        if len(self.members) < self.least:
            return at
        return max(at, floor if self.members else limit)

    def idle(self, now: int, at: int) -> int:
        floor = self._floor(now) if not self.members else FOREVER
        self.members = {
            key: item
            for key, item in self.members.items()
            if not item.is_done and now <= item.last_status + self.timeout
        }
        floor = min(floor, self._floor(now))
        return floor if self.members and len(self.members) >= self.least else at

    def elicit_setup(self, tag: int | None) -> None:
        self.is_setup_elicited = self.is_setup_elicited or self._belongs(tag)

    def setup(self, now: int, at: int) -> None:
        if self.is_setup_elicited and self.members:
            self.latch = (at, now)
        self.is_setup_elicited = False

    def on_error(self, receiver: int) -> None:
        if receiver in self.members:
            self.members[receiver].is_done = True


@dataclass
class Resend:
    """A retransmit action that is delayed, or lingering after it was sent."""

    term: int
    offset: int
    length: int
    is_sent: bool
    expiry: int


@dataclass
class Resends:
    """The retransmit actions of one stream; every call returns the ranges to send now."""

    most: int
    is_group: bool
    delay: int
    linger: int
    slots: list[Resend | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slots = [None] * (self.most if self.is_group else 1)

    def request(self, term: int, offset: int, length: int, now: int) -> list[tuple[int, int, int]]:
        for action in self.slots:
            if action and action.term == term and 0 <= offset - action.offset < action.length:
                return []
        if None in self.slots:
            index = self.slots.index(None)
        elif self.is_group:
            return []
        else:
            index = 0
        is_sent = self.delay == 0
        expiry = now + (self.linger if is_sent else self.delay)
        self.slots[index] = Resend(term, offset, length, is_sent, expiry)
        return [(term, offset, length)] if is_sent else []

    def time_passes(self, now: int) -> list[tuple[int, int, int]]:
        sent = []
        for index, action in enumerate(self.slots):
            if action is None or now < action.expiry:
                continue
            if action.is_sent:
                self.slots[index] = None
            else:
                sent.append((action.term, action.offset, action.length))
                action.is_sent, action.expiry = True, now + self.linger
        return sent


@dataclass
class Gaps:
    """The NAK schedule of an image, for its first gap."""

    delay: int
    retry: int
    gap: tuple[int, int, int] | None = None
    deadline: int = 0
    naks: int = 0

    def scan(self, gap: tuple[int, int, int] | None, now: int) -> tuple[bool, bool]:
        """Return (the gap is new, a NAK is to be sent now)."""
        if gap is None:
            return False, False
        is_new = gap != self.gap
        if self.gap is None or gap[:2] != self.gap[:2]:
            self.naks = 0
        if is_new:
            self.gap, self.deadline = gap, now + self.delay
        is_due = now >= self.deadline
        if is_due:
            self.naks += 1
            self.deadline = now + self.retry * 2 ** min(self.naks // 16, 4)
        return is_new, is_due


def bounds(readers: list[tuple[str, int]]) -> tuple[int, int, int]:
    """Return the lowest and the highest position of the active readers, and their number."""
    positions = [position for state, position in readers if state in ("active", "linger")]
    if not positions:
        return FOREVER, 0, 0
    return min(positions), max(0, *positions), len(positions)
