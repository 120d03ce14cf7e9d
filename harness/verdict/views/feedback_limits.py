"""Times at which a receiver may have been permitted to send no feedback to a publisher.

    arrived    data    heartbeat                 heartbeat
    permitted  +3 n    +3 n                      +3 n
    sent       SM      NAK    NAK    NAK   (--- withheld ---)    NAK

A driver other than Aeron's may limit feedback to three times the bytes that came from the source,
whose address may be forged; NAKs leave a share for status messages. Configured addresses have no
limit. No driver sends feedback to a source that was silent for the connection timeout. Of SETUPs,
the view counts only the one for which the first image was created, so a receiver is permitted at
least as much as here.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAK, PAD
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.dissect.frames.route import of_port
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.acceptance import certain_heartbeats, certainly_accepted
from windtunnel.harness.verdict.views.pauses import NEVER_NS, Pauses, disjoint

CONNECTION_TIMEOUT_NS = 5_000_000_000
"""Time after the last packet of a source during which feedback is sent to it. Source: Aeron 1.53,
AERON_RECEIVE_DESTINATION_TIMEOUT_NS."""
BYTES_OUT_PER_BYTE_IN = 3
FIRST_BYTES = BYTES_OUT_PER_BYTE_IN * 40
"""What a SETUP permits."""
UNSPENT_BYTES_MAX = 4_096
STATUS_BYTES_MAX = 1_024
STATUS_SHARE = 3
"""NAKs leave 1/STATUS_SHARE of what was permitted after the last packet, or STATUS_BYTES_MAX if
that is less. Source of these limits: docs/reliability.md."""
_ARRIVED, _SENT, _JOINED = range(3)


def withheld(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, length: int, *, is_nak: bool = False
) -> Pauses:
    """Return the time ranges in which a receiver may not have been permitted to send a NAK or a
    status message of `length` bytes.
    """
    start = evidence.join_position(traffic)
    frames = np.append(wire.arrived.frames, wire.heartbeats_arrived)
    is_own = of_port(frames, traffic.session_port)
    # What a receiver rejects permits nothing.
    is_accepted = np.append(certainly_accepted(wire, start), certain_heartbeats(wire, start))
    arrived_ns = np.sort(frames["time_ns"][is_own].astype(np.int64))
    ends_ns = np.append(arrived_ns[1:], NEVER_NS)[: len(arrived_ns)]
    silent = ends_ns - arrived_ns > CONNECTION_TIMEOUT_NS
    found = [*zip(arrived_ns[silent] + CONNECTION_TIMEOUT_NS, ends_ns[silent], strict=True)]
    if _is_limited(evidence, traffic):
        frames = frames[is_own & is_accepted]
        events = _events(frames, wire, _joined_ns(evidence, traffic, wire.facts.session_id))
        found += _without_bytes(*events, length, is_nak=is_nak)
    return disjoint((int(start_ns), int(end_ns)) for start_ns, end_ns in found)


def _is_limited(evidence: Evidence, traffic: TrafficCase) -> bool:
    subject, receive = evidence.subject(traffic.to_host), parse_channel(traffic.receive)
    is_aerons = subject is not None and subject.is_aerons
    return not (is_aerons or receive.is_multicast or receive.control is not None)


def _joined_ns(evidence: Evidence, traffic: TrafficCase, session_id: int) -> list[int]:
    """Return when the images of a session began, without the first one."""
    subscriber = evidence.subscriber(traffic)
    if isinstance(subscriber, Missing):
        return []
    return sorted(each.joined_ns for each in subscriber.parts if each.session_id == session_id)[1:]


def _events(
    frames: Frames, wire: Wire, joined_ns: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the time, the kind and the length of each event, in order of time. The length of a NAK
    is negative.
    """
    is_header = (frames["frame_type"] == PAD) | (frames["frame_length"] == 0)
    lengths = np.where(is_header, DATA_HEADER_LENGTH, frames["frame_length"])
    feedback = np.append(status_messages(wire.feedback_sent), wire.naks(wire.feedback_sent))
    signs = np.where(feedback["frame_type"] == NAK, -1, 1)
    columns = (
        (frames["time_ns"], _ARRIVED, lengths),
        (feedback["time_ns"], _SENT, feedback["frame_length"] * signs),
        (np.array(joined_ns, dtype=np.int64), _JOINED, np.zeros(len(joined_ns))),
    )
    times_ns = np.concatenate([each[0].astype(np.int64) for each in columns])
    kinds = np.repeat([each[1] for each in columns], [len(each[0]) for each in columns])
    sizes = np.concatenate([each[2].astype(np.int64) for each in columns])
    order = np.lexsort((kinds, times_ns))
    return times_ns[order], kinds[order].astype(np.int64), sizes[order]


def _without_bytes(
    times_ns: NDArray[np.int64],
    kinds: NDArray[np.int64],
    sizes: NDArray[np.int64],
    length: int,
    *,
    is_nak: bool,
) -> list[tuple[int, int]]:
    """Return the time ranges in which fewer than `length` bytes are permitted."""
    found: list[tuple[int, int]] = []
    unspent, kept, since_ns = FIRST_BYTES, 0, 0
    is_short = False
    for time_ns, kind, size in zip(times_ns.tolist(), kinds.tolist(), sizes.tolist(), strict=True):
        if kind == _JOINED:
            unspent = kept = 0
        elif kind == _ARRIVED:
            unspent = min(unspent + BYTES_OUT_PER_BYTE_IN * size, UNSPENT_BYTES_MAX)
            kept = min(unspent // STATUS_SHARE, STATUS_BYTES_MAX)
        else:
            unspent = max(unspent - abs(size), 0)
            kept = max(kept - max(size, 0), 0)
        was_short, is_short = is_short, unspent - kept * is_nak < length
        if was_short and not is_short:
            found.append((since_ns, time_ns))
        elif is_short and not was_short:
            since_ns = time_ns
    return [*found, (since_ns, NEVER_NS)] if is_short else found
