"""Check of the counters of a group's receivers: each one that sends status messages is counted.

    fc=min         each receiver          fc=tagged      each receiver with the group's tag

A receiver that leaves is no longer counted, so the highest value is compared. One that is a window
behind the others is not counted. With fc=max, and without a group, a publication has no such
counter.
"""

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.destination_counts import wrong_destinations
from windtunnel.harness.verdict.checks.flow_control.group_window import (
    MAX,
    joined_counts,
    limiting_messages,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import status_messages

COUNTED = "group_receivers_counted"


def group_receivers_counted(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The highest value of fc-receivers is the number of receivers that limit the sender, and
    mdc-num-dest counts those that have sent status messages within 5 s, in a simulation.
    """
    wire, counted, capture, case = present(
        evidence.wire(traffic),
        evidence.counters_of_streams(traffic.from_host),
        evidence.capture_of_streams(traffic.from_host),
        evidence.case,
    )
    files = evidence.folder.host(traffic.from_host)
    where = (evidence.name_of(files.counters), evidence.name_of(files.counter_samples))
    channel = parse_channel(traffic.channel)
    problem = ""
    if is_virtual(case):
        problem = wrong_destinations(wire, capture.frames, counted, channel)
    if problem:
        return failed(COUNTED, problem, traffic.id, evidence=where)
    control = channel.flow_control
    counters = counter_key.of_stream(
        counted.counters,
        counter_key.FLOW_CONTROL_RECEIVERS,
        wire.facts.session_id,
        wire.facts.stream_id,
    )
    if control.strategy == MAX:
        if counters:
            text = "the publication has the counter fc-receivers, expected none with fc=max"
            return failed(COUNTED, text, traffic.id, evidence=where)
        return passed(COUNTED, "no counter with fc=max", traffic.id, evidence=where)
    if len(counters) != 1:
        text = f"the publication has {len(counters)} counters fc-receivers, expected one"
        return failed(COUNTED, text, traffic.id, evidence=where)
    messages = status_messages(wire.feedback_arrived_from_all)
    least, most = joined_counts(wire, limiting_messages(wire, messages, control), control)
    value = int(counted.samples_of(counters[0])["value"].max(initial=0))
    if not least <= value <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        text = f"fc-receivers is {value} at most, expected {expected} according to the capture"
        return failed(COUNTED, text, traffic.id, evidence=where)
    return passed(COUNTED, f"{value} receivers", traffic.id, evidence=where)
