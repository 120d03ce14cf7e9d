"""Check of SETUP frames: a sender repeats them until it receives a status message.

SETUP   SETUP   SETUP   DATA DATA ....... heartbeat .. heartbeat .. DATA
|<100ms>|       ^ SM             |<-- 100 ms -->|

In a group, each SETUP goes to all receivers, and any of them may answer it or request another one.
While a sender's driver is paused, it neither sends nor reads. If the publisher was killed, only its
last session is judged.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import SETUP, SM
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.copies import without_copies
from windtunnel.harness.dissect.frames.layout import SETUP_FLAG_GROUP, SM_FLAG_SEND_SETUP
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.group_window import READ_WITHIN_NS
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.checks.retransmission.nak_checks import PACE_SLACK_NS
from windtunnel.harness.verdict.core.driver_setting import duration_setting_ns
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire, is_copied, status_messages
from windtunnel.harness.verdict.views.pauses import pauses_of

SETUPS = "setups_until_answered"

INTERVAL_NS = 100_000_000
"""Interval of SETUPs until a status message arrives."""
TIMEOUT_NS = 5_000_000_000
"""Time without a status message after which a publication is not connected. Source: Aeron 1.53."""
TIMEOUT_SETTING = "AERON_PUBLICATION_CONNECTION_TIMEOUT"


def setups_until_answered(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """SETUPs are sent every 100 ms until a status message arrives, and then only on request, and
    not sooner after the last one. They have the TTL of the channel, and the flag of a group.
    """
    wire, case, capture, pauses = present(
        evidence.wire(traffic),
        evidence.case,
        evidence.capture_of_streams(traffic.from_host),
        pauses_of(evidence, traffic.from_host),
    )
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    own = capture.frames[sent_by(capture.frames, case.address(traffic.from_host))]
    own = own[(own["frame_type"] == SETUP) & (own["stream_id"] == traffic.stream_id)]
    if case.sessions_of(traffic) > 1:
        own = own[own["session_id"] == wire.facts.session_id]
    channel = parse_channel(traffic.channel)
    if channel.is_group:
        # Each receiver gets every SETUP, on each of its ports.
        own = own[between(own, case.address(traffic.from_host), case.address(traffic.to_host))]
        own = own[own["destination_port"] == own["destination_port"][:1]]
    if is_copied(capture.frames, case, traffic):
        own = without_copies(own)
    flags = SETUP_FLAG_GROUP if channel.is_group else 0
    if (own["flags"] != flags).any():
        other = int(own["flags"][own["flags"] != flags][0])
        text = f"a SETUP has the flags {other:#04x}, expected {flags:#04x}"
        return failed(SETUPS, text, traffic.id, evidence=where)
    ttl = int(channel.parameters.get("ttl", "0"))
    if (own["ttl"] != ttl).any():
        other = int(own["ttl"][own["ttl"] != ttl][0])
        text = f"a SETUP has a TTL of {other}, expected {ttl} as in the channel"
        return failed(SETUPS, text, traffic.id, evidence=where)
    setups_ns = np.sort(own["time_ns"].astype(np.int64))
    answers_ns = np.sort(
        status_messages(wire.feedback_arrived_from_all)["time_ns"].astype(np.int64)
    )
    first_answer_ns = int(answers_ns[0]) if len(answers_ns) else int(np.iinfo(np.int64).max)
    early = setups_ns[setups_ns < first_answer_ns]
    lead_ns = _lead_ns(early)
    if lead_ns > INTERVAL_NS + PACE_SLACK_NS:
        text = f"SETUPs were {lead_ns} ns early, expected an interval of {INTERVAL_NS} ns"
        return failed(SETUPS, text, traffic.id, evidence=where)
    if is_virtual(case) and not channel.control_mode:
        lead_ns = _lead_ns(setups_ns)
        if lead_ns > PACE_SLACK_NS:
            text = f"a SETUP was sent {lead_ns} ns early, expected an interval of {INTERVAL_NS} ns"
            return failed(SETUPS, text, traffic.id, evidence=where)
    marks_ns = np.append(early, first_answer_ns) if len(answers_ns) else early
    waits = np.diff(marks_ns) - pauses.within_ns(marks_ns[:-1], marks_ns[1:])
    if (waits > INTERVAL_NS + TOLERANCE_NS).any():
        text = f"no SETUP was sent for {int(waits.max())} ns before the first status message, "
        text += f"expected one every {INTERVAL_NS} ns"
        return failed(SETUPS, text, traffic.id, evidence=where)
    timeout_ns = duration_setting_ns(case, traffic.from_host, TIMEOUT_SETTING, TIMEOUT_NS)
    repeats = _repeats(setups_ns, answers_ns, timeout_ns or 0)
    late = _unrequested(wire, setups_ns, pauses.due_ns(answers_ns, TOLERANCE_NS), repeats)
    if len(late):
        text = (
            f"{len(late)} unrequested SETUPs were sent after the first status message, "
            f"the first of them {int(late[0]) - first_answer_ns} ns after it"
        )
        return failed(SETUPS, text, traffic.id, evidence=where)
    text = f"{len(setups_ns)} SETUPs, {len(early)} of them before the first status message"
    return passed(SETUPS, text, traffic.id, evidence=where)


def _lead_ns(setups_ns: NDArray[np.int64]) -> int:
    """Return the longest time by which a SETUP was sent early. After each SETUP, another is due
    every 100 ms.

    A SETUP may leave long after its sender read the clock, while the next one is on time relative
    to that reading. So a lead of one interval is legal, and the following interval makes up for it.
    """
    due_ns = setups_ns - INTERVAL_NS * np.arange(len(setups_ns))
    return int((np.maximum.accumulate(due_ns) - due_ns).max(initial=0))


def _unrequested(
    wire: Wire,
    setups_ns: NDArray[np.int64],
    read_ns: NDArray[np.int64],
    repeats: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the times of the SETUPs that were sent after a status message although no receiver had
    requested one, given the times by which the sender had read the status messages, and which
    SETUPs may be repeated by the next one.
    """
    frames = wire.feedback_arrived_from_all
    requests = frames[(frames["frame_type"] == SM) & ((frames["flags"] & SM_FLAG_SEND_SETUP) != 0)]
    requests_ns = np.sort(requests["time_ns"].astype(np.int64))
    before_ns = np.append(0, setups_ns[:-1])
    until = np.searchsorted(requests_ns, setups_ns, "right")
    requested = until > np.searchsorted(requests_ns, before_ns)
    # Of two requests that arrived just before a SETUP, it may have read one after it.
    requested |= until > np.searchsorted(requests_ns, before_ns - READ_WITHIN_NS) + 1
    for at in np.flatnonzero(~requested[1:] & repeats[:-1]).tolist():
        requested[at + 1] |= requested[at]
    answered = setups_ns >= read_ns.min(initial=np.iinfo(np.int64).max)
    late: NDArray[np.int64] = setups_ns[answered & ~requested]
    return late


def _repeats(
    setups_ns: NDArray[np.int64], answers_ns: NDArray[np.int64], timeout_ns: int
) -> NDArray[np.bool_]:
    """Return a mask of the SETUPs of a sender that may not have been connected, so that it repeats
    a requested one: no status message had arrived within the timeout.
    """
    oldest_ns = setups_ns - timeout_ns + TOLERANCE_NS
    last = np.searchsorted(answers_ns, setups_ns, side="left")
    found: NDArray[np.bool_] = last <= np.searchsorted(answers_ns, oldest_ns, side="left")
    return found
