"""Check that the loss report of a receiving driver agrees with the capture at its host.

    arrived   |####|    gap    |####|          bytes that NAKs requested, each counted once
              NAK  [-----------)                 <=  bytes lost according to the report
              NAK  [------)  (a part is left)    <=  bytes of all gaps that could be detected

A driver reports a gap when its NAK is due, and that of an unreliable stream when it fills it. The
times of an entry are compared in a simulation: only there, nothing but the driver can be late.
"""

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import UnsafeFileError, map_bytes
from windtunnel.harness.dissect.driver_files.loss_report import (
    Loss,
    LossReport,
    read_loss_report,
)
from windtunnel.harness.dissect.frames.archive_frames import archive_places
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.counters.archive_channels import subscribed_channels
from windtunnel.harness.verdict.checks.counters.packet_counts import was_killed
from windtunnel.harness.verdict.checks.retransmission.recovery import socket_drops
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Planned
from windtunnel.harness.verdict.core.finding import Finding, Missing, failed, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.process_error import unread
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.acceptance import certainly_accepted, while_received
from windtunnel.harness.verdict.views.coverage import filled_gaps
from windtunnel.harness.verdict.views.interruptions import clock_steps
from windtunnel.harness.verdict.views.pauses import pauses_of

AGREES = "loss_report_agrees"

SLACK_MS = 2
"""Time that a conductor needs to report a gap whose NAK is sent, with a clock of milliseconds."""
_NS_PER_MS = 1_000_000
LENGTH_MAX = 1 << 24
"""Maximum length of a loss report, far above that of the drivers under test."""


