"""The observed streams of a run: those that its case names, and those that its captures show.

    SETUP of stream 1001 from a to b:24325    -->    stream-1001, from a to b
                                              -->    its sessions, in the order of their first SETUP

Only the channel's address is known of a stream that was found. A session that its host sends to
two ports of a receiver comes from two publications, such as that of a live stream and that of its
replay to a subscription that merges both: each has its own positions, retransmits and end. So does
one that begins with a SETUP after the end of another, such as that of a second replay.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import SETUP
from windtunnel.harness.dissect.capture.pcap import sent_by, sent_to
from windtunnel.harness.dissect.frames.flow import heartbeats, positional
from windtunnel.harness.dissect.frames.frames import FRAME, Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.dissect.frames.route import of_port, to_group, within
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX
from windtunnel.harness.scenario.applications.observed_case import found_case
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase

PUBLICATIONS_MAX = 64
"""More than are judged, so that a capture of any content has a bound."""
END_OF_TIME_NS = int(np.iinfo(np.int64).max)
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
    """Return a flow for each session of an observed stream whose SETUPs to the receiver are in the
    sender's capture, in order, for each of its ports, and for each publication. The flow's id names
    what there are several of.

    The channel of a stream that the case names is not that of its sessions at other ports, such as
    those of replays.
    """
    if frames is None:
        return []
    sent = _to_receiver(case, flow, frames)
    sent = sent[sent["stream_id"] == flow.stream_id]
    setups = setups_sent(sent, case.address(flow.from_host))
    setups = setups[setups["destination_port"] > 0]
    paths = list(dict.fromkeys(setups[["session_id", "destination_port"]].tolist()))
    ports = Counter(session_id for session_id, _ in paths)
    flows = []
    for session_id, port in paths:
        own = sent[(sent["session_id"] == session_id) & (sent["destination_port"] == port)]
        only_port = port if ports[session_id] > 1 else None
        one = _session(flow, session_id, len(paths), only_port)
        if not ({port, *own["source_port"].tolist()} & {*flow.all_ports}):
            one = one.model_copy(update={"found": True, "limits": None})
        spans = _publications(own)
        flows += [_publication(one, number, spans) for number in range(len(spans))]
    return flows


def _to_receiver(case: Case, flow: TrafficCase, frames: Frames) -> Frames:
    """Return the frames from the sender of a stream to its receiver or, if the case names the
    stream, to a group.
    """
    sent = frames[sent_by(frames, case.address(flow.from_host))]
    is_own = sent_to(sent, case.address(flow.to_host))
    found: Frames = sent[is_own if flow.found else is_own | to_group(sent)]
    return found


def _session(
    flow: TrafficCase, session_id: int, count: int, port: int | None = None
) -> TrafficCase:
    name = f"{flow.id} session {session_id}" if count > 1 else flow.id
    if port is not None:
        name += f" port {port}"
    return flow.model_copy(update={"id": name, "session_id": session_id, "session_port": port})


def _publications(frames: Frames) -> list[tuple[int, int]]:
    """Return when each publication of a session sent the given frames. One begins with the first
    SETUP after the end of the one before it, if data follows, or with a SETUP that has another
    initial term id or term length. There are at most PUBLICATIONS_MAX.
    """
    beats = heartbeats(frames)
    ends_ns = np.sort(beats["time_ns"][(beats["flags"] & FLAG_END_OF_STREAM) != 0])
    last_data_ns = int(positional(frames)["time_ns"].max(initial=0))
    setups = frames[frames["frame_type"] == SETUP]
    setups = setups[np.argsort(setups["time_ns"], kind="stable")]
    begins_ns, before = [0], None
    for setup_ns, *geometry in setups[["time_ns", "initial_term_id", "term_length"]].tolist():
        first, after = np.searchsorted(ends_ns, [begins_ns[-1], setup_ns])
        is_next = first < after and setup_ns < last_data_ns
        if before is not None and (is_next or geometry != before):
            begins_ns.append(setup_ns)
        before = geometry
        if len(begins_ns) == PUBLICATIONS_MAX:
            break
    return list(itertools.pairwise([*begins_ns, END_OF_TIME_NS]))


def _publication(flow: TrafficCase, number: int, spans: Sequence[tuple[int, int]]) -> TrafficCase:
    if len(spans) == 1:
        return flow
    name = f"{flow.id} publication {number + 1}"
    return flow.model_copy(update={"id": name, "session_span_ns": spans[number]})


def of_publication(frames: Frames, flow: TrafficCase) -> Frames:
    """Return the frames to and from one publication of a session that has several."""
    chosen = of_port(frames, flow.session_port) & within(frames, flow.session_span_ns)
    found: Frames = frames[chosen]
    return found


def setups_sent(frames: Frames | None, address: str) -> Frames:
    """Return the SETUPs with a term length that an address has sent. A host without a capture has
    sent none.
    """
    if frames is None:
        return np.zeros(0, dtype=FRAME)
    setups = frames[frames["frame_type"] == SETUP]
    valid: Frames = setups[sent_by(setups, address) & (setups["term_length"] > 0)]
    return valid
