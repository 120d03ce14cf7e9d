"""Validates stream interruptions: rejects interruptions after which Aeron's timeouts prevent a
PASS.

    image closed, stream does not rejoin       the subscriber's stream ends early
    image closed, `delivered_once` expected    the next image joins at the sender's position

Otherwise, the judge would report a violation by a driver that does what Aeron does.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.cut import STREAM, cut_ns
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, resolve_fault
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.fault import Fault
from windtunnel.harness.scenario.schema.host_event import IMAGE_LIVENESS_NS, event_case
from windtunnel.harness.scenario.schema.model import Check, Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.schema.units import format_duration
from windtunnel.harness.scenario.validation.fault_validation import rule_directions

ONCE = "delivered_once"
"""The check that requires every message, whatever happens to images."""
IN_PARTS = "delivered_in_parts"
"""The check that requires every message of each image."""


def interruption_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each fault rule that closes an image of a stream without `rejoins`, and
    for each check that cannot pass after an image or session has ended.
    """
    liveness_ns = scenario.timeouts.image_liveness_ns or IMAGE_LIVENESS_NS
    causes: dict[str, str] = {}
    for index, fault in enumerate(scenario.faults):
        for traffic in scenario.traffic:
            if not _closes_image(scenario, fault, traffic, liveness_ns):
                continue
            if traffic.rejoins:
                causes.setdefault(traffic.id, f"rule {fault.id!r}")
                continue
            path: Path = ("faults", index, "when", "for")
            text = f"needs `rejoins: true` in the traffic {traffic.id!r}: this rule cuts the "
            text += f"stream off, and images are closed after {format_duration(liveness_ns)}"
            yield Problem(path, text)
    for traffic in scenario.traffic:
        if traffic.rejoins and (event := _closing_event(scenario, traffic, liveness_ns)):
            causes.setdefault(traffic.id, f"event {event!r}")
    for index, check in enumerate(scenario.expect):
        if check.name == IN_PARTS:
            yield from _unrepaired(scenario, check, ("expect", index))
        if check.name != ONCE:
            continue
        for traffic in scenario.traffic:
            if traffic.id in causes and _covers(check, traffic):
                text = (
                    f"not guaranteed for {traffic.id!r}: {causes[traffic.id]} closes an image or "
                )
                text += "ends a session, and Aeron does not resend the lost data: "
                yield Problem(("expect", index), f"{text}expect delivered_in_parts instead")


def _unrepaired(scenario: Scenario, check: Check, path: Path) -> Iterator[Problem]:
    for traffic in scenario.traffic:
        if _covers(check, traffic) and not is_reliable(traffic):
            text = f"not guaranteed for {traffic.id!r}: gaps of an unreliable stream are filled "
            yield Problem(path, f"{text}with padding: expect delivered_intact instead")


def is_reliable(traffic: Traffic) -> bool:
    """Return whether all subscribers of a stream receive it reliably."""
    try:
        return all(
            parse_channel(each).reliable for each in (traffic.receive, *traffic.receives.values())
        )
    except ValueError:
        return True  # Reported for the channel itself.


def _covers(check: Check, traffic: Traffic) -> bool:
    chosen = check.arguments.get("traffic", traffic.id)
    return traffic.id in chosen if isinstance(chosen, list) else bool(chosen == traffic.id)


def _closes_image(scenario: Scenario, fault: Fault, traffic: Traffic, liveness_ns: int) -> bool:
    """Return whether a fault rule cuts a subscriber off for at least the image liveness timeout."""
    rule = resolved_rule(scenario, fault)
    if rule is None or rule.when is None or rule.when.until is not None:
        return False
    ordinal = ordinals(scenario)[traffic.stream_id]
    return any(
        cut_ns([rule], f"{sender}->{receiver}", ordinal, STREAM) >= liveness_ns
        for sender in traffic.from_hosts
        for receiver in traffic.to_hosts
        if receiver not in traffic.partial
    )


def ordinals(scenario: Scenario) -> dict[int, int]:
    """Return the ordinal of each stream by its stream id."""
    ids = sorted({each.stream_id for each in scenario.traffic})
    return {stream_id: ordinal for ordinal, stream_id in enumerate(ids)}


def resolved_rule(scenario: Scenario, fault: Fault) -> FaultCase | None:
    """Convert a fault rule to the form used in a resolved case. Returns None if the rule names an
    unknown stream.
    """
    links = ["->".join(each) for each in rule_directions(scenario, fault)]
    try:
        return resolve_fault(fault, ordinals(scenario), links)
    except KeyError:
        return None  # Reported for the rule itself.


def _closing_event(scenario: Scenario, traffic: Traffic, liveness_ns: int) -> str:
    """Return the id of the first event that ends an image or session of a stream, or an empty
    string.
    """
    for event in scenario.events:
        case = event_case(event)
        is_long = case.action == "kill" or case.lasts_ns >= liveness_ns
        at_reader = case.host in traffic.to_hosts and {"driver", "subscriber"} & {*case.roles}
        at_writer = case.host in traffic.from_hosts and {"driver", "publisher"} & {*case.roles}
        if is_long and (at_reader or at_writer):
            return event.id
    return ""
