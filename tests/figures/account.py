"""An account of a run of one stream, from the records of applications, middlebox and drivers.

Written independently of `reports/analysis`: it reads no capture, and the layouts of the records are
declared here again.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNICAST, GROUP, MDC = "unicast", "group", "MDC"
DROP, DUPLICATE, HOLD, SWAP, DISPLACE = 1, 2, 3, 4, 5
STATUS_MESSAGE = 3
LATE_ACTIONS = (HOLD, SWAP, DISPLACE)
_NEVER_NS = 2**62
_DECISION = struct.Struct("<qBBBBHBBiiiiiqiqii")
_DELIVERY = struct.Struct("<qii")
_OFFER = struct.Struct("<qiiq")
_TIME = struct.Struct("<q")
_SEEN = struct.Struct("<q32sIq")


@dataclass(frozen=True)
class Decision:
    """What the middlebox did to one frame."""

    time_ns: int
    frame_type: int
    requests_setup: bool
    action: int
    link: str
    position: int
    length: int
    attempt: int


@dataclass
class Reader:
    """What the application and the driver of one reader recorded."""

    host: str
    lengths: list[int]
    "Lengths of all delivered messages, in order."
    deliveries: list[tuple[int, int]]
    "End position of each delivered message in the stream, and when it was delivered."
    checksums: list[int]
    "CRC-32 of each delivered message."
    crc32: int
    "CRC-32 over all delivered messages."
    frames: dict[int, tuple[int, int, int]]
    "By position of a frame in the image: its length, its type and when it was read."
    counters: dict[str, int]
    decisions: list[Decision]
    "What the middlebox did to frames with a position on the link to this reader."
    lost_feedback: int
    """Number of dropped status messages and NAKs of this reader. A request for a SETUP does not
    count: a reader of a multi-destination-cast sends it before it knows any stream."""
    lost_statuses: int
    "Those of them that are status messages."
    forward_ledger: dict[str, Any]
    "The ledger of the link to this reader."
    feedback_ledger: dict[str, Any]
    "The ledger of the link from this reader."

    @property
    def dropped(self) -> list[Decision]:
        return [each for each in self.decisions if each.action == DROP]

    @property
    def lost_ranges(self) -> dict[int, int]:
        """Return the positions and lengths of frames whose first transmission was dropped."""
        return {each.position: each.length for each in self.dropped if each.attempt == 1}

    @property
    def unseen_bytes(self) -> int:
        """The most bytes whose loss this reader may not detect. A retransmit that another reader
        requested may arrive before any later frame: then it is read before the next frame behind it
        that was not lost, because lost frames reveal no loss.
        """
        lost = self.lost_ranges
        unseen, revealed_ns = 0, _NEVER_NS
        for position in sorted({*lost, *self.frames}, reverse=True):
            read_ns = self.frames[position][2] if position in self.frames else _NEVER_NS
            if position not in lost:
                revealed_ns = read_ns
            elif read_ns < revealed_ns:
                unseen += lost[position]
        return unseen

    @property
    def copies(self) -> int:
        return sum(each.action == DUPLICATE for each in self.decisions)

    @property
    def refused_datagrams(self) -> int:
        """Number of datagrams and heartbeats that the receiver refused, because they were outside
        of its window.
        """
        return self.counters["Flow control over runs"] + self.counters["Flow control under runs"]

    @property
    def displaced(self) -> int:
        return sum(each.action in LATE_ACTIONS for each in self.decisions)

    def forward_frames(self, direction: str, *types: str) -> int:
        """Return how many frames of these types, or of all, went "in" to or "out" of the link to
        the reader."""
        frames = self.forward_ledger["frames"]
        return sum(frames[each][direction] for each in types or frames if each in frames)

    def feedback_frames(self, direction: str, *types: str) -> int:
        """Return how many frames of these types, or of all, went "in" to or "out" of the link from
        the reader."""
        frames = self.feedback_ledger["frames"]
        return sum(frames[each][direction] for each in types or frames if each in frames)


@dataclass
class Account:
    """The account of a run of one stream."""

    kind: str
    reliable: bool
    sender: str
    term_length: int
    mtu: int
    offered_lengths: list[int]
    due_ns: dict[int, int]
    "When each message was first offered, by its end position."
    end_position: int
    counters: dict[str, int]
    delay_ns: int
    readers: dict[str, Reader] = field(default_factory=dict)


def read_account(run: Path) -> Account:
    """Read the account of a run from its folder."""
    case = json.loads((run / "case.json").read_text())
    (stream,) = case["traffic"]
    sender, name = stream["from_host"], stream["id"]
    if "control-mode=" in stream["channel"]:
        kind = MDC
    else:
        kind = GROUP if "endpoint=224." in stream["channel"] else UNICAST
    published = run / "hosts" / sender
    offers = _records(published / f"publisher-{name}.bin", _OFFER)
    offered = _records(published / f"publisher-{name}.times.bin", _TIME)
    links = json.loads((run / "ledger.json").read_text())["links"]
    account = Account(
        kind=kind,
        reliable=stream["reliable"],
        sender=sender,
        term_length=stream["term_length"],
        mtu=stream["mtu"],
        offered_lengths=[each[1] for each in offers],
        due_ns={offer[3]: at[0] for offer, at in zip(offers, offered, strict=True)},
        end_position=offers[-1][3],
        counters=_counters(run / "hosts" / sender),
        delay_ns=_delay_ns(case),
    )
    decisions = _decisions(run / "decisions.bin", list(links))
    for host in stream["to_hosts"] or [stream["to_host"]]:
        account.readers[host] = _reader(run, host, sender, name, decisions, links)
    return account


def _reader(
    run: Path,
    host: str,
    sender: str,
    name: str,
    decisions: list[Decision],
    links: dict[str, dict[str, Any]],
) -> Reader:
    folder = run / "hosts" / host
    index = _records(folder / f"subscriber-{name}.index.bin", _DELIVERY)
    times = _records(folder / f"subscriber-{name}.times.bin", _TIME)
    content = (folder / f"subscriber-{name}.messages.bin").read_bytes()
    lengths = [each[1] for each in index]
    checksums, at = [], 0
    for length in lengths:
        checksums.append(zlib.crc32(content[at : at + length]))
        at += length
    frames = {}
    for position, header, _, time_ns in _records(folder / f"subscriber-{name}.frames.bin", _SEEN):
        length, kind = struct.unpack_from("<i", header)[0], struct.unpack_from("<H", header, 6)[0]
        frames[position] = (length + 31) // 32 * 32, kind, time_ns
    forward, feedback = f"{sender}->{host}", f"{host}->{sender}"
    lost_feedback = [
        each
        for each in decisions
        if each.link == feedback and each.action == DROP and not each.requests_setup
    ]
    return Reader(
        host=host,
        lengths=lengths,
        deliveries=[(each[0], at[0]) for each, at in zip(index, times, strict=True)],
        checksums=checksums,
        crc32=zlib.crc32(content),
        frames=frames,
        counters=_counters(folder),
        decisions=[each for each in decisions if each.link == forward and each.position >= 0],
        lost_feedback=len(lost_feedback),
        lost_statuses=sum(each.frame_type == STATUS_MESSAGE for each in lost_feedback),
        forward_ledger=links[forward],
        feedback_ledger=links[feedback],
    )


def _records(path: Path, layout: struct.Struct) -> list[tuple[Any, ...]]:
    return list(layout.iter_unpack(path.read_bytes()))


def _decisions(path: Path, links: list[str]) -> list[Decision]:
    if not path.exists():
        return []
    return [
        Decision(
            row[0], row[5], row[6] & 0x80 > 0, row[3], links[row[4]], row[13], row[12], row[14]
        )
        for row in _records(path, _DECISION)
    ]


def _counters(folder: Path) -> dict[str, int]:
    """Return the last values of a driver's system counters by label."""
    found = json.loads((folder / "counters.json").read_text())["counters"]
    return {each["label"]: each["final_value"] for each in found if each["type_id"] == 0}


def _delay_ns(case: dict[str, Any]) -> int:
    """Return the delay of all links, which is the same everywhere."""
    return max((each["delay_ns"] for each in case["impairments"]), default=0)
