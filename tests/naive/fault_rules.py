"""Reference implementation of fault rules: which rule matches a frame, and its action."""

import struct
from dataclasses import dataclass
from itertools import count

from windtunnel.harness.scenario.resolved.fault_case import CountCase

WORD = 1 << 32
BILLION = 10**9
ACTIONS = ("drop", "duplicate", "hold", "swap", "displace")
ACTIONS += ("corrupt", "truncate", "inject", "readdress")
CLASS_INDEX = {
    name: index
    for index, name in enumerate(
        [
            *("PAD", "DATA", "NAK", "SM", "ERR", "SETUP", "RTTM", "RES"),
            *("RSP_SETUP", "HEARTBEAT", "MALFORMED", "OTHER"),
        ]
    )
}

FIELDS = {"frame-length": (0, 4), "version": (4, 1), "flags": (5, 1), "type": (6, 2)}
STREAM_FIELDS = {"term-offset": (8, 4), "session-id": (12, 4), "stream-id": (16, 4)}
FIELDS_OF = {
    **dict.fromkeys(("DATA", "PAD", "HEARTBEAT", "SETUP"), FIELDS | STREAM_FIELDS),
    **{
        name: FIELDS | {"session-id": (8, 4), "stream-id": (12, 4)}
        for name in ("SM", "NAK", "RTTM", "ERR", "RSP_SETUP")
    },
}
for each in ("DATA", "PAD", "HEARTBEAT"):
    FIELDS_OF[each] = FIELDS_OF[each] | {"term-id": (20, 4), "reserved": (24, 8)}
FIELDS_OF["SETUP"] = FIELDS_OF["SETUP"] | {"term-id": (24, 4)}
for each in ("SM", "NAK"):
    FIELDS_OF[each] = FIELDS_OF[each] | {"term-id": (16, 4), "term-offset": (20, 4)}


