"""The slow, obvious twin of the middlebox: dictionaries, lists and bytes instead of arrays."""

import struct
from dataclasses import dataclass, field

WORD = 1 << 32
SWAP_PATIENCE_NS = 1_000_000
LINKS = ("a->b", "b->a")
CLASS_INDEX = {
    name: index
    for index, name in enumerate(
        [
            *("PAD", "DATA", "NAK", "SM", "ERR", "SETUP", "RTTM", "RES"),
            *("RSP_SETUP", "HEARTBEAT", "MALFORMED", "OTHER"),
        ]
    )
}
TYPE_NAMES = {0: "PAD", 1: "DATA", 2: "NAK", 3: "SM", 4: "ERR", 5: "SETUP", 6: "RTTM", 7: "RES"}
TYPE_NAMES[11] = "RSP_SETUP"
SHORTEST = {"PAD": 32, "DATA": 32, "NAK": 28, "SM": 36, "ERR": 40, "SETUP": 40, "RTTM": 40}
PAST = {"drop": "dropped", "duplicate": "duplicated", "hold": "held", "swap": "swapped"}
SHORTEST |= {"RES": 8, "RSP_SETUP": 20}


def philox(counter, key):
    """Four words from four words and a key of two, by the text of the paper."""
    words, key = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            second // WORD ^ words[1] ^ key[0],
            second % WORD,
            first // WORD ^ words[3] ^ key[1],
            first % WORD,
        ]
        key = [(key[0] + 0x9E3779B9) % WORD, (key[1] + 0xBB67AE85) % WORD]
    return words


