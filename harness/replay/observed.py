"""Converts a capture's streams to a scenario with the same lost, late and duplicate frames.

    streams   --> traffic: stream, term length, MTU, initial term id, start position, length
    outcomes  --> faults:  drop, hold or displace, duplicate, by position and attempt
    NAKs      --> whether the stream is reliable
    path      --> pace, receiver window, and delay of the link

Message lengths are not part of the protocol. If all messages in the capture have the same length,
so do the scenario's messages. Otherwise their lengths are random, from the shortest to the longest
in the capture. Frame boundaries then differ from the capture's, and a rule for a position range
applies to all frames that overlap it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import DATA, NAK
from windtunnel.harness.replay.frame_outcome import COPY, DROP, LATE, FrameOutcome
from windtunnel.harness.replay.observed_path import ObservedPath
from windtunnel.harness.replay.rules import Document, SelectedFrame, rules_for
from windtunnel.harness.replay.sightings import BEGIN, END, Stream
from windtunnel.harness.scenario.schema.act import DELAY_NS_MAX
from windtunnel.harness.scenario.schema.channel import RECEIVE_BUFFER_BYTES
from windtunnel.harness.scenario.schema.model import FAULTS_MAX
from windtunnel.harness.scenario.schema.units import (
    BILLION,
    format_byte_rate,
    format_bytes,
    format_duration,
)
from windtunnel.harness.scenario.validation.traffic_validation import longest_message

HOLD_FROM_NS = 1_000_000
"""Shorter delays are expressed as the number of frames that overtake the frame, not as a time."""
DISPLACED_MAX = 4096
FIRST_PORT = 24_325
BUDGET_MIN_NS = 120 * BILLION
HOSTS = ("a", "b")
DIRECTIONS = (HOSTS, HOSTS[::-1])
RELIABLE = ("delivered_once", "positions_covered", "rcv_pos_reaches_end")
UNRELIABLE = ("positions_covered", "pad_only_where_lost")


@dataclass(frozen=True)
class ObservedStream:
    """A captured stream, and the outcomes (lost, late or duplicated) of its frames."""

    stream: Stream
    outcomes: Sequence[FrameOutcome]
    is_followed: bool
    """Whether the outcomes were determined from two captures. Otherwise they are inferred from
    one.
    """

    left_out: int = 0
    """Number of outcomes that a scenario cannot reproduce."""

    path: ObservedPath = field(default_factory=ObservedPath)
    """The pace, window and round trip of the stream."""

    @property
    def is_reliable(self) -> bool:
        """Whether the receiver sent NAKs. A stream without losses also counts as reliable."""
        is_asking = bool((self.stream.feedback["frame_type"] == NAK).any())
        return is_asking or not any(each.what == DROP for each in self.outcomes)


def document_of(seen: Sequence[ObservedStream], name: str, about: str) -> Document:
    """Build a scenario document from captured streams. The first stream's sender becomes host a."""
    sender = seen[0].stream.source
    traffic, faults = [], []
    ids = _stream_ids(seen)
    for index, each in enumerate(seen):
        link = 0 if each.stream.source == sender else 1
        traffic.append(_traffic(each, ids[index], FIRST_PORT + index, link))
        faults.append((ids[index], link, each.outcomes))
    rules = _rules(faults)
    document: Document = {
        "schema": "windtunnel/1",
        "name": name,
        "about": about,
        "seeds": {"root": 1},
        "fidelity": ["netns", "compose", "sim"],
        "network": {"hosts": list(HOSTS), "link": _link(seen)},
        "traffic": traffic,
        "faults": rules,
        "expect": _expect(seen, traffic),
        "budget": {"wall": format_duration(_budget_ns(seen))},
    }
    if not rules:
        del document["faults"]
    return document


def _link(seen: Sequence[ObservedStream]) -> Document:
    """Return the link's table. Its delay is that of the stream with the longest round trip."""
    link: Document = {"between": list(HOSTS), "backend": "relay"}
    delay_ns = max(each.path.delay_ns for each in seen)
    if delay_ns:
        link["impairments"] = {"both": {"delay": format_duration(delay_ns)}}
    return link


