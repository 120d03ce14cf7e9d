"""Reference implementation of the middlebox: dictionaries, lists and bytes instead of arrays."""

import struct
from dataclasses import dataclass, field

from tests.naive.fault_rules import ACTIONS, WORD, NaiveFrame, NaiveRules

SWAP_PATIENCE_NS = 1_000_000
PAST = {"drop": "dropped", "duplicate": "duplicated", "hold": "held"}
PAST |= {"swap": "swapped", "displace": "swapped"}
TYPE_NAMES = {0: "PAD", 1: "DATA", 2: "NAK", 3: "SM", 4: "ERR", 5: "SETUP", 6: "RTTM", 7: "RES"}
TYPE_NAMES[11] = "RSP_SETUP"
SHORTEST = {"PAD": 32, "DATA": 32, "NAK": 28, "SM": 36, "ERR": 40, "SETUP": 40, "RTTM": 40}
SHORTEST |= {"RES": 8, "RSP_SETUP": 20}


def split(datagram):
    """Return frames as (class name, bytes), or None if some bytes are no complete frame."""
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
    session: object
    ending: str
    value: int
    place: int
    end: int


@dataclass
class NaiveMiddlebox:
    """The middlebox: takes datagrams and releases due ones; `sent` holds the output."""

    case: object
    sessions: dict = field(default_factory=dict)
    attempts: dict = field(default_factory=dict)
    waiting: list = field(default_factory=list)
    sent: list = field(default_factory=list)
    decisions: list = field(default_factory=list)
    datagrams: dict = field(default_factory=dict)
    frames: dict = field(default_factory=dict)
    order: int = 0
    replayed: object = None

    def __post_init__(self):
        self.rules = NaiveRules(self.case, self.replayed)

    def offer(self, envelope, datagram, link, now_ns):
        """Process one datagram of a link direction."""
        self._count(self.datagrams, link, "in")
        frames = split(datagram)
        if frames is None:
            self._pass_malformed(envelope, datagram, link)
            return
        pieces, run, copies = 0, b"", []
        for name, raw in frames:
            frame = self._parse(link, name, raw, now_ns)
            before = list(self.waiting)
            fault = self.rules.match(frame)
            detail = 0 if fault is None else self.rules.detail(fault, frame)
            if fault is not None:
                self._record(fault, frame, detail)
            action = None if fault is None else fault.action
            if action in ("hold", "swap", "displace"):
                self._keep(frame, fault, envelope)
                pieces += 1
            elif action == "duplicate" and fault.hold_ns:
                for _ in range(fault.copies):
                    self._keep(frame, fault, envelope)
                pieces += fault.copies
            elif action == "duplicate":
                copies += [(name, raw)] * fault.copies
            freed = self._freed(frame, action, before)
            if action in (None, "duplicate", "inject"):
                run += raw
                self._count(self.frames, (link, name), "out")
                if freed or action == "inject":
                    pieces += self._send(link, envelope, run)
                    run = b""
                for forged in self.rules.forge(fault, frame) if action == "inject" else []:
                    pieces += self._send(link, envelope, forged)
                    self._count_made(link, forged, "forged")
            else:
                pieces += self._send(link, envelope, run)
                run = b""
                if action in ("corrupt", "truncate", "readdress"):
                    pieces += 1
                    self._send_damaged(fault, frame, envelope, detail)
            for waiter in freed:
                self._send_waiter(waiter)
        pieces += self._send(link, envelope, run)
        for name, raw in copies:
            self._count(self.frames, (link, name), "out")
            pieces += self._send(link, envelope, raw)
        if pieces:
            self._count(self.datagrams, link, "added", pieces - 1)
        else:
            self._count(self.datagrams, link, "dropped")

    def release(self, now_ns):
        """Send all that is due."""
        for waiter in sorted(self.waiting, key=lambda each: (each.due_ns, each.order)):
            if waiter.due_ns <= now_ns:
                self._send_waiter(waiter)

    def _keep(self, frame, fault, envelope):
        ending, value = fault.ending, fault.ending_value
        delay_ns = fault.hold_ns
        if fault.action == "swap":
            ending, value, delay_ns = "frames", 1, SWAP_PATIENCE_NS
        self.waiting.append(
            Waiter(
                frame.now_ns + delay_ns,
                self.order,
                frame.link,
                frame.name,
                envelope,
                frame.raw,
                frame.session,
                ending,
                value,
                frame.place,
                frame.place + frame.extent,
            )
        )
        self.order += 1

    def _freed(self, frame, action, before):
        """Return the held frames that the event of this frame releases, in order."""
        freed = []
        for waiter in before:
            if frame.session is None or waiter.session != frame.session:
                continue
            if frame.attempt:
                if action in ("drop", "hold", "swap", "displace"):
                    continue
                if waiter.ending == "frames":
                    waiter.value -= 1
                    is_free = waiter.value == 0
                elif waiter.ending == "advance":
                    is_free = frame.place + frame.extent >= waiter.place + waiter.value
                else:
                    is_free = waiter.ending == "repeated" and frame.place == waiter.place
            else:
                is_sm = frame.name == "SM" and frame.place >= 0
                is_free = is_sm and waiter.ending == "consumed" and frame.place >= waiter.end
            if is_free:
                freed.append(waiter)
        return sorted(freed, key=lambda each: each.order)

    def _send_waiter(self, waiter):
        self.waiting.remove(waiter)
        self._count(self.frames, (waiter.link, waiter.name), "out")
        self._send(waiter.link, waiter.envelope, waiter.frame)

    def _send(self, link, envelope, frames):
        if not frames:
            return 0
        return self._send_always(link, envelope, frames)

    def _send_always(self, link, envelope, frames):
        self._count(self.datagrams, link, "out")
        self.sent.append((link, envelope, frames))
        return 1

    def _send_damaged(self, fault, frame, envelope, detail):
        raw = bytearray(frame.raw)
        if fault.action == "readdress":
            self._count(self.frames, (frame.link, frame.name), "out")
        else:
            if fault.action == "truncate":
                raw = raw[:detail]
            for bit in range(detail, detail + fault.bits) if fault.action == "corrupt" else ():
                if bit < 8 * len(raw):
                    raw[bit // 8] ^= 1 << bit % 8
            self._count(self.frames, (frame.link, frame.name), "damaged_from")
            self._count_made(frame.link, bytes(raw), "damaged_into")
        self._send_always(frame.link, envelope, bytes(raw))

    def _count_made(self, link, datagram, column):
        for name in self._names(datagram):
            self._count(self.frames, (link, name), column)
            self._count(self.frames, (link, name), "out")

    def _count(self, table, key, column, amount=1):
        row = table.setdefault(key, {})
        row[column] = row.get(column, 0) + amount

    def _names(self, datagram):
        frames = split(datagram)
        if frames is not None:
            return [name for name, _ in frames]
        names = ["MALFORMED"]
        while len(datagram) > 32 and (length := split_first(datagram)):
            names.insert(0, "DATA")
            datagram = datagram[length:]
        return names

    def _pass_malformed(self, envelope, datagram, link):
        for name in self._names(datagram):
            self._count(self.frames, (link, name), "in")
            self._count(self.frames, (link, name), "out")
        self._send_always(link, envelope, datagram)

    def _record(self, fault, frame, detail):
        action = ACTIONS.index(fault.action) + 1
        past = PAST.get(fault.action)
        if past:
            amount = fault.copies if fault.action == "duplicate" else 1
            self._count(self.frames, (frame.link, frame.name), past, amount)
        self.decisions.append(
            {
                "time_ns": frame.now_ns,
                "rule": self.case.faults.index(fault),
                "session": frame.number if frame.attempt else 0,
                "action": action,
                "link": frame.link,
                "frame_type": frame.class_code,
                "flags": frame.flags,
                "timing_sensitive": int(not frame.attempt or fault.when is not None),
                "session_id": frame.session_id,
                "stream_id": frame.stream_id,
                "term_id": frame.term_id,
                "term_offset": frame.term_offset,
                "frame_length": (frame.frame_length + 31) // 32 * 32,
                "position": frame.place if frame.attempt else -1,
                "attempt": frame.attempt,
                "delay_ns": SWAP_PATIENCE_NS if fault.action == "swap" else fault.hold_ns,
                "detail": detail,
                "order": frame.order,
            }
        )

    def _parse(self, link, name, raw, now_ns):
        """Return a frame with its header fields and its position."""
        self._count(self.frames, (link, name), "in")
        frame = NaiveFrame(link, name, raw, now_ns)
        if name == "SETUP" and self.rules.is_known(frame.stream_id):
            self._add_session(link, raw)
        key = (link, frame.session_id, frame.stream_id)
        back = (link ^ 1, frame.session_id, frame.stream_id)
        if not self.rules.is_known(frame.stream_id):
            self._count(self.frames, (link, name), "other_streams")
            return frame
        if key in self.sessions:
            frame.session = key
        elif back in self.sessions and name not in ("DATA", "PAD", "HEARTBEAT", "SETUP"):
            frame.session = back
        if frame.session and name in ("DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK"):
            (initial, term_length), frame.number = self.sessions[frame.session]
            frame.initial, frame.term_length = initial, term_length
            count = (frame.term_id - initial) % WORD
            offset = frame.term_offset
            if 0 <= offset < term_length and offset % 32 == 0 and count < 1 << 31:
                frame.place = count * term_length + offset
        elif frame.session:
            (frame.initial, frame.term_length), frame.number = self.sessions[frame.session]
        if name in ("DATA", "PAD") and frame.place >= 0:
            passed = self.attempts[frame.session]
            frame.attempt = passed[frame.place] = passed.get(frame.place, 0) + 1
        return frame

    def _add_session(self, link, frame):
        session_id, stream_id, initial = struct.unpack_from("<iii", frame, 12)
        (term_length,) = struct.unpack_from("<i", frame, 28)
        if term_length in [1 << bits for bits in range(16, 31)]:
            facts = (initial, term_length)
            key = (link, session_id, stream_id)
            if self.sessions.get(key, (None,))[0] != facts:
                number = 1 + sum(
                    (each[0] // 2, each[2]) == (link // 2, stream_id) for each in self.sessions
                )
                if key in self.sessions:
                    number = self.sessions[key][1]
                self.sessions[key] = (facts, number)
                self.attempts[key] = {}


def split_first(rest):
    """Return the length of the complete DATA frame at the start of some bytes, or 0."""
    length, version, _, code = struct.unpack_from("<iBBH", rest)
    wire = (length + 31) // 32 * 32
    return wire if code == 1 and version == 0 and length >= 32 and wire <= len(rest) else 0
