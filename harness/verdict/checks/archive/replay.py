"""Detection of replays that an archive ended early although the receiver still acknowledged them.

    recorded   |-------------------------------------------------|
    replayed   |------------------------------------| EOS heartbeats
                                     |-- a second --|  more data than a window: acknowledged

An overloaded host may end a replay early: an archive ends a replay without status messages after
five seconds, and a driver times out an archive that got no processor time. Both are ruled out if
the archive ran to its end, and if in the last second of the replay more new data was sent than the
receiver's window, plus the data still to be sent when the replay was closed, allow without a new
status message. A revoked replay does not count: its archive could not continue.
"""

from windtunnel.harness.dissect.frames.layout import FLAG_REVOKED
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.exit_codes import ORDERLY_EXIT_CODES
from windtunnel.harness.verdict.core.finding import Missing, all_or_missing
from windtunnel.harness.verdict.core.wire import Wire

ACKNOWLEDGED_NS = 1_000_000_000
"""A fifth of a publication's connection timeout; the other four fifths allow for a driver that got
no processor time between two readings of its clock. Source: Aeron's
`AERON_PUBLICATION_CONNECTION_TIMEOUT`."""


def was_truncated(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Whether a traffic is a replay that its archive ended early without any overload."""
    if not traffic.replays:
        return False
    host = traffic.from_host
    found = all_or_missing(evidence.case, evidence.wire(traffic), evidence.archive(host))
    if isinstance(found, Missing):
        return False
    case, wire, kept = found
    stream_id = case.traffic_by_id(traffic.replays).stream_id
    stops = [each.stop_position for each in kept.catalog.recordings if each.stream_id == stream_id]
    return (
        len(stops) == 1
        and _archive_ended_orderly(evidence, case, host)
        and _ended_while_acknowledged(wire, stops[0])
    )


def _archive_ended_orderly(evidence: Evidence, case: Case, host: str) -> bool:
    """Whether the archive of a host without host events ended normally on a shutdown request."""
    manifest = evidence.manifest
    if isinstance(manifest, Missing) or any(each.host == host for each in case.events):
        return False
    return any(
        each.name == f"{host}/archive" and each.asked and each.exit_code in ORDERLY_EXIT_CODES
        for each in manifest.processes
    )


def _ended_while_acknowledged(wire: Wire, stop_position: int) -> bool:
    """Whether the stream ended before a position although status messages arrived until then."""
    eos, eos_positions = wire.end_of_stream_heartbeats(wire.heartbeats_sent)
    if not len(eos) or (eos["flags"] & FLAG_REVOKED).any() or eos_positions.max() >= stop_position:
        return False
    acknowledged_ns = int(eos["time_ns"].min()) - ACKNOWLEDGED_NS
    is_new = ~wire.retransmitted() & (wire.sent.frames["time_ns"] >= acknowledged_ns)
    sent_bytes = int((wire.sent.ends - wire.sent.starts)[is_new].sum())
    # Data in the log when a publication is closed is still sent, one term of it at most.
    return sent_bytes > wire.max_window_bytes() + wire.facts.term_length
