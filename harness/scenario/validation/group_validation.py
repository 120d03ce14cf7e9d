"""Validates the minimum group size of flow control: rejects scenarios that leave too few receivers,
so that a stream never starts or never ends.

    fc=min,g:/3   2 receivers                        never connected
                  3 receivers, 1 cut off for good    disconnected after the receiver timeout

Aeron then returns NOT_CONNECTED to the publisher, and the judge would report a violation by a
driver that does what Aeron does.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.cut import is_cut_off
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.unawaited import (
    group_members,
    group_text,
    minimum_group_size,
)
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.validation.interruption_validation import ordinals, resolved_rule


def group_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each publisher whose flow control requires more receivers than there are,
    or than fault rules leave.
    """
    for index, traffic in enumerate(scenario.traffic):
        for sender in traffic.from_hosts:
            group = _group(traffic, sender)
            if group is None:
                continue
            control, members = group
            if len(members) < control.group_min:
                path: Path = ("traffic", index, "channel")
                if sender in traffic.channels:
                    path = ("traffic", index, "channels", sender)
                yield Problem(path, _too_few(control, members))
            else:
                yield from _cut_off(scenario, traffic, sender, control, members)


def _group(traffic: Traffic, sender: str) -> tuple[FlowControl, tuple[str, ...]] | None:
    """Return a publisher's flow control and the receivers that it counts, or None if it requires
    none.
    """
    receives = {host: traffic.receives.get(host, traffic.receive) for host in traffic.to_hosts}
    try:
        channel = parse_channel(traffic.channels.get(sender, traffic.channel))
        if not minimum_group_size(channel):
            return None
        return channel.flow_control, group_members(channel.flow_control, receives)
    except ValueError:
        return None  # Reported for the channel itself.


def _too_few(control: FlowControl, members: tuple[str, ...]) -> str:
    tagged = "" if control.group_tag is None else f" with gtag={control.group_tag}"
    found = f"{len(members)} ({', '.join(members)})" if members else "none"
    text = f"{group_text(control)}: expected at least {control.group_min} receivers{tagged}, found "
    return f"{text}{found}: the publication would never be connected"


def _cut_off(
    scenario: Scenario,
    traffic: Traffic,
    sender: str,
    control: FlowControl,
    members: tuple[str, ...],
) -> Iterator[Problem]:
    """Yield a problem for the first rule that cuts off receivers for good if too few are left."""
    ordinal = ordinals(scenario)[traffic.stream_id]
    rules = [resolved_rule(scenario, fault) for fault in scenario.faults]

    def cut_off_by(known: list[FaultCase]) -> list[str]:
        return [
            host
            for host in members
            if is_cut_off(known, f"{sender}->{host}", f"{host}->{sender}", ordinal)
        ]

    for index in range(len(rules)):
        gone = cut_off_by([rule for rule in rules[: index + 1] if rule is not None])
        left = len(members) - len(gone)
        if left < control.group_min:
            text = f"cuts off {', '.join(gone)} for good, and {group_text(control)} of the traffic "
            text += f"{traffic.id!r} needs {control.group_min} receivers: with {left} left, the "
            text += "publication is disconnected and the stream never ends: end the rule with "
            yield Problem(("faults", index), f"{text}`for`, or use a smaller group")
            return
