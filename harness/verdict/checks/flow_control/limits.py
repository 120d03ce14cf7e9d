"""Checks of the limit counters of a sender (snd-lmt) and of a publisher (pub-lmt).

    snd-pos          snd-lmt                    snd-lmt = the highest position + window of any
       |----------------|                       status message; it never decreases
       |- - - - - - - - - - - - pub-lmt         pub-lmt = snd-pos + the publisher's window

Counters are sampled between their updates. So a sample is compared with everything that the sender
may have received by then, and with all positions that it may have had.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.checks.flow_control import group_window
from windtunnel.harness.verdict.checks.flow_control.group_window import MAX, limiting_messages
from windtunnel.harness.verdict.checks.retransmission.recovery import processed_until_ns
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, failed, passed, present
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire, status_messages
from windtunnel.harness.verdict.views.sent_data import sent_to_any
from windtunnel.harness.verdict.views.series import Series, known_at, stream_series

SENDER = "snd_lmt_follows_status"
PUBLISHER = "pub_lmt_follows_snd_pos"
_FLOW_CONTROL = "fc"
"""Channel parameter for flow control, under which the limit may decrease when a receiver joins."""


def snd_lmt_follows_status(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """snd-lmt never decreases, never exceeds the limit set by status messages, and finally reaches
    it.

    If the channel sets a flow control strategy, snd-lmt may decrease.
    """
    wire, planned = present(evidence.wire(traffic), evidence.planned(traffic))
    series = stream_series(evidence, traffic.from_host, counter_key.SENDER_LIMIT, wire)
    where = _where(evidence, traffic)
    start = planned.log.start_position
    channel = parse_channel(traffic.channel)
    control = channel.flow_control if channel.is_group else FlowControl(MAX)
    messages = limiting_messages(wire, status_messages(wire.feedback_arrived_from_all), control)
    times_ns, highest = group_window.allowed(wire, messages, control, start)
    allowed = known_at(times_ns, highest, series.read_before_ns, start)
    falls = 1 + np.flatnonzero(np.diff(series.values) < 0)
    takes_back = _FLOW_CONTROL in channel.parameters
    if len(falls) and not takes_back:
        at = int(falls[0])
        before, value = int(series.values[at - 1]), int(series.values[at])
        text = f"snd-lmt decreased from {before} to {value} at sample {at}"
        return failed(SENDER, text, traffic.id, evidence=where, position=value)
    ahead = np.flatnonzero(series.values > allowed)
    if len(ahead):
        at = int(ahead[0])
        value = int(series.values[at])
        text = f"snd-lmt was {value}, but status messages had allowed at most {int(allowed[at])}"
        return failed(SENDER, text, traffic.id, evidence=where, position=value)
    least = _least(wire, start)
    if series.last < least and not takes_back:
        text = f"snd-lmt ended at {series.last}, but a status message had allowed {least}"
        more = {"evidence": where, "position": series.last, "kind": Kind.STATE}
        return failed(SENDER, text, traffic.id, **more)
    text = f"{len(series.values)} samples of snd-lmt, each within the limit of {len(messages)} "
    text += "status messages"
    return passed(SENDER, text, traffic.id, evidence=where)


def _least(wire: Wire, start: int) -> int:
    """Return the lowest value at which snd-lmt may end: the highest limit in genuine status
    messages that the sender certainly processed.
    """
    messages = status_messages(wire.feedback_arrived)
    limits = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    limits = limits + messages["window_bytes"]
    genuine = np.isin(_contents(messages), _contents(status_messages(wire.feedback_sent)))
    processed = messages["time_ns"] <= processed_until_ns(wire)
    return int(limits[genuine & processed].max(initial=start))


def _contents(messages: NDArray[np.void]) -> NDArray[np.void]:
    """Return the contents of each status message as one value, for comparison."""
    names = ["term_id", "term_offset", "window_bytes", "receiver_id"]
    plain = np.stack([messages[name].astype(np.int64) for name in names], axis=1)
    kind = np.dtype((np.void, plain.dtype.itemsize * len(names)))
    return np.ascontiguousarray(plain).view(kind).ravel()


def pub_lmt_follows_snd_pos(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """pub-lmt always equals a position that the sender reached, or such a position plus the
    publication window. After the end of the stream, it is not ahead of that end.
    """
    wire, planned = present(evidence.wire(traffic), evidence.planned(traffic))
    series = stream_series(evidence, traffic.from_host, counter_key.PUBLISHER_LIMIT, wire)
    where = _where(evidence, traffic)
    window = parse_channel(traffic.channel).publication_window_bytes
    window = traffic.term_length // 2 if window is None else window
    start, ends = planned.log.start_position, [planned.log.end_position]
    # A publisher that ends early leaves the limit at its last position.
    facts = evidence.publisher(traffic)
    if not isinstance(facts, Missing):
        ends.append(facts.end_position)
    sent = sent_to_any(evidence, traffic, wire)
    sender_positions = np.unique(np.concatenate([[start, *ends], sent.ends]))
    violation = (
        _misplaced(series, sender_positions, window)
        or _too_far_ahead(series, sent, window, start, ends)
        or _left_open(series, wire, ends)
    )
    if violation is not None:
        value, text = violation
        return failed(PUBLISHER, text, traffic.id, evidence=where, position=value)
    ahead = int(np.isin(series.values, sender_positions + window).sum())
    text = f"{ahead} of {len(series.values)} samples of pub-lmt were {window} bytes ahead of the "
    text += "sender, the others at its position"
    return passed(PUBLISHER, text, traffic.id, evidence=where, facts={"ahead": ahead})


def _misplaced(
    series: Series, sender_positions: NDArray[np.int64], window: int
) -> tuple[int, str] | None:
    """Return the first pub-lmt sample that is neither a position that the sender reached nor one
    window ahead of such a position.
    """
    wrong = np.flatnonzero(
        ~np.isin(series.values, np.concatenate([sender_positions, sender_positions + window]))
    )
    if len(wrong) == 0:
        return None
    value = int(series.values[wrong[0]])
    return value, (
        f"pub-lmt was {value}, but no datagram ends there or {window} bytes before it; "
        f"{len(wrong)} of {len(series.values)} samples are wrong"
    )


def _too_far_ahead(
    series: Series, sent: FrameSequence, window: int, start: int, ends: list[int]
) -> tuple[int, str] | None:
    """Return the first pub-lmt sample that is more than one publication window ahead of the data
    sent.
    """
    times_ns = sent.frames["time_ns"].astype(np.int64)
    reached = known_at(times_ns, np.maximum.accumulate(sent.ends), series.read_before_ns, start)
    ahead = np.flatnonzero((series.values > reached + window) & ~np.isin(series.values, ends))
    if len(ahead) == 0:
        return None
    at = int(ahead[0])
    value = int(series.values[at])
    return value, (
        f"pub-lmt was {value}, but data had been sent only up to {int(reached[at])}, and the "
        f"window is {window} bytes"
    )


def _left_open(series: Series, wire: Wire, ends: list[int]) -> tuple[int, str] | None:
    """Return the last pub-lmt sample if it is ahead of a stream that has ended.

    A driver signals the end only after it has taken the limit back to the publication's position,
    so that a client that it has given up cannot continue.
    """
    signals, _ = wire.end_of_stream_heartbeats(wire.heartbeats_sent)
    if len(signals) == 0 or series.last <= max(ends):
        return None
    return series.last, f"pub-lmt ended at {series.last}, but the stream ended at {max(ends)}"


def _where(evidence: Evidence, traffic: TrafficCase) -> tuple[str, ...]:
    folder = evidence.folder
    samples = folder.host(traffic.from_host).counter_samples
    return evidence.name_of(samples), evidence.name_of(folder.capture(traffic.from_host))
