"""The archives' own streams between two hosts, as captured: requests, responses and copies.

A host's counters include them. Nothing but the captures is known of them: there are no records of
what was offered or read.
"""

from dataclasses import replace

import numpy as np

from windtunnel.harness.dissect.capture.pcap import Capture, sent_to
from windtunnel.harness.dissect.frames.archive_frames import of_archives
from windtunnel.harness.dissect.frames.observed_flows import setups_sent
from windtunnel.harness.scenario.applications.observed_case import found_case
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import present
from windtunnel.harness.verdict.core.wire import Wire, wire_of

NOT_CAPTURED = ": the counters are not lower; the archive also replayed over the loopback"
"""What a finding says about a host whose archive `replays_to_itself`."""
_PATH = ("stream_id", "session_id", "destination_port")


def archive_wires(evidence: Evidence) -> list[tuple[TrafficCase, Wire]]:
    """Return each session of each stream that archives sent to each other or to a client on another
    host.
    """
    case = present(evidence.case)
    copies = {(each.recorded, each.replicated) for each in case.traffic if each.replicated}
    ways = sorted(copies | {way[::-1] for way in copies})
    return [found for sender, receiver in ways for found in _between(evidence, sender, receiver)]


def capture_of_archives(evidence: Evidence, host: str) -> Capture:
    """Return the capture of a host with only the frames of archives' own streams."""
    case, capture = present(evidence.case, evidence.capture(host))
    return replace(capture, frames=capture.frames[of_archives(capture.frames, case, host)])


def replays_to_itself(case: Case, host: str) -> bool:
    """Return whether the archive of a host replays to a subscriber there that merges. The frames
    pass the loopback, which is not captured.
    """
    return any(each.merges is not None and each.to_host == host for each in case.traffic)


def _between(evidence: Evidence, sender: str, receiver: str) -> list[tuple[TrafficCase, Wire]]:
    case = present(evidence.case)
    near, far = (capture_of_archives(evidence, host) for host in (sender, receiver))
    setups = setups_sent(near.frames, case.address(sender))
    setups = setups[sent_to(setups, case.address(receiver))]
    found = []
    for stream, session, port in np.unique(setups[[*_PATH]]).tolist():
        name = f"stream {stream} of archives from {sender} to port {port} of {receiver}"
        flow = found_case(stream, sender, receiver, case.address(receiver), [port], name)
        flow = flow.model_copy(update={"session_id": session})
        wire = wire_of(near, far, case, flow)
        if wire is not None:
            found.append((flow, wire))
    return found
