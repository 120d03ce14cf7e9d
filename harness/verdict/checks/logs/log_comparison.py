"""Comparison of an image's log buffer with its publication's log buffer, byte by byte.

    publication's log   |  term n-1   | - - term n - - |            both as they were at the end
    image's log         |  term n-1   | - - term n - - |
                           <----- the last term's length ----->     not cleaned in either

A driver cleans the log one term length behind its slowest reader, so both logs always hold the last
term length. A filled gap that begins before this range has its only header outside it, so the
comparison starts after that gap.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.artifact.host.log_index import IMAGES, PUBLICATIONS
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files import log_walk
from windtunnel.harness.dissect.driver_files.log_buffer import TERM_COUNT, LogFrame, read_frame
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.saved_logs import SavedLog
from windtunnel.harness.verdict.core.wire import MAY_HAVE_LEFT, Wire
from windtunnel.harness.verdict.views.damage import payload_damage, undo_log_damage
from windtunnel.harness.verdict.views.stretch import expected_join_position

EQUAL = "image_log_equals_publication"
FILLS_MAX = 1 << 16
"""Limit on the number of recorded filled gaps. Even a term full of minimum-length frames has
fewer."""


@dataclass(frozen=True)
class _LogPair:
    """A range of positions in a publication's log and the same range in its image's log."""

    publication: NDArray[np.uint8]
    image: NDArray[np.uint8]
    low: int
    "Position of the first byte."
    first: int
    "Position of the first frame that is certainly complete in both."
    end: int
    "The publication's last position."


def image_log_equals_publication(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The image's log equals the publication's log byte for byte, except for filled gaps."""
    wire = present(evidence.wire(traffic))
    stream = wire.facts.session_id, wire.facts.stream_id
    publication, image = present(
        _publication_log(evidence, traffic, wire), evidence.log_of(traffic.to_host, IMAGES, *stream)
    )
    join = _join_position(evidence, traffic)
    where = (evidence.name_of(publication.path), evidence.name_of(image.path))
    for name in ("initial_term_id", "term_length"):
        wrote, rebuilt = publication.log.metadata[name], image.log.metadata[name]
        if wrote != rebuilt:
            text = f"{name} is {wrote} in the publication's log, but {rebuilt} in the image's log"
            return failed(EQUAL, text, traffic.id, evidence=where, conclusive=True)
    padding = _padding(evidence, traffic, wire)
    pair = _pair(publication, image, wire, join, padding)
    if pair is None:
        gap = Missing(where[0], "has no captured frame outside of filled gaps")
        return inconclusive(EQUAL, gap, traffic.id)
    pair = _undo_ordered_damage(evidence, traffic, pair)
    return _compare(traffic, wire, pair, publication, image, where)