def draw(seed, rule, link, class_index, ordinal, by_order, place, attempt):
    """A number below 2**62 for one frame and one rule."""
    what = rule << 24 | ordinal << 16 | class_index << 8 | by_order << 1 | link
    words = philox((place % WORD, place // WORD, attempt, what), (seed % WORD, seed // WORD))
    return (words[0] * WORD + words[1]) // 4


def split(datagram):
    """Frames as (class name, bytes), or None when some bytes are no whole frame."""
    if len(datagram) < 8:
        return None
    length, version, _, code = struct.unpack_from("<iBBH", datagram)
    if length < 0 or version:
        return None
    name = TYPE_NAMES.get(code, "OTHER")
    if len(datagram) < SHORTEST.get(name, 0):
        return None
    if name == "DATA" and length == 0:
        return [("HEARTBEAT", datagram)] if len(datagram) == 32 else None
    if name not in ("DATA", "PAD"):
        return [(name, datagram)]
    frames = []
    while datagram:
        if len(datagram) < 32:
            return None
        length, version, _, code = struct.unpack_from("<iBBH", datagram)
        if version or length < 32 or code not in (0, 1):
            return None
        wire = 32 if code == 0 else (length + 31) // 32 * 32
        if len(datagram) < wire or (code == 0 and len(datagram) != 32):
            return None
        frames.append((TYPE_NAMES[code], datagram[:wire]))
        datagram = datagram[wire:]
    return frames


@dataclass
class Waiter:
    due_ns: int
    order: int
    link: int
    name: str
    envelope: bytes
    frame: bytes
    swapped_in: object


@dataclass
class NaiveMiddlebox:
    """Offer datagrams, release what is due; what leaves is in `sent`."""

    case: object
    sessions: dict = field(default_factory=dict)
    attempts: dict = field(default_factory=dict)
    orders: dict = field(default_factory=dict)
    waiting: list = field(default_factory=list)
    sent: list = field(default_factory=list)
    decisions: list = field(default_factory=list)
    datagrams: dict = field(default_factory=dict)
    frames: dict = field(default_factory=dict)
    order: int = 0

    def offer(self, envelope, datagram, link, now_ns):
        """Take one datagram from a link direction."""
        self._count(self.datagrams, link, "in")
        frames = split(datagram)
        if frames is None:
            self._pass_malformed(envelope, datagram, link)
            return
        pieces, run, copies = 0, b"", []
        for name, frame in frames:
            fate, session, delay_ns = self._meet(link, name, frame, now_ns)
            if fate in (None, "duplicate"):
                run += frame
                self._count(self.frames, (link, name), "out")
                if fate:
                    copies.append((name, frame))
                swapped = [each for each in self.waiting if session and each.swapped_in == session]
                if swapped:
                    pieces += self._send(link, envelope, run)
                    run = b""
                    for waiter in sorted(swapped, key=lambda each: each.order):
                        self._leave(waiter)
                continue
            pieces += self._send(link, envelope, run)
            run = b""
            if fate != "drop":
                pieces += 1
                swapped_in = session if fate == "swap" else None
                due_ns = now_ns + delay_ns
                self.waiting.append(
                    Waiter(due_ns, self.order, link, name, envelope, frame, swapped_in)
                )
                self.order += 1
        pieces += self._send(link, envelope, run)
        for name, frame in copies:
            self._count(self.frames, (link, name), "out")
            pieces += self._send(link, envelope, frame)
        if pieces:
            self._count(self.datagrams, link, "added", pieces - 1)
        else:
            self._count(self.datagrams, link, "dropped")

    def release(self, now_ns):
        """Send all that is due."""
        for waiter in sorted(self.waiting, key=lambda each: (each.due_ns, each.order)):
            if waiter.due_ns <= now_ns:
                self._leave(waiter)

    def _leave(self, waiter):
        self.waiting.remove(waiter)
        self._count(self.frames, (waiter.link, waiter.name), "out")
        self._send(waiter.link, waiter.envelope, waiter.frame)

    def _send(self, link, envelope, frames):
        if not frames:
            return 0
        self._count(self.datagrams, link, "out")
        self.sent.append((link, envelope, frames))
        return 1

    def _count(self, table, key, column, amount=1):
        row = table.setdefault(key, {})
        row[column] = row.get(column, 0) + amount

    def _pass_malformed(self, envelope, datagram, link):
        names = ["MALFORMED"]
        rest = datagram
        while len(rest) > 32 and (frames := split_first(rest)):
            names.insert(0, "DATA")
            rest = rest[frames:]
        for name in names:
            self._count(self.frames, (link, name), "in")
            self._count(self.frames, (link, name), "out")
        self._count(self.datagrams, link, "out")
        self.sent.append((link, envelope, datagram))

    def _meet(self, link, name, frame, now_ns):
        """Fate, session and delay of one frame."""
        self._count(self.frames, (link, name), "in")
        length, _, flags, code = struct.unpack_from("<iBBH", frame)
        term_offset = session_id = stream_id = term_id = 0
        if name in ("DATA", "PAD", "HEARTBEAT", "SETUP"):
            term_offset, session_id, stream_id, term_id = struct.unpack_from("<iiii", frame, 8)
            if name == "SETUP":
                self._learn(link, frame)
                (term_id,) = struct.unpack_from("<i", frame, 24)
        elif name not in ("OTHER",) and len(frame) >= 16:
            session_id, stream_id = struct.unpack_from("<ii", frame, 8)
            if name in ("NAK", "SM"):
                term_id, term_offset = struct.unpack_from("<ii", frame, 16)
        session, position, attempt = None, -1, 0
        if name in ("DATA", "PAD"):
            session, position, attempt = self._place(
                link, session_id, stream_id, term_id, term_offset
            )
        fired = self._first_rule(link, name, stream_id, position, attempt)
        if fired is None:
            return None, session, 0
        fault = self.case.faults[fired]
        delay_ns = SWAP_PATIENCE_NS if fault.action == "swap" else fault.hold_ns
        self._count(self.frames, (link, name), PAST[fault.action])
        self.decisions.append(
            {
                "time_ns": now_ns,
                "rule": fired,
                "action": ("drop", "duplicate", "hold", "swap").index(fault.action) + 1,
                "link": link,
                "frame_type": 0x100 if name == "HEARTBEAT" else code,
                "flags": flags,
                "timing_sensitive": int(position < 0),
                "session_id": session_id,
                "stream_id": stream_id,
                "term_id": term_id,
                "term_offset": term_offset,
                "frame_length": (length + 31) // 32 * 32,
                "position": position,
                "attempt": attempt,
                "delay_ns": delay_ns,
            }
        )
        return fault.action, session, delay_ns

    def _learn(self, link, frame):
        session_id, stream_id, initial = struct.unpack_from("<iii", frame, 12)
        (term_length,) = struct.unpack_from("<i", frame, 28)
        if term_length in [1 << bits for bits in range(16, 31)]:
            facts = (initial, term_length)
            key = (link, session_id, stream_id)
            if self.sessions.get(key, (None,))[0] != facts:
                self.sessions[key] = (facts, len(self.attempts))
                self.attempts[key] = {}

    def _place(self, link, session_id, stream_id, term_id, term_offset):
        key = (link, session_id, stream_id)
        if key not in self.sessions:
            return None, -1, 0
        initial, term_length = self.sessions[key][0]
        count = (term_id - initial) % WORD
        if not 0 <= term_offset < term_length or term_offset % 32 or count >= 1 << 31:
            return None, -1, 0
        position = count * term_length + term_offset
        passed = self.attempts[key]
        passed[position] = passed.get(position, 0) + 1
        return key, position, passed[position]

    def _first_rule(self, link, name, stream_id, position, attempt):
        streams = sorted(traffic.stream_id for traffic in self.case.traffic)
        if stream_id not in streams:
            return None
        ordinal, index = streams.index(stream_id), CLASS_INDEX[name]
        place, by_order = position, 0
        if position < 0:
            key = (link, name, ordinal)
            place, by_order = self.orders.get(key, 0), 1
            self.orders[key] = place + 1
        for rule, fault in enumerate(self.case.faults):
            if LINKS[link] in fault.links and name in fault.frame_types:
                drawn = draw(self.case.seed, rule, link, index, ordinal, by_order, place, attempt)
                if drawn < fault.share_ppb * 2**62 // 10**9:
                    return rule
        return None


def split_first(rest):
    """Length of the whole DATA frame at the start of some bytes, or 0."""
    length, version, _, code = struct.unpack_from("<iBBH", rest)
    wire = (length + 31) // 32 * 32
    return wire if code == 1 and version == 0 and length >= 32 and wire <= len(rest) else 0
