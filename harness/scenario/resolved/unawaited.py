"""Finds the receivers that a sender does not wait for. Aeron does not guarantee that they receive
the whole stream.

    fc=max (default)     the sender follows the fastest receiver and waits for none
    fc=min, fc=min,g:/1  it starts with the first receiver, and waits for those that have joined
    fc=min,g:/3          it starts once three receivers have joined
    fc=tagged,g:7/2      it only counts receivers whose status messages carry tag 7
    starts_with: all     the publisher starts once all receivers have joined, whatever `fc` is

A receiver that joins after the start misses what was sent before. With `max` the sender may also
leave a receiver so far behind that it no longer retransmits what that receiver lacks.
Source: Aeron 1.53, multicast flow control.
"""

from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl

MAX, TAGGED = "max", "tagged"


def waits_for(flow: TrafficCase) -> bool:
    """Return whether the sender cannot start before this receiver has joined, and is never more
    than a window ahead of it.

    The channels of a resolved case are valid.
    """
    if len(flow.subscribers) == 1:
        return True
    counted = counted_hosts(flow)
    if flow.to_host not in counted:
        return False
    return starts_with_all(flow) or flow_control(flow).group_min >= len(counted)


def never_left_behind(flow: TrafficCase) -> bool:
    """Return whether the sender is never more than a window ahead of this receiver, once it has
    joined.
    """
    return len(flow.subscribers) == 1 or flow.to_host in counted_hosts(flow)


def starts_with_all(flow: TrafficCase) -> bool:
    """Return whether the publisher waits until all receivers have joined."""
    return flow.starts_with == len(flow.subscribers)


def counted_hosts(flow: TrafficCase) -> tuple[str, ...]:
    """Return the receivers whose status messages can hold back the sender of a multi-receiver
    stream.
    """
    control = flow_control(flow)
    if control.strategy == MAX:
        return ()
    if control.strategy == TAGGED:
        return tuple(host for host in flow.subscribers if _tag_of(flow, host) == control.group_tag)
    return flow.subscribers


def flow_control(flow: TrafficCase) -> FlowControl:
    """Return the sender's flow control."""
    return parse_channel(flow.channel).flow_control


def _tag_of(flow: TrafficCase, host: str) -> int | None:
    return parse_channel(dict(flow.receives).get(host, flow.receive)).group_tag


def without_waiting(flow: TrafficCase) -> str:
    """Explain why a sender does not wait for a receiver, and what the scenario can do about it."""
    control = flow_control(flow)
    strategy = f"fc={control.strategy}"
    if control.strategy != MAX:
        strategy += f" with a group of {control.group_min}"
    cure = f"use fc=min,g:/{len(flow.subscribers)}, or name the receiver in `partial`"
    return f"{strategy} does not wait for this receiver: {cure}"
