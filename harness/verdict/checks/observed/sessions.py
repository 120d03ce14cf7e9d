"""The sessions of an observed stream, and what has replaced their images."""

from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.dissect.capture.pcap import Capture
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.observed_flows import observed_sessions
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import Wire

SESSIONS_MAX = 32
"""Maximum number of sessions of one stream that are judged. The first ones are."""


def sessions_of(near: Capture, case: Case, traffic: TrafficCase) -> list[TrafficCase]:
    """Return a flow for each session whose SETUPs the publication's host has sent, in order."""
    return observed_sessions(case, traffic, near.frames)


def image_count(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> int:
    """Return how many images of a session the driver of the subscription's host has counters of, or
    0 if it has none.
    """
    counted = evidence.host_counters(traffic.to_host)
    if isinstance(counted, Missing):
        return 0
    facts = wire.facts
    kind = counter_key.RECEIVER_POSITION
    found = counter_key.of_stream(counted.counters, kind, facts.session_id, facts.stream_id)
    return len({each.registration_id for each in found})


def killed_driver(happened: list[AppliedEvent] | Missing, traffic: TrafficCase) -> str:
    """Return the id of an event that has killed a driver of the stream, or an empty string."""
    if isinstance(happened, Missing):
        return ""
    ends = traffic.from_host, traffic.to_host
    kills = [each for each in happened if each.action == "kill" and each.host in ends]
    return next((each.id for each in kills if "driver" in each.processes), "")
