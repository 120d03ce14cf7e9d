"""The streams of `observe: all`: those whose SETUPs the captures show.

A stream to a multicast group has no single receiver and must be named; it is reported.
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.dissect.capture.pcap import sent_to
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.observed_flows import (
    FramesOf,
    found_flows,
    observed_flows,
    setups_sent,
)
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing

NAMED_MAX = 8
"""Maximum number of streams of a host that are reported by name because they are not judged."""


def observed_of(evidence: Evidence, case: Case) -> tuple[TrafficCase, ...]:
    """Return the observed streams of a run: those that its case names, and those that were found,
    of which at most as many as a scenario can name.
    """
    return observed_flows(case, _frames_of(evidence))


def not_judged(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield what was found but is not judged, as text."""
    if not case.observes_all:
        return
    frames_of = _frames_of(evidence)
    count = len(list(found_flows(case, frames_of)))
    if count > OBSERVED_MAX:
        yield f"{count - OBSERVED_MAX} of {count} streams"
    known = {case.address(each.name) for each in case.hosts}
    for host in (each.name for each in case.hosts):
        setups = setups_sent(frames_of(host), case.address(host))
        setups = setups[setups["destination_port"] > 0]
        to_hosts = np.zeros(len(setups), dtype=np.bool_)
        for address in known:
            to_hosts |= sent_to(setups, address)
        streams = np.unique(setups["stream_id"][~to_hosts]).tolist()
        for stream in streams[:NAMED_MAX]:
            text = f"stream {stream} from {host}, which no single host receives"
            yield f"{text}: name it in `observe`"
        if len(streams) > NAMED_MAX:
            yield f"{len(streams) - NAMED_MAX} more such streams from {host}"


def _frames_of(evidence: Evidence) -> FramesOf:
    def frames_of(host: str) -> Frames | None:
        capture = evidence.capture(host)
        return None if isinstance(capture, Missing) else capture.frames

    return frames_of