def philox(counter, key):
    """Return four words from a counter of four words and a key of two, as in the Philox paper."""
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
    """Return two numbers below 2**62 for one frame and one rule."""
    pair, way = divmod(link, 2)
    what = rule << 24 | ordinal << 16 | class_index << 8 | pair << 2 | by_order << 1 | way
    words = philox((place % WORD, place // WORD, attempt, what), (seed % WORD, seed // WORD))
    return (words[0] * WORD + words[1]) // 4, (words[2] * WORD + words[3]) // 4


@dataclass
class NaiveFrame:
    link: int
    name: str
    raw: bytes
    now_ns: int
    session: object = None
    number: int = 0
    initial: int = 0
    term_length: int = 0
    place: int = -1
    attempt: int = 0
    order: int = 0
    replayed_detail: object = None

    def __post_init__(self):
        self.frame_length, _, self.flags, self.code = struct.unpack_from("<iBBH", self.raw)
        self.term_offset = self.session_id = self.stream_id = self.term_id = self.receiver_id = 0
        if self.name in ("DATA", "PAD", "HEARTBEAT", "SETUP"):
            fields = struct.unpack_from("<iiii", self.raw, 8)
            self.term_offset, self.session_id, self.stream_id, self.term_id = fields
            if self.name == "SETUP":
                (self.term_id,) = struct.unpack_from("<i", self.raw, 24)
        elif self.name != "OTHER" and len(self.raw) >= 16:
            self.session_id, self.stream_id = struct.unpack_from("<ii", self.raw, 8)
            if self.name in ("NAK", "SM"):
                self.term_id, self.term_offset = struct.unpack_from("<ii", self.raw, 16)
            if self.name == "SM":
                (self.receiver_id,) = struct.unpack_from("<q", self.raw, 28)

    @property
    def class_code(self):
        return 0x100 if self.name == "HEARTBEAT" else self.code

    @property
    def extent(self):
        if self.name in ("DATA", "PAD"):
            return (self.frame_length + 31) // 32 * 32
        return max(1, struct.unpack_from("<i", self.raw, 24)[0]) if self.name == "NAK" else 1


class NaiveRules:
    """All rules of a case with their state, or the decisions to replay."""

    def __init__(self, case, replayed=None):
        self.case = case
        self.replayed = None if replayed is None else [dict(each) for each in replayed]
        self.streams = sorted(traffic.stream_id for traffic in case.traffic)
        self.orders, self.chains, self.reached, self.activated_ns = {}, {}, {}, {}
        self.tallies = {fault.id: [0, 0] for fault in case.faults}
        self.first_data_ns = None

    def is_known(self, stream_id):
        return stream_id in self.streams

    def match(self, frame):
        """Return the fault that matches a frame, or None."""
        is_to_anyone = (frame.name, frame.session_id, frame.stream_id) == ("SM", 0, 0)
        if self.is_known(frame.stream_id):
            ordinal = self.streams.index(frame.stream_id)
        elif is_to_anyone:
            ordinal = len(self.streams)
        else:
            return None
        if frame.attempt and self.first_data_ns is None:
            self.first_data_ns = frame.now_ns
        order = 0
        if not frame.attempt:
            key = (frame.link, frame.name, ordinal)
            order = self.orders[key] = self.orders.get(key, 0) + 1
        frame.order = order
        if self.replayed is not None:
            return self._replayed_fault(frame)
        matched = None
        for rule, fault in enumerate(self.case.faults):
            if self._is_in_scope(rule, fault, frame, ordinal, order):
                self.tallies[fault.id][0] += 1
                if self._decides(rule, fault, frame, ordinal, order):
                    self.tallies[fault.id][1] += 1
                    matched = fault
                    break
        if frame.attempt:
            end = frame.place + frame.extent
            self.reached[ordinal] = max(self.reached.get(ordinal, 0), end)
            for rule, fault in enumerate(self.case.faults):
                point = fault.when and fault.when.reached
                if point and point.ordinal == ordinal and point.position <= end:
                    self.activated_ns.setdefault(rule, frame.now_ns)
        return matched

    def _replayed_fault(self, frame):
        """Return the fault that matched the same frame in the replayed run, or None."""
        for entry in self.replayed:
            same = entry["link"] == frame.link and entry["stream_id"] == frame.stream_id
            same = same and entry["frame_type"] == frame.class_code
            if frame.attempt:
                name = (frame.number, frame.place, frame.attempt)
                same = same and (entry["session"], entry["position"], entry["attempt"]) == name
            else:
                same = same and entry["position"] == -1 and entry["order"] == frame.order
            if same:
                self.replayed.remove(entry)
                fault = self.case.faults[entry["rule"]]
                self.tallies[fault.id][0] += 1
                self.tallies[fault.id][1] += 1
                frame.replayed_detail = entry["detail"]
                return fault
        return None

    def _is_in_scope(self, rule, fault, frame, ordinal, order):
        links = self.case.link_names
        if links[frame.link] not in fault.links or frame.name not in fault.frame_types:
            return False
        if fault.ordinals and ordinal not in fault.ordinals:
            return False
        if fault.session and frame.number != fault.session:
            return False
        if fault.action == "truncate" and len(frame.raw) <= fault.cut_to_bytes:
            return False
        if fault.field == "payload" and len(frame.raw) <= 32:
            return False
        if frame.flags & fault.flags_mask != fault.flags_value:
            return False
        if frame.name in ("DATA", "PAD") and not frame.attempt and fault.attempt != CountCase():
            return False
        counted, which = (fault.attempt, frame.attempt) if frame.attempt else (fault.order, order)
        if which not in range(counted.first, counted.last + 1, counted.every):
            return False
        if not self._is_in_place(fault.place, frame):
            return False
        return fault.when is None or self._is_active(rule, fault.when, frame.now_ns)

    def _is_in_place(self, place, frame):
        if place.kind == "anywhere":
            return True
        if frame.place < 0:
            return False
        begin, end = frame.place, frame.place + frame.extent
        if place.kind == "term-start":
            return begin % frame.term_length == 0
        if place.kind == "term-end":
            return end % frame.term_length == 0
        if place.kind == "ranges":
            return any(begin < at + length and at < end for at, length in place.ranges)
        for turn in count():
            start = place.start + turn * place.every
            if begin < start + place.length and start < end:
                return True
            if start >= end or not place.every:
                return False
        raise AssertionError("not reached")

    def _is_active(self, rule, when, now_ns):
        since_ns = self.first_data_ns
        if when.reached is not None:
            since_ns = self.activated_ns.get(rule)
        until = when.until
        if until is not None and self.reached.get(until.ordinal, 0) >= until.position:
            return False
        if since_ns is None or now_ns < since_ns + when.after_ns:
            return False
        passed_ns = now_ns - since_ns - when.after_ns
        if when.every_ns:
            passed_ns %= when.every_ns
        return not when.for_ns or passed_ns < when.for_ns

    def draw_link(self, rule, frame):
        """Return the first link of a rule that acts before all its links, or else the frame's."""
        fault = self.case.faults[rule]
        first = min(self.case.link_names.index(name) for name in fault.links)
        return first if fault.is_shared else frame.link

    def draws(self, rule, frame, ordinal, place):
        return draw(
            self.case.seed,
            rule,
            self.draw_link(rule, frame),
            CLASS_INDEX[frame.name],
            ordinal,
            0 if frame.attempt else 1,
            place,
            frame.attempt,
        )

    def _decides(self, rule, fault, frame, ordinal, order):
        place = frame.place if frame.attempt else order - 1
        first, second = self.draws(rule, frame, ordinal, place)
        below = [first < part * 2**62 // BILLION for part in fault.chance_ppb]
        if fault.chance == "independent" or frame.attempt > 1:
            return first < fault.share_ppb * 2**62 // BILLION
        key = (rule, frame.session if frame.attempt else (frame.link, frame.name, ordinal))
        if fault.chance == "two states":
            was_bad = self.chains.get(key, False)
            is_bad = self.chains[key] = not below[1] if was_bad else below[0]
            return second < fault.chance_ppb[2 if is_bad else 3] * 2**62 // BILLION
        p13, p31, p32, p23, p14 = (part * 2**62 // BILLION for part in fault.chance_ppb)
        was = self.chains.get(key, 1)
        if was == 1:
            now = 4 if first < p14 else 3 if first < p14 + p13 else 1
        elif was == 2:
            now = 3 if first < p23 else 2
        elif was == 3:
            now = 1 if first < p31 else 2 if first < p31 + p32 else 3
        else:
            now = 1
        self.chains[key] = now
        return now in (3, 4)

    def detail(self, fault, frame):
        """Return the remaining bytes, or the first flipped bit."""
        if frame.replayed_detail is not None:
            longest = len(frame.raw) if fault.action == "truncate" else frame.replayed_detail
            return min(frame.replayed_detail, longest)
        if fault.action == "truncate":
            return fault.cut_to_bytes
        if fault.action != "corrupt":
            return 0
        if fault.field == "payload":
            begin, bits = 256, 8 * (frame.frame_length - 32)
        else:
            offset, width = FIELDS_OF[frame.name][fault.field]
            begin, bits = 8 * offset, 8 * width
        place = frame.place
        if not frame.attempt:
            place = sum(
                order
                for (link, name, _), order in self.orders.items()
                if (link, name) == (frame.link, frame.name)
            )
        rule = self.case.faults.index(fault)
        _, drawn = draw(
            self.case.seed, rule, self.draw_link(rule, frame), CLASS_INDEX[frame.name], 0, 1,
            place, frame.attempt,
        )  # fmt: skip
        return begin + drawn % max(1, bits - fault.bits + 1)

    def forge(self, fault, frame):
        """Return the forged frames that follow a frame."""
        return [self._forged(each, frame) for each in fault.forged]

    def _forged(self, forged, frame):
        other = 0x2B5D11F7
        session_id = frame.session_id + (0 if forged.is_same_session else other)
        stream_id = frame.stream_id + (0 if forged.is_same_stream else other)
        receiver_id = frame.receiver_id + (0 if forged.is_same_receiver else other)
        term_id, offset = frame.term_id, frame.term_offset
        if frame.place >= 0:
            terms = frame.place // frame.term_length
            if forged.term_end is None:
                terms, offset = divmod(frame.place + forged.advance, frame.term_length)
            elif forged.term_end >= 0:
                offset = frame.term_length + forged.term_end
            else:
                end = (terms + 1) * frame.term_length + forged.term_end
                terms, offset = divmod(end, frame.term_length)
            term_id = frame.initial + terms
        term_id, offset = wrapped(term_id + forged.term), wrapped(offset + forged.shift)
        session_id, stream_id = wrapped(session_id), wrapped(stream_id)
        codes = {"PAD": 0, "DATA": 1, "HEARTBEAT": 1, "NAK": 2, "SM": 3, "ERR": 4, "SETUP": 5}
        code = {**codes, "RTTM": 6}[forged.type]
        places = {"DATA", "PAD", "HEARTBEAT"}
        body = b""
        if forged.type in places:
            body = struct.pack("<iiiiq", offset, session_id, stream_id, term_id, 0)
            body += b"\xfd" * forged.payload_length
        elif forged.type == "SETUP":
            body = struct.pack("<iiii", offset, session_id, stream_id, frame.initial)
            mtu = max(traffic.mtu for traffic in self.case.traffic)
            body += struct.pack("<iiii", term_id, frame.term_length, mtu, 0)
        elif forged.type == "SM":
            body = struct.pack("<iiii", session_id, stream_id, term_id, offset)
            body += struct.pack("<iq", forged.window_bytes, receiver_id)
        elif forged.type == "NAK":
            missing = 32 if forged.length is None else forged.length
            body = struct.pack("<iiiii", session_id, stream_id, term_id, offset, missing)
        elif forged.type == "RTTM":
            body = struct.pack("<iiqqq", session_id, stream_id, 0, 0, receiver_id)
        else:
            body = struct.pack("<iiqqii", session_id, stream_id, receiver_id, 0, 0, 0)
        length = 8 + len(body)
        if forged.type == "HEARTBEAT":
            length = 0
        if forged.length is not None and forged.type != "NAK":
            length = forged.length
        flags = 0xC0 if forged.type in places else 0
        if forged.flags is not None:
            flags = forged.flags
        raw = struct.pack("<iBBH", length, forged.version, flags, code) + body
        return raw + bytes(-len(raw) % 32 if forged.type == "DATA" else 0)


def wrapped(value):
    """Return a number wrapped to signed 32 bits."""
    return (value + 2**31) % WORD - 2**31
