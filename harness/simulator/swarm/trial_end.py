"""What a trial came to when its time was over: at the end, stuck, or stuck as the protocol allows.

One stall is nobody's fault, and Aeron's C driver has it too: a PAD is let go where the window
has room for its header alone, so snd-pos may come to lie further ahead than the receiver takes
anything for true:

    last SM    position = rcv-pos = rcv-hwm       last SM + term_length / 2      snd-pos
       |.. window / 4 ..|  d1 x | ... | dn x | PAD ......|.........................|
                        |  all lost, and nobody asks     | an over-run: dropped, heartbeats as well

A receiver tells of less than a quarter of its window only together with more. What was lost is
never asked for, since the only frames that tell of it are refused. It ends when the image, which
hears of nothing, dies after its liveness timeout; the audit keeps the stream as it was then. (Aeron
1.53: aeron_publication_image_insert_packet refuses before it looks at what a frame is; the C driver
of pyaeron, put through the same weather, stops at the same positions.)
"""

from __future__ import annotations

from typing import Any

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.frames import aligned
from windtunnel.harness.middlebox.engine.state import FRAMES_DAMAGED_FROM, FRAMES_FORGED
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.network.in_flight import FLOODED
from windtunnel.harness.simulator.world.world import SimulatedWorld

_HEADER = 32


def stuck(stream: Any, traffic: TrafficCase) -> str:
    """How far a stream has come that is not at its end with one image; empty for one that is."""
    if stream["is_succeeded"]:
        return f"liveness: {traffic.id}'s image died, and another followed; {_place(stream)}"
    if stream["position"] >= stream["end_position"]:
        return ""
    return f"liveness: {traffic.id} is {_place(stream)}"


def _place(stream: Any) -> str:
    return (
        f"at {stream['position']} of {stream['end_position']} in good "
        f"weather (published up to message {stream['next_message']} of {stream['message_end']}, "
        f"rcv-pos {stream['rcv_pos']}, rcv-hwm {stream['hwm']}, snd-pos {stream['snd_pos']})"
    )


def is_known_stall(audit: Audit, index: int, log: ExpectedLog) -> bool:
    """Whether a stream is stuck where the protocol leaves it; all that must be so is looked at."""
    stream = audit.streams[index]
    at, told = int(stream["position"]), int(stream["status_top"])
    snd_pos, window_end = int(stream["snd_pos"]), int(stream["window_end"])
    refused_from = told + int(stream["term_length"]) // 2
    knows_of_nothing = at == stream["rcv_pos"] == stream["hwm"]
    has_told = 0 <= 4 * (at - told) <= window_end - told
    if not knows_of_nothing or not has_told or snd_pos <= refused_from:
        return False
    planned, first = log.frames, int(stream["frame_end"]) - len(log.frames)
    lost_from = lost_to = int(stream["next_frame"]) - first
    position = at
    while lost_to < len(planned) and position < snd_pos:
        position += int(aligned(planned[lost_to]["frame_length"]))
        lost_to += 1
    if position != snd_pos or lost_to == lost_from or planned[lost_from]["position"] != at:
        return False
    pad = planned[lost_to - 1]
    is_allowed = pad["position"] + _HEADER <= window_end <= refused_from
    lost = audit.disturbed[first + lost_from : first + lost_to - 1]
    return bool(pad["frame_type"] == PAD and is_allowed and lost.all())


def disagreement(world: SimulatedWorld, audit: Audit, stalled: set[int]) -> str:
    """What is not as it must be when all has come to rest; empty when nothing is."""
    for index, traffic in enumerate(world.case.traffic):
        if index not in stalled and (wrong := _wrong_counter(world, audit.streams[index], traffic)):
            return wrong
    return _complaint(world)


def _wrong_counter(world: SimulatedWorld, stream: Any, traffic: TrafficCase) -> str:
    far = world.host(traffic.to_host).counter_values
    end = int(stream["end_position"])
    for name, value in (
        ("snd-pos", stream["snd_pos"]),
        ("rcv-hwm", stream["hwm"]),
        ("rcv-pos", stream["rcv_pos"]),
        ("sub-pos", counters.get(far, int(stream["sub_pos_id"]))),
    ):
        if value != end:
            return f"{traffic.id}: {name} ended at {value}, the stream at {end}"
    return ""


def _complaint(world: SimulatedWorld) -> str:
    """What a host has to complain of, beyond what the link did to it on purpose."""
    frames = world.between.engine.frames
    for index, host in enumerate(world.hosts):
        towards = frames[1 - index]
        made = int(towards[:, FRAMES_DAMAGED_FROM].sum() + towards[:, FRAMES_FORGED].sum())
        invalid = int(counters.get(host.counter_values, system_counters.INVALID_PACKETS))
        if invalid > made:
            return f"host {host.name} counts {invalid} invalid packets, the link made {made}"
        errors = int(counters.get(host.counter_values, system_counters.ERRORS))
        if errors:
            return f"host {host.name} counts {errors} errors"
        if host.errors:
            return f"host {host.name}'s client: {host.errors[0]}"
    return wire_loss(world, world.between.lost)


def wire_loss(world: SimulatedWorld, lost: Any) -> str:
    """What got lost where no rule and no weather is at work; empty when nothing did."""
    flooded = world.between.wires.ends[:, FLOODED]
    if lost.any() or flooded.any():
        return f"the wire lost datagrams by itself: {lost.tolist()}, {flooded.tolist()}"
    return ""
