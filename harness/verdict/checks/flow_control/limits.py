"""How far a sender may send and a publisher may write, as their counters tell.

    snd-pos          snd-lmt                    snd-lmt = the highest position + window that any
       |----------------|                       status message has told; it never falls
       |- - - - - - - - - - - - pub-lmt         pub-lmt = snd-pos + the publisher's window

Both are read between the moments that move them, so they are compared with all that the sender can
have known, and with all positions at which it can have stood.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.checks.flow_control import group_window
from windtunnel.harness.verdict.checks.flow_control.group_window import MAX, binding
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.checks.retransmission.recovery import heard_until_ns
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.series import Series, known_at, stream_series

SENDER = "snd_lmt_follows_status"
PUBLISHER = "pub_lmt_follows_snd_pos"
_PICKED = "fc"
"""A channel's flow control, which may take back a limit in favour of a receiver that joined."""


def snd_lmt_follows_status(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """snd-lmt only rises, never beyond what status messages allow, and ends where they do."""
    found = together(evidence.wire(traffic), evidence.planned(traffic))
    if isinstance(found, Missing):
        return could_not_look(SENDER, found, traffic.id)
    wire, planned = found
    series = stream_series(evidence, traffic.from_host, counter_key.SENDER_LIMIT, wire)
    if isinstance(series, Missing):
        return could_not_look(SENDER, series, traffic.id)
    where = _where(evidence, traffic)
    start = planned.log.start_position
    channel = parse_channel(traffic.channel)
    control = channel.flow_control if channel.is_group else FlowControl(MAX)
    told = binding(wire, status_messages(wire.answered_by_all), control)
    times_ns, highest = group_window.allowed(wire, told, control, start)
    allowed = known_at(times_ns, highest, series.read_before_ns, start)
    falls = 1 + np.flatnonzero(np.diff(series.values) < 0)
    takes_back = _PICKED in channel.parameters
    if len(falls) and not takes_back:
        at = int(falls[0])
        before, value = int(series.values[at - 1]), int(series.values[at])
        text = f"snd-lmt fell from {before} to {value} at sample {at}"
        return failed(SENDER, text, traffic.id, evidence=where, position=value)
    ahead = np.flatnonzero(series.values > allowed)
    if len(ahead):
        at = int(ahead[0])
        value = int(series.values[at])
        text = f"snd-lmt was {value} when status messages had allowed {int(allowed[at])} at most"
        return failed(SENDER, text, traffic.id, evidence=where, position=value)
    least = _least(wire, start)
    if series.last < least and not takes_back:
        text = f"snd-lmt ended at {series.last}, a status message had allowed {least}"
        more = {"evidence": where, "position": series.last, "kind": Kind.STATE}
        return failed(SENDER, text, traffic.id, **more)
    text = f"{len(series.values)} samples of snd-lmt, each within {len(told)} status messages"
    return passed(SENDER, text, traffic.id, evidence=where)


def _least(wire: Wire, start: int) -> int:
    """What this reader's genuine status messages had allowed before the sender's last moments."""
    told = status_messages(wire.answered)
    limits = positions(told, wire.facts.initial_term_id, wire.facts.term_length)
    limits = limits + told["window_bytes"]
    genuine = np.isin(_words(told), _words(status_messages(wire.answering)))
    heard = told["time_ns"] <= heard_until_ns(wire)
    return int(limits[genuine & heard].max(initial=start))


def _words(told: NDArray[np.void]) -> NDArray[np.void]:
    """What each status message says, as one value."""
    names = ["term_id", "term_offset", "window_bytes", "receiver_id"]
    plain = np.stack([told[name].astype(np.int64) for name in names], axis=1)
    kind = np.dtype((np.void, plain.dtype.itemsize * len(names)))
    return np.ascontiguousarray(plain).view(kind).ravel()


def pub_lmt_follows_snd_pos(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """pub-lmt is where the sender has been, or just one window of the publisher ahead of that."""
    found = together(evidence.wire(traffic), evidence.planned(traffic))
    if isinstance(found, Missing):
        return could_not_look(PUBLISHER, found, traffic.id)
    wire, planned = found
    series = stream_series(evidence, traffic.from_host, counter_key.PUBLISHER_LIMIT, wire)
    if isinstance(series, Missing):
        return could_not_look(PUBLISHER, series, traffic.id)
    where = _where(evidence, traffic)
    window = parse_channel(traffic.channel).publication_window_bytes
    window = traffic.term_length // 2 if window is None else window
    start, ends = planned.log.start_position, [planned.log.end_position]
    # A publisher that leaves early leaves the limit at the end of what it produced.
    said = evidence.publisher(traffic)
    if not isinstance(said, Missing):
        ends.append(said.end_position)
    stood = np.unique(np.concatenate([[start, *ends], wire.sent.ends]))
    offence = _misplaced(series, stood, window) or _hurried(series, wire, window, start, ends)
    if offence is not None:
        value, text = offence
        return failed(PUBLISHER, text, traffic.id, evidence=where, position=value)
    ahead = int(np.isin(series.values, stood + window).sum())
    text = f"{ahead} of {len(series.values)} samples of pub-lmt were {window} ahead of the sender"
    return passed(PUBLISHER, text, traffic.id, evidence=where, facts={"ahead": ahead})


def _misplaced(series: Series, stood: NDArray[np.int64], window: int) -> tuple[int, str] | None:
    """The first sample that is at no place where the sender can have put the limit."""
    wrong = np.flatnonzero(~np.isin(series.values, np.concatenate([stood, stood + window])))
    if len(wrong) == 0:
        return None
    value = int(series.values[wrong[0]])
    return value, (
        f"pub-lmt was {value}, where no datagram ends, neither there nor {window} before; "
        f"{len(wrong)} of {len(series.values)} samples are so"
    )


def _hurried(
    series: Series, wire: Wire, window: int, start: int, ends: list[int]
) -> tuple[int, str] | None:
    """The first sample that is more than a window ahead of what had been sent."""
    times_ns = wire.sent.frames["time_ns"].astype(np.int64)
    sent = known_at(times_ns, np.maximum.accumulate(wire.sent.ends), series.read_before_ns, start)
    ahead = np.flatnonzero((series.values > sent + window) & ~np.isin(series.values, ends))
    if len(ahead) == 0:
        return None
    at = int(ahead[0])
    value = int(series.values[at])
    return value, f"pub-lmt was {value} when {int(sent[at])} had been sent, window {window}"


def _where(evidence: Evidence, traffic: TrafficCase) -> tuple[str, ...]:
    folder = evidence.folder
    samples = folder.host(traffic.from_host).counter_samples
    return evidence.name_of(samples), evidence.name_of(folder.capture(traffic.from_host))
