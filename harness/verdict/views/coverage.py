"""Comparison of the frames in a subscriber's log with the expected log, position by position.

expected   | DATA | DATA | DATA | DATA | PAD | DATA ...
seen       | DATA | DATA |     PAD     | PAD | DATA ...      unreliable: a filled gap
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.frames.flow import StreamFacts, aligned_lengths, wrap_i32
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.archive.replay import was_truncated
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.views.damage import Damage, payload_damage
from windtunnel.harness.verdict.views.fill_evidence import arrived_in_time, fill_rule
from windtunnel.harness.verdict.views.losses import LinkLosses, frame_index, link_losses
from windtunnel.harness.verdict.views.stretch import late_join

COVERED = "positions_covered"
PADDED = "pad_only_where_lost"


@dataclass(frozen=True)
class _SubscriberLog:
    """The frames in a subscriber's log, with the expected frames at the same positions."""

    frames: Records
    header: Records
    starts: NDArray[np.int64]
    spans: NDArray[np.int64]
    index: NDArray[np.int64]
    "Index of the expected frame with the same start position, valid only where `matched`."
    matched: NDArray[np.bool_]
    filled: NDArray[np.bool_]
    "PADs that the publisher did not send: filled gaps."
    doubtful: NDArray[np.bool_]
    "PADs that may be filled gaps, although they equal a publisher's PAD that arrived late."


def _classify(frames: Records, planned: Planned, lost: LinkLosses | None = None) -> _SubscriberLog:
    """Classify the frames in a subscriber's log: expected frames, and PADs that fill gaps.

    A PAD is the publisher's if the publisher sent an equal one and, if `lost` is given, this one
    arrived. If a PAD at the end of a term is lost, its gap is filled with an equal PAD.
    """
    header = headers(frames)
    starts = frames["position"].astype(np.int64)
    index, matched = frame_index(planned.log, starts)
    at = np.minimum(index, len(planned.log.frames) - 1)
    expected = planned.log.frames[at]
    is_pad = header["type"] == PAD
    written = matched & (expected["frame_type"] == PAD)
    written &= expected["frame_length"] == header["frame_length"]
    doubtful = np.zeros(len(frames), dtype=np.bool_)
    if lost is not None:
        written &= lost.arrived[at]
        doubtful = is_pad & written & lost.disturbed[at]
    spans = aligned_lengths(header["frame_length"])
    return _SubscriberLog(
        frames, header, starts, spans, index, matched, is_pad & ~written, doubtful
    )