def _publication_log(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> SavedLog | Missing:
    """Return the log of the publication that sent a stream. An observed session may have several,
    such as that of a replay with the same session id: it is the one whose tail is the next at or
    behind what was sent, and of equal ones the oldest.
    """
    stream = traffic.from_host, PUBLICATIONS, wire.facts.session_id, wire.facts.stream_id
    newest = evidence.log_of(*stream)
    if not traffic.observed:
        return newest
    end = int(wire.sent.ends.max(initial=0))
    saved = [each for each in evidence.logs_of(*stream) if not isinstance(each, Missing)]
    whole = [each for each in reversed(saved) if _end(each) >= end]
    return min(whole, key=_end, default=newest)


def _end(publication: SavedLog) -> int:
    """Return the position of a publication's tail."""
    log = publication.log
    return log.tails()[log.active_term_index].position


def _join_position(evidence: Evidence, traffic: TrafficCase) -> int:
    """Return the position from which the image's log must equal the publication's."""
    if traffic.observed:
        return present(evidence.planned(traffic)).log.start_position
    return expected_join_position(evidence, traffic, present(evidence.subscriber(traffic)))


def _undo_ordered_damage(evidence: Evidence, traffic: TrafficCase, pair: _LogPair) -> _LogPair:
    """Return the publication's log, and the image's log without the payload corruption that the
    scenario specifies.
    """
    if traffic.observed:
        return pair
    try:
        case, decisions, planned = present(
            evidence.case, evidence.decisions, evidence.planned(traffic)
        )
    except EvidenceMissing:
        return pair
    damage = payload_damage(decisions, case, traffic, planned.log)
    return replace(
        pair, image=undo_log_damage(pair.image, pair.publication, pair.low, planned.log, damage)
    )


def _padding(
    evidence: Evidence, traffic: TrafficCase, wire: Wire
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and end of each PAD that an unreliable stream's subscriber saw."""
    nothing = np.zeros(0, dtype=np.int64)
    if traffic.reliable:
        return nothing, nothing
    frames = present(evidence.frames_seen(traffic))
    header = headers(frames)
    chosen = (header["type"] == PAD) & (header["session_id"] == wire.facts.session_id)
    starts = frames["position"][chosen].astype(np.int64)
    return starts, starts + aligned_lengths(header["frame_length"][chosen])


def _pair(
    publication: SavedLog,
    image: SavedLog,
    wire: Wire,
    join: int,
    padding: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> _LogPair | None:
    """Return the range of positions that both logs certainly hold, or None if no frame is known to
    begin in this range.

    The range ends at the publication's last position.
    """
    log = publication.log
    end = _end(publication)
    low = max(join, end - log.term_length)
    starts = wire.sent.starts[(wire.sent.starts >= low) & (wire.sent.starts < end)]
    if len(starts) == 0:
        return None
    first = int(starts.min())
    begins, stops = padding
    first = int(stops[(begins < first) & (stops > first)].max(initial=first))
    if first >= end:
        return None
    return _LogPair(
        publication=_stretch(publication, low, end),
        image=_stretch(image, low, end),
        low=low,
        first=first,
        end=end,
    )


def _stretch(kept: SavedLog, low: int, end: int) -> NDArray[np.uint8]:
    """Return a log's bytes between two positions, which must be at most two terms apart."""
    length = kept.log.term_length
    parts = []
    while low < end:
        stop = min(end, low - low % length + length)
        at = low // length % TERM_COUNT * length + low % length
        parts.append(kept.buf[at : at + stop - low])
        low = stop
    return np.concatenate(parts)


def _compare(
    traffic: TrafficCase,
    wire: Wire,
    pair: _LogPair,
    publication: SavedLog,
    image: SavedLog,
    where: tuple[str, ...],
) -> Finding:
    fills = np.zeros((FILLS_MAX, 2), dtype=np.int64)
    result = np.zeros(log_walk.RESULT_LENGTH, dtype=np.int64)
    log_walk.compare_logs(
        pair.publication,
        pair.image,
        pair.first - pair.low,
        pair.end - pair.low,
        fills,
        result,
    )
    status, at, byte, frames, filled = (int(each) for each in result)
    position = pair.low + at
    written = f"the publication's log has {_frame_text(publication, position)}"
    rebuilt = f"the image's log has {_frame_text(image, position)}"
    facts = {"frames": frames, "filled_gaps": filled, "from": pair.first, "to": pair.end}
    more = {"evidence": where, "facts": facts}
    if status == log_walk.PUBLICATION_ENDS:
        text = f"the publication's log ends at position {position}, before its tail at "
        text += f"{pair.end}: {written}"
        return failed(EQUAL, text, traffic.id, position=position, **more)
    if status == log_walk.IMAGE_ENDS:
        text = f"the image's log ends at position {position}, expected {pair.end}: {written}"
        if traffic.observed and wire.may_have_left_at(position):
            text += MAY_HAVE_LEFT
            return Finding(EQUAL, Outcome.INCONCLUSIVE, text, traffic.id, where, position=position)
        return failed(EQUAL, text, traffic.id, position=position, **more)
    if status == log_walk.DIFFERENT:
        text = f"byte {byte} of the frame at position {position} differs: {written}, {rebuilt}"
        return failed(EQUAL, text, traffic.id, position=position, conclusive=True, **more)
    if filled and traffic.reliable:
        position = pair.low + int(fills[0, 0])
        written = f"the publication's log has {_frame_text(publication, position)}"
        rebuilt = f"the image's log has {_frame_text(image, position)}"
        text = f"a gap was filled at position {position} of a reliable stream: {written}, {rebuilt}"
        return failed(EQUAL, text, traffic.id, position=position, conclusive=True, **more)
    text = (
        f"positions {pair.first} to {pair.end}: both logs have the same {frames} frames, "
        f"except for {filled} filled gaps"
    )
    return passed(EQUAL, text, traffic.id, **more)


def _frame_text(kept: SavedLog, position: int) -> str:
    """Describe the frame at a position in a log."""
    length = kept.log.term_length
    frame = read_frame(kept.log, position // length % TERM_COUNT, position % length)
    return "no data (end of file)" if frame is None else header_text(frame)


def header_text(frame: LogFrame) -> str:
    """Describe a frame header, including an empty or invalid one."""
    if frame.frame_length == 0:
        return "no frame"
    kind = layout.BY_TYPE_CODE.get(frame.type)
    return (
        f"{kind.name if kind else f'type {frame.type:#x}'} of {frame.frame_length} bytes "
        f"(version {frame.version}, flags {frame.flags:#04x}, term {frame.term_id} offset "
        f"{frame.term_offset}, session {frame.session_id}, stream {frame.stream_id}, "
        f"reserved {frame.reserved_value})"
    )
