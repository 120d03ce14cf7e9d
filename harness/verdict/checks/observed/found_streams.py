"""The streams of `observe: all`: those whose SETUPs the captures show.

    SETUP of stream 1001 from a to b:24325    -->    stream-1001, from a to b

Only the channel's address is known of them. A stream to a multicast group has no single receiver
and must be named; it is reported.
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import SETUP
from windtunnel.harness.dissect.capture.pcap import sent_by, sent_to
from windtunnel.harness.dissect.frames.frames import FRAME, Frames
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX
from windtunnel.harness.scenario.applications.observed_case import found_case
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing

NAMED_MAX = 8
"""Maximum number of streams of a host that are reported by name because they are not judged."""


def observed_of(evidence: Evidence, case: Case) -> tuple[TrafficCase, ...]:
    """Return the observed streams of a run: those that its case names, and those that were found,
    of which at most as many as a scenario can name.
    """
    if not case.observes_all:
        return case.observed
    found = list(_found(evidence, case))
    streams = [stream for stream, _, _, _ in found]
    cases = []
    for stream, sender, receiver, ports in found[:OBSERVED_MAX]:
        name = f"stream-{stream}"
        if streams.count(stream) > 1:
            name += f"-{sender}-{receiver}"
        address = case.address(receiver)
        cases.append(found_case(stream, sender, receiver, address, ports, name))
    return (*case.observed, *cases)


def not_judged(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield what was found but is not judged, as text."""
    if not case.observes_all:
        return
    count = len(list(_found(evidence, case)))
    if count > OBSERVED_MAX:
        yield f"{count - OBSERVED_MAX} of {count} streams"
    known = {case.address(each.name) for each in case.hosts}
    for host in (each.name for each in case.hosts):
        setups = _setups(evidence, case, host)
        to_hosts = np.zeros(len(setups), dtype=np.bool_)
        for address in known:
            to_hosts |= sent_to(setups, address)
        streams = np.unique(setups["stream_id"][~to_hosts]).tolist()
        for stream in streams[:NAMED_MAX]:
            text = f"stream {stream} from {host}, which no single host receives"
            yield f"{text}: name it in `observe`"
        if len(streams) > NAMED_MAX:
            yield f"{len(streams) - NAMED_MAX} more such streams from {host}"


def _found(evidence: Evidence, case: Case) -> Iterator[tuple[int, str, str, list[int]]]:
    """Yield stream id, sender, receiver and ports of each stream that the case does not name."""
    named = {(each.stream_id, each.from_host, each.to_host) for each in case.observed}
    planned = {each.stream_id for each in case.traffic}
    for sender, receiver in case.directions:
        setups = _setups(evidence, case, sender)
        setups = setups[sent_to(setups, case.address(receiver))]
        ports: dict[int, list[int]] = {}
        for stream, port in np.unique(setups[["stream_id", "destination_port"]]).tolist():
            ports.setdefault(stream, []).append(port)
        for stream in sorted(ports):
            if stream not in planned and (stream, sender, receiver) not in named:
                yield stream, sender, receiver, ports[stream]


def _setups(evidence: Evidence, case: Case, host: str) -> Frames:
    """Return the valid SETUPs that a host has sent. A host without a capture has sent none."""
    near = evidence.capture(host)
    if isinstance(near, Missing):
        return np.zeros(0, dtype=FRAME)
    setups = near.frames[near.frames["frame_type"] == SETUP]
    setups = setups[sent_by(setups, case.address(host))]
    valid: Frames = setups[(setups["term_length"] > 0) & (setups["destination_port"] > 0)]
    return valid
