"""Whether an archive ended a replay before its recording, though the replay was still heard.

    recorded   |-------------------------------------------------|
    replayed   |------------------------------------| end, told by heartbeats
                                     |-- a second --|  more than any window: status messages came

An overloaded host may end a replay early: an archive leaves one that no status message answers any
more, which takes five seconds, and a driver leaves an archive that had no turn. Neither is so where
the archive lived to its end, and where in the second before the replay's end more of it was sent
for the first time than its reader's window, and what was still to be sent when it was closed, allow
without a new status message. A replay that is revoked was not ended: its archive could not go on.
"""

from windtunnel.harness.dissect.frames.layout import FLAG_REVOKED
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.exit_codes import ORDERLY_EXIT_CODES
from windtunnel.harness.verdict.core.finding import Missing, together
from windtunnel.harness.verdict.core.wire import Wire

HEARD_NS = 1_000_000_000
"""A fifth of what a publication waits for status messages, which leaves four for a driver without a
turn between two looks at its clock. Source: Aeron's `AERON_PUBLICATION_CONNECTION_TIMEOUT`."""


def was_cut_short(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Whether a traffic is a replay that its archive ended early, in no haste at all."""
    if not traffic.replays:
        return False
    host = traffic.from_host
    found = together(evidence.case, evidence.wire(traffic), evidence.archive(host))
    if isinstance(found, Missing):
        return False
    case, wire, kept = found
    stream_id = case.traffic_by_id(traffic.replays).stream_id
    stops = [each.stop_position for each in kept.catalog.recordings if each.stream_id == stream_id]
    return (
        len(stops) == 1
        and _archive_lived(evidence, case, host)
        and _ended_while_heard(wire, stops[0])
    )


def _archive_lived(evidence: Evidence, case: Case, host: str) -> bool:
    """Whether the archive of a host, which nothing befell on order, ended well when asked to."""
    manifest = evidence.manifest
    if isinstance(manifest, Missing) or any(each.host == host for each in case.events):
        return False
    return any(
        each.name == f"{host}/archive" and each.asked and each.exit_code in ORDERLY_EXIT_CODES
        for each in manifest.processes
    )


def _ended_while_heard(wire: Wire, stop_position: int) -> bool:
    """Whether heartbeats told an end before a position, and status messages came until then."""
    told, told_at = wire.ends_told(wire.beats_sent)
    if not len(told) or (told["flags"] & FLAG_REVOKED).any() or told_at.max() >= stop_position:
        return False
    heard_ns = int(told["time_ns"].min()) - HEARD_NS
    is_new = ~wire.resent() & (wire.sent.frames["time_ns"] >= heard_ns)
    sent_bytes = int((wire.sent.ends - wire.sent.starts)[is_new].sum())
    # What lies in the log when a publication is closed is sent yet, a term of it at most.
    return sent_bytes > wire.widest_window_bytes() + wire.facts.term_length
