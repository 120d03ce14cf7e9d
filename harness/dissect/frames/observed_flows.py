"""The observed streams of a run: those that its case names, and those that its captures show.

    SETUP of stream 1001 from a to b:24325    -->    stream-1001, from a to b
                                              -->    its sessions, in the order of their first SETUP

Only the channel's address is known of a stream that was found. A session that its host sends to
two ports of a receiver comes from two publications, such as that of a live stream and that of its
replay to a subscription that merges both: each has its own positions, retransmits and end.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import SETUP
from windtunnel.harness.dissect.capture.pcap import sent_by, sent_to
from windtunnel.harness.dissect.frames.frames import FRAME, Frames
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX
from windtunnel.harness.scenario.applications.observed_case import found_case
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase

FramesOf = Callable[[str], Frames | None]
"""Returns the frames that were captured at a host, or None if there is no capture."""


def observed_flows(case: Case, frames_of: FramesOf) -> tuple[TrafficCase, ...]:
    """Return the observed streams of a run. Of those that were found, at most as many are returned
    as a scenario can name.
    """
    if not case.observes_all:
        return case.observed
    found = list(found_flows(case, frames_of))
    streams = [stream for stream, _, _, _ in found]
    cases = []
    for stream, sender, receiver, ports in found[:OBSERVED_MAX]:
        name = f"stream-{stream}"
        if streams.count(stream) > 1:
            name += f"-{sender}-{receiver}"
        address = case.address(receiver)
        cases.append(found_case(stream, sender, receiver, address, ports, name))
    return (*case.observed, *cases)


def found_flows(case: Case, frames_of: FramesOf) -> Iterator[tuple[int, str, str, list[int]]]:
    """Yield stream id, sender, receiver and ports of each stream that the case does not name."""
    named = {(each.stream_id, each.from_host, each.to_host) for each in case.observed}
    planned = {each.stream_id for each in case.traffic}
    for sender, receiver in case.directions:
        setups = setups_sent(frames_of(sender), case.address(sender))
        setups = setups[sent_to(setups, case.address(receiver))]
        setups = setups[setups["destination_port"] > 0]
        ports: dict[int, list[int]] = {}
        for stream, port in np.unique(setups[["stream_id", "destination_port"]]).tolist():
            ports.setdefault(stream, []).append(port)
        for stream in sorted(ports):
            if stream not in planned and (stream, sender, receiver) not in named:
                yield stream, sender, receiver, ports[stream]


def observed_sessions(case: Case, flow: TrafficCase, frames: Frames | None) -> list[TrafficCase]:
    """Return a flow for each session of an observed stream whose SETUPs are in the sender's
    capture, in order: if the stream was found, only those to the receiver, and one for each of its
    ports. The flow's id names the session if there are several.
    """
    setups = setups_sent(frames, case.address(flow.from_host))
    setups = setups[setups["stream_id"] == flow.stream_id]
    if not flow.found:
        sessions = list(dict.fromkeys(setups["session_id"].tolist()))
        return [_session(flow, each, None, len(sessions)) for each in sessions]
    setups = setups[sent_to(setups, case.address(flow.to_host)) & (setups["destination_port"] > 0)]
    paths = list(dict.fromkeys(setups[["session_id", "destination_port"]].tolist()))
    ports = Counter(session_id for session_id, _ in paths)
    return [
        _session(flow, session_id, port if ports[session_id] > 1 else None, len(paths))
        for session_id, port in paths
    ]


def _session(flow: TrafficCase, session_id: int, port: int | None, count: int) -> TrafficCase:
    name = f"{flow.id} session {session_id}" if count > 1 else flow.id
    if port is not None:
        name += f" port {port}"
    return flow.model_copy(update={"id": name, "session_id": session_id, "session_port": port})


def setups_sent(frames: Frames | None, address: str) -> Frames:
    """Return the SETUPs with a term length that an address has sent. A host without a capture has
    sent none.
    """
    if frames is None:
        return np.zeros(0, dtype=FRAME)
    setups = frames[frames["frame_type"] == SETUP]
    valid: Frames = setups[sent_by(setups, address) & (setups["term_length"] > 0)]
    return valid
