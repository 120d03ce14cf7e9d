"""What a sender says when it has nothing to send: SETUPs until it is heard, then heartbeats.

SETUP   SETUP   SETUP   DATA DATA ....... heartbeat .. heartbeat .. DATA
|<100ms>|       ^ SM             |<-- 100 ms -->|

Of a group each SETUP goes to all readers, and any of them may answer it or ask for one.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import SETUP, SM
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.layout import SM_FLAG_SEND_SETUP
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.checks.retransmission.nak_checks import PACE_SLACK_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.wire import Wire

SETUPS = "setups_until_answered"

INTERVAL_NS = 100_000_000
"""Between two SETUPs that nobody has answered."""


def setups_until_answered(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """SETUPs leave each 100 ms until a status message comes, and then only when asked for."""
    found = together(evidence.wire(traffic), evidence.case, evidence.capture(traffic.from_host))
    if isinstance(found, Missing):
        return could_not_look(SETUPS, found, traffic.id)
    wire, case, capture = found
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    own = capture.frames[sent_by(capture.frames, case.address(traffic.from_host))]
    own = own[(own["frame_type"] == SETUP) & (own["stream_id"] == traffic.stream_id)]
    if parse_channel(traffic.channel).is_group:
        # Each reader gets every SETUP, and so does each of its ports.
        own = own[between(own, case.address(traffic.from_host), case.address(traffic.to_host))]
        own = own[own["destination_port"] == own["destination_port"][:1]]
    setups_ns = np.sort(own["time_ns"].astype(np.int64))
    told_ns = np.sort(status_messages(wire.answered_by_all)["time_ns"].astype(np.int64))
    heard_ns = int(told_ns[0]) if len(told_ns) else int(np.iinfo(np.int64).max)
    early = setups_ns[setups_ns < heard_ns]
    lead_ns = _lead_ns(early)
    if lead_ns > INTERVAL_NS + PACE_SLACK_NS:
        text = f"SETUPs came {lead_ns} ns ahead of one each {INTERVAL_NS} ns"
        return failed(SETUPS, text, traffic.id, evidence=where)
    waits = np.diff(np.append(early, heard_ns) if len(told_ns) else early)
    if (waits > INTERVAL_NS + TOLERANCE_NS).any():
        text = f"no SETUP left for {int(waits.max())} ns while nobody had answered"
        return failed(SETUPS, text, traffic.id, evidence=where)
    late = _unasked(wire, setups_ns, told_ns)
    if len(late):
        text = (
            f"{len(late)} SETUPs left though a status message had come and none was asked for, "
            f"the first {int(late[0]) - heard_ns} ns after it"
        )
        return failed(SETUPS, text, traffic.id, evidence=where)
    text = f"{len(setups_ns)} SETUPs, {len(early)} of them before the first status message"
    return passed(SETUPS, text, traffic.id, evidence=where)


def _lead_ns(setups_ns: NDArray[np.int64]) -> int:
    """How far SETUPs ran ahead of their pace, counted from any of them.

    One may leave long after its sender looked at its clock, and the next in time for that look: a
    lead of one interval is no haste, and the next but one makes up for it.
    """
    due_ns = setups_ns - INTERVAL_NS * np.arange(len(setups_ns))
    return int((np.maximum.accumulate(due_ns) - due_ns).max(initial=0))


def _unasked(
    wire: Wire, setups_ns: NDArray[np.int64], told_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The SETUPs that had no reason: answered long ago, and not asked for since the one before."""
    frames = wire.answered_by_all
    asks = frames[(frames["frame_type"] == SM) & ((frames["flags"] & SM_FLAG_SEND_SETUP) != 0)]
    asks_ns = np.sort(asks["time_ns"].astype(np.int64))
    before_ns = np.append(np.iinfo(np.int64).min, setups_ns[:-1])
    asked = np.searchsorted(asks_ns, setups_ns, "right") > np.searchsorted(asks_ns, before_ns)
    heard = np.searchsorted(np.sort(told_ns), setups_ns - TOLERANCE_NS, side="right") > 0
    late: NDArray[np.int64] = setups_ns[heard & ~asked]
    return late