def _budget_ns(seen: Sequence[ObservedStream]) -> int:
    """Return the time budget: twice the time of the longest stream, and at least two minutes."""
    longest_s = -(-max(each.path.lasts_ns for each in seen) // BILLION)
    return max(BUDGET_MIN_NS, 2 * longest_s * BILLION)


def _window(path: ObservedPath, term_length: int) -> str:
    """Return the channel parameters of a stream's receiver window."""
    window = min(path.window_bytes, term_length // 2)
    if not window:
        return ""
    buffer = f"|so-rcvbuf={window}" if window > RECEIVE_BUFFER_BYTES else ""
    return f"|rcv-wnd={window}{buffer}"


def _stream_ids(seen: Sequence[ObservedStream]) -> list[int]:
    """Return a unique stream id for each stream. Additional sessions with the same stream id get
    the next free ids.
    """
    found: list[int] = []
    for each in seen:
        stream_id = each.stream.stream_id
        while stream_id in found:
            stream_id = stream_id + 1 if stream_id < (1 << 31) - 1 else -(1 << 31)
        found.append(stream_id)
    return found


def _traffic(seen: ObservedStream, stream_id: int, port: int, link: int) -> Document:
    stream = seen.stream
    sender, receiver = DIRECTIONS[link]
    begin = int(stream.transmissions["position"].min())
    begin -= begin % 32
    term_id = (stream.initial_term_id + begin // stream.term_length + (1 << 31)) % (1 << 32)
    lengths = message_lengths(stream)
    most = longest_message(stream.term_length)
    longest = min(most, int(lengths.max()))
    # The last message contains the remaining bytes, so its length is not representative.
    shortest = longest if have_equal_lengths(stream) else min(most, int(lengths.min()))
    where = f"aeron:udp?endpoint=${{{receiver}}}:{port}"
    reliable = "" if seen.is_reliable else "|reliable=false"
    rate = seen.path.bytes_per_s
    pace = {"pace": {"rate": format_byte_rate(rate)}} if rate else {}
    return {
        "id": f"seen-{port - FIRST_PORT + 1}",
        "stream": stream_id,
        "from": sender,
        "to": receiver,
        "publication": "exclusive",
        "channel": (
            f"{where}|mtu={stream.mtu}|term-length={stream.term_length}"
            f"|init-term-id={stream.initial_term_id}|term-id={term_id - (1 << 31)}"
            f"|term-offset={begin % stream.term_length}"
        ),
        "receive": f"{where}{_window(seen.path, stream.term_length)}{reliable}",
        "content": {
            "bytes": format_bytes(int(lengths.sum())),
            "message": {"from": format_bytes(shortest), "to": format_bytes(longest)},
            **pace,
        },
    }


def message_lengths(stream: Stream) -> NDArray[np.int64]:
    """Return the lengths of a captured stream's messages, in order. For a stream without messages,
    return [1], so that the result is never empty.
    """
    frames = stream.transmissions[stream.transmissions["frame_type"] == DATA]
    _, first = np.unique(frames["position"], return_index=True)
    frames = frames[first]
    if not len(frames):
        return np.array([1], dtype=np.int64)
    begins = np.flatnonzero(frames["flags"] & BEGIN)
    starts = np.unique(np.concatenate([[0], begins])).astype(np.int64)
    found: NDArray[np.int64] = np.add.reduceat(frames["payload"], starts)
    found = found[found > 0]
    return found if len(found) else np.array([1], dtype=np.int64)


def have_equal_lengths(stream: Stream) -> bool:
    """Return whether all messages of a stream have the same length. The last one may be shorter."""
    lengths = message_lengths(stream)
    frames = stream.transmissions[stream.transmissions["frame_type"] == DATA]
    is_whole = bool(len(frames)) and bool(frames["flags"][0] & BEGIN and frames["flags"][-1] & END)
    return is_whole and len(np.unique(lengths[:-1])) <= 1 and bool((lengths <= lengths[0]).all())


def _rules(faults: Iterable[tuple[int, int, Sequence[FrameOutcome]]]) -> list[Document]:
    """Convert the outcomes of frames to fault rules. Delays are rounded more and more coarsely
    until at most FAULTS_MAX rules are needed.

    If there are still more rules at the coarsest rounding, all of them are returned.
    """
    streams = list(faults)
    step_ns = 10_000
    while True:
        acts: list[Document] = []
        selected = []
        for stream_id, link, outcomes in streams:
            # A transmission has only one outcome: a lost one cannot be late, and a late one cannot
            # be duplicated. The first outcome in this order counts.
            taken: set[tuple[int, int]] = set()
            for outcome in sorted(outcomes, key=lambda each: (DROP, LATE, COPY).index(each.what)):
                if (outcome.position, outcome.attempt) in taken:
                    continue
                taken.add((outcome.position, outcome.attempt))
                act = act_of(outcome, step_ns)
                if act not in acts:
                    acts.append(act)
                place = outcome.position, outcome.length, outcome.attempt
                selected.append(
                    SelectedFrame(acts.index(act), link, outcome.frame_type, stream_id, 1, *place)
                )
        rules = rules_for(selected, acts, DIRECTIONS)
        if len(rules) <= FAULTS_MAX:
            return rules
        step_ns *= 4
        if step_ns > DELAY_NS_MAX:
            return rules


def act_of(outcome: FrameOutcome, step_ns: int) -> Document:
    """Return the `act` of a fault rule that reproduces the outcome of a frame. Times are rounded to
    multiples of `step_ns`.
    """
    if outcome.what == DROP:
        return {"drop": "always"}
    delay_ns = min(DELAY_NS_MAX, max(step_ns, round(outcome.delay_ns / step_ns) * step_ns))
    if outcome.what == COPY:
        if outcome.delay_ns < HOLD_FROM_NS:
            return {"duplicate": "always"}
        return {"duplicate": {"share": "always", "for": format_duration(delay_ns)}}
    if outcome.delay_ns < HOLD_FROM_NS:
        by = min(max(1, outcome.overtaken_by), DISPLACED_MAX)
        return {"displace": {"share": "always", "by": by}}
    return {"hold": {"share": "always", "for": format_duration(delay_ns)}}


def _expect(seen: Sequence[ObservedStream], traffic: Sequence[Document]) -> list[Any]:
    """Return the `expect` list of the scenario: checks for reliable streams, and checks for
    unreliable ones.

    A check names its streams unless it applies to all streams.
    """
    found: list[Any] = []
    for names, is_reliable in ((RELIABLE, True), (UNRELIABLE, False)):
        ids = [
            each["id"]
            for each, one in zip(traffic, seen, strict=True)
            if one.is_reliable is is_reliable
        ]
        if len(ids) == len(traffic):
            return list(names)
        found += [{name: {"traffic": ids}} for name in names if ids]
    merged: dict[str, list[str]] = {}
    for check in found:
        ((name, arguments),) = check.items()
        merged.setdefault(name, []).extend(arguments["traffic"])
    return [{name: {"traffic": ids}} for name, ids in merged.items()]
