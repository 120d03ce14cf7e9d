"""Detects replays that an archive ended early although the receiver still acknowledged them.

    recorded   |-------------------------------------------------|
    replayed   |------------------------------------| EOS heartbeats
                                     |-- a second --|  more data than a window: acknowledged

An overloaded host may end a replay early: an archive ends a replay after five seconds without a
status message, and a driver times out an archive that gets no processor time. Neither is the cause
if the archive ended normally, and the replay's last second has more new data than can be sent
without a new status message. That is a receiver window, plus the data still to be sent when the
replay is closed. A revoked replay does not count, since its archive could not continue.
"""

from windtunnel.harness.dissect.frames.layout import FLAG_REVOKED
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.exit_codes import ORDERLY_EXIT_CODES
from windtunnel.harness.verdict.core.finding import EvidenceMissing, Missing, present
from windtunnel.harness.verdict.core.wire import Wire

ACKNOWLEDGED_NS = 1_000_000_000
"""Length of the period before the end of a replay in which status messages must arrive to show that
the replay was truncated. It is a fifth of a publication's connection timeout. The other four fifths
allow for a driver that gets no processor time between two readings of its clock. Source: Aeron's
`AERON_PUBLICATION_CONNECTION_TIMEOUT`."""


def was_truncated(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Return whether a stream is a replay that its archive ended early for no valid reason."""
    if not traffic.replays:
        return False
    host = traffic.from_host
    try:
        case, wire, kept = present(evidence.case, evidence.wire(traffic), evidence.archive(host))
    except EvidenceMissing:
        return False
    stream_id = case.traffic_by_id(traffic.replays).stream_id
    stops = [each.stop_position for each in kept.catalog.recordings if each.stream_id == stream_id]
    return (
        len(stops) == 1
        and _archive_ended_orderly(evidence, case, host)
        and _ended_while_acknowledged(wire, stops[0])
    )


def _archive_ended_orderly(evidence: Evidence, case: Case, host: str) -> bool:
    """Return whether a host's archive ended normally on request, and no event affected the host."""
    manifest = evidence.manifest
    if isinstance(manifest, Missing) or any(each.host == host for each in case.events):
        return False
    return any(
        each.name == f"{host}/archive" and each.asked and each.exit_code in ORDERLY_EXIT_CODES
        for each in manifest.processes
    )


def _ended_while_acknowledged(wire: Wire, stop_position: int) -> bool:
    """Return whether a replay ended before `stop_position` while status messages still arrived."""
    eos, eos_positions = wire.end_of_stream_heartbeats(wire.heartbeats_sent)
    if not len(eos) or (eos["flags"] & FLAG_REVOKED).any() or eos_positions.max() >= stop_position:
        return False
    acknowledged_ns = int(eos["time_ns"].min()) - ACKNOWLEDGED_NS
    is_new = ~wire.retransmitted() & (wire.sent.frames["time_ns"] >= acknowledged_ns)
    sent_bytes = int((wire.sent.ends - wire.sent.starts)[is_new].sum())
    # When a publication is closed, the data in its log is still sent: at most one term length.
    return sent_bytes > wire.max_window_bytes() + wire.facts.term_length