def filled_gaps(
    frames: Records, planned: Planned
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the gaps that a receiver filled: their start positions and lengths, and the times at
    which the padding was read.
    """
    seen = _classify(frames, planned)
    times_ns = frames["time_ns"].astype(np.int64)
    return seen.starts[seen.filled], seen.spans[seen.filled], times_ns[seen.filled]


def fill_bounds(frames: Records, planned: Planned, lost: LinkLosses | None) -> tuple[int, int]:
    """Return the minimum and maximum number of gaps that a receiver may have filled."""
    seen = _classify(frames, planned, lost)
    least = int(seen.filled.sum())
    return least, least + int(seen.doubtful.sum())


def positions_covered(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each position from join to end is covered exactly once, by the expected DATA or by a PAD."""
    planned, frames, wire, subscriber = present(
        evidence.planned(traffic),
        evidence.frames_seen(traffic),
        evidence.wire(traffic),
        evidence.subscriber(traffic),
    )
    where = (evidence.name_of(evidence.folder.host(traffic.to_host).subscriber(traffic.id).frames),)
    seen = _classify(frames, planned)
    damage = _damage(evidence, traffic, planned)
    join, end = subscriber.join_position, planned.log.end_position
    for position, text in _first_violations(seen, planned, wire.facts, traffic, join, damage):
        return failed(COVERED, text, traffic.id, evidence=where, position=position, conclusive=True)
    late = late_join(evidence, traffic, subscriber)
    if late:
        return failed(COVERED, late, traffic.id, evidence=where, position=join)
    reached = int(seen.starts[-1] + seen.spans[-1]) if len(frames) else join
    if reached < end:
        text = f"frames cover only positions {join} to {reached}, expected up to {end}"
        conclusive = was_truncated(evidence, traffic)
        return failed(
            COVERED, text, traffic.id, evidence=where, position=reached, conclusive=conclusive
        )
    facts = {"frames": len(frames), "filled_gaps": int(seen.filled.sum())}
    frames_text = f"{len(frames)} {noun_for(len(frames), 'frame')}"
    text = f"every position from {join} to {end} is covered once, by {frames_text}"
    return passed(COVERED, text, traffic.id, evidence=where, facts=facts)


def _first_violations(
    seen: _SubscriberLog,
    planned: Planned,
    facts: StreamFacts,
    traffic: TrafficCase,
    join: int,
    damage: list[Damage],
) -> list[tuple[int, str]]:
    """Return the first violation of each kind as (position, description), in order of position."""
    found = []
    for wrong, what in _violations(seen, planned, facts, traffic, join, damage):
        at = np.flatnonzero(wrong)
        if len(at):
            first = int(at[0])
            found.append((first, what))
    return [
        (int(seen.starts[at]), f"position {seen.starts[at]}: {what}") for at, what in sorted(found)
    ]


def _violations(
    seen: _SubscriberLog,
    planned: Planned,
    facts: StreamFacts,
    traffic: TrafficCase,
    join: int,
    damage: list[Damage],
) -> list[tuple[Any, str]]:
    header, starts = seen.header, seen.starts
    expected = planned.log.frames[np.minimum(seen.index, len(planned.log.frames) - 1)]
    follows = np.concatenate([[join], (starts + seen.spans)[:-1]])
    is_data = header["type"] == DATA
    term_ids = wrap_i32(starts // facts.term_length + facts.initial_term_id)
    header_wrong = (header["term_offset"] != starts % facts.term_length) | (
        (header["term_id"] != term_ids)
        | (header["session_id"] != facts.session_id)
        | (header["stream_id"] != facts.stream_id)
        | (header["version"] != 0)
    )
    data = is_data & seen.matched & (expected["frame_type"] == DATA)
    return [
        (
            starts[: len(follows)] > follows[: len(starts)],
            "the positions before it are not covered",
        ),
        (starts[: len(follows)] < follows[: len(starts)], "covered more than once"),
        (~is_data & (header["type"] != PAD), "frame is neither DATA nor PAD"),
        (header["frame_length"] < DATA_HEADER_LENGTH, "frame is shorter than its header"),
        (header_wrong, "wrong version, session, stream, term or offset in the frame header"),
        (is_data & ~data, "DATA frame at a position where the publisher sent none"),
        (
            data & (header["frame_length"] != expected["frame_length"]),
            "DATA frame with a wrong length",
        ),
        (data & (header["flags"] != expected["flags"]), "DATA frame with wrong flags"),
        (data & (header["reserved_value"] != 0), "DATA frame with a nonzero reserved value"),
        (data & _payload_wrong(seen, planned, data, damage), "DATA frame with a wrong payload"),
        (seen.filled & traffic.reliable, "PAD that the publisher did not send"),
        (starts + seen.spans > planned.log.end_position, "frame beyond the end of the stream"),
    ]


def _payload_wrong(
    seen: _SubscriberLog, planned: Planned, data: NDArray[np.bool_], damage: list[Damage]
) -> NDArray[np.bool_]:
    """Return a mask of the DATA frames whose payload checksum is wrong."""
    at = np.flatnonzero(data)
    expected = planned.log.frames[seen.index[at]]
    payload = memoryview(planned.payload)
    size = len(payload)
    starts = expected["payload_start"] % size
    ends = starts + expected["frame_length"] - DATA_HEADER_LENGTH
    checksums = np.fromiter(
        (
            zlib.crc32(payload[start:end])
            if end <= size
            else zlib.crc32(_wrapped(planned.payload, start, end))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ),
        dtype=np.uint32,
        count=len(at),
    )
    wrong = np.zeros(len(seen.starts), dtype=np.bool_)
    wrong[at] = seen.frames["payload_crc32"][at] != checksums
    damaged = np.unique([each.frame for each in damage]).astype(np.int64)
    for row in np.flatnonzero(wrong & np.isin(seen.index, damaged)).tolist():
        here = [each for each in damage if each.frame == seen.index[row]]
        wrong[row] = int(seen.frames["payload_crc32"][row]) not in _damaged(planned, here)
    return wrong


def _damage(evidence: Evidence, traffic: TrafficCase, planned: Planned) -> list[Damage]:
    """Return the payload corruption that the scenario specifies, or [] if evidence is missing."""
    case, decisions = evidence.case, evidence.decisions
    if isinstance(case, Missing) or isinstance(decisions, Missing):
        return []
    return payload_damage(decisions, case, traffic, planned.log)


def _damaged(planned: Planned, damage: list[Damage]) -> set[int]:
    """Return the possible checksums of a corrupted payload: one for each run of consecutive entries
    in `damage`.
    """
    row = planned.log.frames[damage[0].frame]
    start = int(row["payload_start"])
    length = int(row["frame_length"]) - DATA_HEADER_LENGTH
    whole = np.take(planned.payload, np.arange(start, start + length), mode="wrap")
    found = set()
    for first in range(len(damage)):
        for last in range(first + 1, len(damage) + 1):
            copy = whole.copy()
            for each in damage[first:last]:
                copy[each.offset] ^= each.mask
            found.add(zlib.crc32(copy.tobytes()))
    return found


def _wrapped(payload: NDArray[np.uint8], start: int, end: int) -> bytes:
    return np.take(payload, np.arange(start, end), mode="wrap").tobytes()


def pad_only_where_lost(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A PAD that the publisher did not send covers only frames that were lost or late.

    If the receiver waits for evidence before it fills a gap, a frame that arrived until then is not
    late.
    """
    lost = link_losses(evidence, traffic)
    planned, frames, wire = present(
        evidence.planned(traffic), evidence.frames_seen(traffic), evidence.wire(traffic)
    )
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    where = (evidence.name_of(files.frames), evidence.name_of(evidence.folder.decisions))
    if len(frames) == 0:
        return inconclusive(PADDED, Missing(where[0], "has no frames"), traffic.id)
    seen = _classify(frames, planned, lost)
    fills = int(seen.filled.sum())
    facts = {"filled_gaps": fills, "dropped": lost.dropped_count}
    unjustified = _unjustified_fill(seen, planned, lost.disturbed)
    what = "which was neither lost nor late"
    if unjustified is None and (rule := fill_rule(evidence, traffic)) is not None:
        in_time = arrived_in_time(wire, planned.log, planned.log.start_position, rule)
        unjustified = _unjustified_fill(seen, planned, lost.disturbed & ~(in_time & ~lost.altered))
        what = f"which arrived before {rule.text}"
    if unjustified is not None:
        start, position = unjustified
        text = f"the PAD at position {start} covers the frame at position {position}, {what}"
        return failed(PADDED, text, traffic.id, evidence=where, position=position, facts=facts)
    if lost.dropped_count and not fills and not seen.doubtful.any():
        verb = noun_for(lost.dropped_count, "frame was", "frames were")
        text = f"{lost.dropped_count} {verb} dropped, but no gap was filled"
        return failed(PADDED, text, traffic.id, evidence=where, facts=facts)
    verb = noun_for(fills, "gap was", "gaps were")
    text = f"{fills} {verb} filled, each over frames that were lost or late"
    return passed(PADDED, text, traffic.id, evidence=where, facts=facts)


def _unjustified_fill(
    seen: _SubscriberLog, planned: Planned, disturbed: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the first filled gap that covers a frame that was neither lost nor late, as (gap
    start, frame position).
    """
    log = planned.log.frames
    bounds = np.append(log["position"], planned.log.end_position)
    undisturbed = np.concatenate([[0], np.cumsum(~disturbed)])
    starts = seen.starts[seen.filled]
    ends = starts + seen.spans[seen.filled]
    first = np.searchsorted(bounds, starts, side="right") - 1
    last = np.searchsorted(bounds, ends, side="left")
    last = np.minimum(last, len(log))
    unjustified = (undisturbed[last] - undisturbed[np.maximum(first, 0)] > 0) | (
        (bounds[np.maximum(first, 0)] != starts) | (ends > planned.log.end_position)
    )
    at = np.flatnonzero(unjustified)
    if len(at) == 0:
        return None
    pad = int(at[0])
    covered = range(max(int(first[pad]), 0), int(last[pad]))
    alone = [frame for frame in covered if not disturbed[frame]]
    position = int(log["position"][alone[0]]) if alone else int(starts[pad])
    return int(starts[pad]), max(position, int(starts[pad]))
