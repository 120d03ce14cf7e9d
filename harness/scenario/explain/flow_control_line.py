"""The description of a stream's flow control: for which receivers its sender waits.

one receiver      the sender follows it
fc=max            the fastest receiver
fc=min            the slowest receiver that is not silent
fc=tagged         the slowest receiver with the tag, likewise
fc=min,g:/3       likewise, and disconnected while fewer than three are left
"""

from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import MAX, counted_hosts, flow_control
from windtunnel.harness.scenario.schema.units import format_duration


def flow_control_line(traffic: TrafficCase) -> str:
    """Return a sentence about which receivers hold back a stream's sender."""
    hosts = traffic.subscribers
    if len(hosts) == 1:
        return f"flow control: the sender is at most one window ahead of {hosts[0]}"
    control = flow_control(traffic)
    if control.strategy == MAX:
        return "flow control: fc=max follows the fastest receiver and waits for no other one"
    counted = counted_hosts(traffic)
    who = "the slowest receiver" if counted == hosts else f"the slowest of {', '.join(counted)}"
    if not counted:
        return f"flow control: no receiver has the tag of fc=tagged,g:{control.group_tag}"
    start = ""
    if control.group_min:
        start = f"needs {control.group_min} of these receivers at all times, "
    silent = format_duration(control.timeout_ns)
    return f"flow control: fc={control.strategy} {start}follows {who} not silent for {silent}"
