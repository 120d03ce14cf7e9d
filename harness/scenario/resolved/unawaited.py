"""Finds the receivers that a sender does not wait for. Aeron does not guarantee that they receive
the whole stream.

    fc=max (default)     the sender follows the fastest receiver and waits for none
    fc=min, fc=min,g:/1  it starts with the first receiver, and waits for those that have joined
    fc=min,g:/3          it starts once three receivers have joined, and stops while fewer are left
    fc=tagged,g:7/2      it only counts receivers whose status messages carry tag 7
    starts_with: all     the publisher starts once all receivers have joined, whatever `fc` is

A receiver that joins after the start misses what was sent before. With `max` the sender may also
leave a receiver so far behind that it no longer retransmits what that receiver lacks.
Source: Aeron 1.53, multicast flow control.
"""

from collections.abc import Mapping

from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.channel import Channel, parse_channel
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
    receives = dict(flow.receives)
    return group_members(
        flow_control(flow), {host: receives.get(host, flow.receive) for host in flow.subscribers}
    )


def group_members(control: FlowControl, receives: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts whose status messages flow control counts, given the channel of each
    subscriber. Raises ValueError if a channel is invalid.
    """
    if control.strategy == MAX:
        return ()
    if control.strategy == TAGGED:
        tags = {host: parse_channel(text).group_tag for host, text in receives.items()}
        return tuple(host for host, tag in tags.items() if tag == control.group_tag)
    return tuple(receives)


def required_receivers(flow: TrafficCase) -> int:
    """Return the number of receivers without which a publication is disconnected, apart from the
    one that every publication needs.
    """
    return minimum_group_size(parse_channel(flow.channel))


def minimum_group_size(channel: Channel) -> int:
    """Return the minimum group size of a publication's flow control, or 0 if it has none."""
    control = channel.flow_control
    return control.group_min if channel.is_group and control.strategy != MAX else 0


def group_text(control: FlowControl) -> str:
    """Return a flow control's strategy and group as written in a channel, such as `fc=min,g:/3`."""
    tag = "" if control.group_tag is None else control.group_tag
    return f"fc={control.strategy},g:{tag}/{control.group_min}"


def flow_control(flow: TrafficCase) -> FlowControl:
    """Return the sender's flow control."""
    return parse_channel(flow.channel).flow_control


def without_waiting(flow: TrafficCase) -> str:
    """Explain why a sender does not wait for a receiver, and what the scenario can do about it."""
    control = flow_control(flow)
    strategy = f"fc={control.strategy}"
    if control.strategy != MAX:
        strategy += f" with a group of {control.group_min}"
    cure = f"use fc=min,g:/{len(flow.subscribers)}, or name the receiver in `partial`"
    return f"{strategy} does not wait for this receiver: {cure}"