def loss_report_agrees(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The loss report counts each byte that NAKs requested exactly once, and no bytes outside of
    gaps; it names the stream and its source; and in a simulation it has the times of the first and
    last NAK, and an observation for each NAK for new bytes.
    """
    wire, planned, case, report = present(
        evidence.wire(traffic),
        evidence.planned(traffic),
        evidence.case,
        _report(evidence, traffic.to_host),
    )
    several = traffic.rejoins or len(traffic.publishers) > 1 or case.sessions_of(traffic) > 1
    if several or was_killed(evidence, traffic.to_host):
        text = "not applicable: the captured frames belong to several images"
        return Finding(AGREES, Outcome.INCONCLUSIVE, text, traffic.id)
    where = (
        evidence.name_of(evidence.folder.host(traffic.to_host).loss_report),
        evidence.name_of(evidence.folder.capture(traffic.to_host)),
    )
    if report.problem:
        text = f"the driver wrote an invalid loss report: {report.problem}"
        return failed(AGREES, text, traffic.id, evidence=where)
    ids = wire.facts.session_id, wire.facts.stream_id
    own = [each for each in report.losses if (each.session_id, each.stream_id) == ids]
    # An archive has an entry of its own for a recording that it replicated, with the same ids.
    copied = [f"endpoint={address}:{port}" for address, port in archive_places(case)]
    own = [each for each in own if not any(name in each.channel for name in copied)]
    asked = _union_length(*wire.nak_ranges(wire.naks(wire.feedback_sent)))
    if not traffic.reliable:
        asked = _filled_bytes(evidence, traffic, planned)
    start = max(planned.log.start_position, evidence.join_position(traffic))
    most = _gap_bytes(wire, start)
    lost = sum(each.bytes_lost for each in own)
    facts = {"lost": lost, "least": asked, "most": most}
    text = f"the loss report has {lost} bytes, expected {asked} to {most} according to the capture"
    dropped = socket_drops(evidence, traffic.to_host)
    if not asked <= lost <= most and dropped:
        text += f"; however, the host's sockets dropped {dropped} captured datagrams"
        return Finding(AGREES, Outcome.INCONCLUSIVE, text, traffic.id, where, facts=facts)
    if not asked <= lost <= most:
        return failed(AGREES, text, traffic.id, evidence=where, facts=facts)
    has_times = traffic.reliable and is_virtual(case) and not _was_paused(evidence, traffic)
    steps_ns = clock_steps(evidence, traffic.to_host)
    for each in own:
        wrong = _misnamed(each, wire, traffic)
        if has_times and not wrong:
            wrong = _misdated(each, wire, steps_ns)
        if has_times and not wrong:
            wrong = _miscounted(each, wire)
        if wrong:
            return failed(AGREES, wrong, traffic.id, evidence=where, facts=facts)
    return passed(AGREES, text, traffic.id, evidence=where, facts=facts)


def _filled_bytes(evidence: Evidence, traffic: TrafficCase, planned: Planned) -> int:
    """Return the number of bytes in gaps that the driver of an unreliable stream has filled."""
    frames = evidence.frames_seen(traffic)
    if isinstance(frames, Missing):
        return 0
    _, spans, _ = filled_gaps(frames, planned)
    return int(spans.sum())


def _report(evidence: Evidence, host: str) -> LossReport | Missing:
    """Return a host's loss report."""
    path = evidence.folder.host(host).loss_report
    name = evidence.name_of(path)
    try:
        content = map_bytes(path)
    except UnsafeFileError as error:
        return Missing(name, f"cannot be parsed: {error}", damaged=True)
    except OSError as error:
        return unread(name, error)
    if len(content) > LENGTH_MAX:
        text = f"has {len(content)} bytes, expected at most {LENGTH_MAX}"
        return Missing(name, text, damaged=True)
    return read_loss_report(content)


def _misnamed(loss: Loss, wire: Wire, traffic: TrafficCase) -> str:
    """Describe a wrong channel, source or count of an entry, or return ""."""
    known = subscribed_channels(traffic, loss.session_id)
    if loss.channel not in {*known, *(channel for _, channel in traffic.receives)}:
        return f"the loss report has channel {loss.channel!r}, expected {traffic.receive!r}"
    # The source is that of the SETUP, to which the receiver replies. A fault may change others.
    replied = wire.feedback_sent["destination_port"]
    ports = {str(each) for each in np.union1d(wire.arrived.frames["source_port"], replied)}
    if loss.source.rpartition(":")[2] not in ports:
        return f"the loss report has source {loss.source!r}, expected one with a port of {ports}"
    if not 1 <= loss.observation_count <= loss.bytes_lost:
        return (
            f"the loss report has {loss.observation_count} observations of {loss.bytes_lost} bytes"
        )
    return ""


def _misdated(loss: Loss, wire: Wire, steps_ns: list[tuple[int, int]]) -> str:
    """Describe a wrong time of an entry, or return "". The last new byte was lost at the latest
    when a NAK for it was sent.

    `steps_ns` has the times at which the host's clock was stepped, and by how much.
    """
    naks = wire.naks(wire.feedback_sent)
    arrived_ns = np.append(wire.arrived.frames["time_ns"], wire.heartbeat_times_ns)
    if not len(naks) or not len(arrived_ns):
        return ""
    sent_ms = naks["time_ns"].astype(np.int64) // _NS_PER_MS
    _, ends = wire.nak_ranges(naks)
    least_ms = int(arrived_ns.min()) // _NS_PER_MS
    expected = (
        ("first", loss.first_ms, least_ms, int(sent_ms.min())),
        ("last", loss.last_ms, int(sent_ms[np.argmax(ends)]) - SLACK_MS, int(sent_ms.max())),
    )
    for name, found_ms, from_ms, until_ms in expected:
        if not _is_within(found_ms, from_ms, until_ms + SLACK_MS, steps_ns):
            text = f"the {name} observation in the loss report is at {found_ms} ms, expected "
            text += f"{from_ms} to {until_ms + SLACK_MS} ms according to the NAKs"
            return f"{text}, by a clock without the steps of the host's" if steps_ns else text
    return ""


def _is_within(read_ms: int, from_ms: int, until_ms: int, steps_ns: list[tuple[int, int]]) -> bool:
    """Return whether a stepped clock read a time between two times of a clock that was not."""
    offset_ms, since_ms = 0, from_ms
    for at_ns, step_ns in steps_ns:
        at_ms = at_ns // _NS_PER_MS
        if since_ms <= read_ms - offset_ms <= min(until_ms, at_ms):
            return True
        offset_ms, since_ms = offset_ms + step_ns // _NS_PER_MS, max(since_ms, at_ms)
    return since_ms <= read_ms - offset_ms <= until_ms


def _miscounted(loss: Loss, wire: Wire) -> str:
    """Describe a wrong number of observations in an entry, or return ""."""
    most = _fresh_ranges(*wire.nak_ranges(wire.naks(wire.feedback_sent)))
    if loss.observation_count == most:
        return ""
    return (
        f"the loss report has {loss.observation_count} observations, but {most} NAKs were for "
        "bytes that no earlier one had requested"
    )


def _fresh_ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return the number of ranges with a byte that is in no earlier range."""
    begins: list[int] = []
    limits: list[int] = []
    count = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        # The disjoint ranges so far that this one meets are joined with it.
        first, last = bisect_left(limits, start), bisect_right(begins, end)
        if first == last or begins[first] > start or limits[first] < end:
            count += 1
        low = min([start, *begins[first:last]])
        high = max([end, *limits[first:last]])
        begins[first:last], limits[first:last] = [low], [high]
    return count


def _was_paused(evidence: Evidence, traffic: TrafficCase) -> bool:
    pauses = pauses_of(evidence, traffic.to_host)
    return isinstance(pauses, Missing) or len(pauses.starts_ns) > 0


def _union_length(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return the number of positions that lie in at least one range."""
    if len(starts) == 0:
        return 0
    order = np.argsort(starts, kind="stable")
    starts, tops = starts[order], np.maximum.accumulate(ends[order])
    covered = np.append(starts[:1], np.maximum(starts[1:], tops[:-1]))
    return int(np.maximum(tops - covered, 0).sum())


def _gap_bytes(wire: Wire, start: int) -> int:
    """Return the number of bytes in gaps that a receiver could detect: those that were missing when
    a frame or a heartbeat beyond them arrived.
    """
    sure = wire.arrived.where(certainly_accepted(wire, start) & while_received(wire))
    # At equal times, heartbeats and forged frames come first: they may show a longer gap.
    parts = (
        (wire.heartbeat_times_ns, wire.heartbeat_positions, wire.heartbeat_positions),
        (wire.forged.frames["time_ns"].astype(np.int64), wire.forged.ends, wire.forged.ends),
        (sure.frames["time_ns"].astype(np.int64), sure.starts, sure.ends),
    )
    times_ns, begins, ends = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(times_ns, kind="stable")
    tops = np.maximum.accumulate(np.append(start, ends[order]))[:-1]
    return int(np.maximum(begins[order] - tops, 0).sum())
