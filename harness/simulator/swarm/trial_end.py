"""Classifies how each stream of a swarm trial ended: complete, stuck, or in a stall that Aeron's
protocol permits.

There is one known stall, which also occurs with Aeron's C driver. A PAD is sent if the window has
room for its header alone, so snd-pos may end up further ahead than the receiver accepts:

    last SM    position = rcv-pos = rcv-hwm       last SM + term_length / 2      snd-pos
       |.. window / 4 ..|  d1 x | ... | dn x | PAD ......|.........................|
                        |  all lost, no NAK is sent       | overrun: dropped, heartbeats as well

A receiver sends no new SM until a quarter of its window has been consumed. It never sends a NAK for
the lost frames, since the only frames that reveal the loss are rejected. The stall ends when the
image, which receives nothing, dies after its liveness timeout. The audit keeps the stream as it was
then. (Aeron 1.53: aeron_publication_image_insert_packet rejects a packet before it looks at its
frame type; the C driver of pyaeron under the same impairments stops at the same positions.)
"""

from __future__ import annotations

from typing import Any

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.frames import aligned
from windtunnel.harness.middlebox.engine.state import FRAMES_FORGED, FRAMES_MUTATED_FROM
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.network.in_flight import OVERFLOWED
from windtunnel.harness.simulator.world.world import SimulatedWorld

_HEADER = 32


def describe_stuck(stream: Any, traffic: TrafficCase) -> str:
    """Return a description of an incomplete stream's progress, or an empty string if the stream is
    complete.
    """
    if stream["is_succeeded"]:
        return f"liveness: {traffic.id}'s image died and was replaced {_progress(stream)}"
    if stream["position"] >= stream["end_position"]:
        return ""
    return f"liveness: {traffic.id} is stuck {_progress(stream)}"


def _progress(stream: Any) -> str:
    return (
        f"at position {stream['position']} of {stream['end_position']} in the recovery phase "
        f"(published up to message {stream['next_message']} of {stream['message_end']}, "
        f"rcv-pos {stream['rcv_pos']}, rcv-hwm {stream['hwm']}, snd-pos {stream['snd_pos']})"
    )


def is_known_stall(audit: Audit, index: int, log: ExpectedLog) -> bool:
    """Return True if a stream is in the stall that Aeron's protocol permits: a PAD moved snd-pos
    beyond the positions that the receiver accepts.
    """
    stream = audit.streams[index]
    at, acknowledged = int(stream["position"]), int(stream["status_top"])
    snd_pos, window_end = int(stream["snd_pos"]), int(stream["window_end"])
    refused_from = acknowledged + int(stream["term_length"]) // 2
    has_received_all = at == stream["rcv_pos"] == stream["hwm"]
    is_sm_current = 0 <= 4 * (at - acknowledged) <= window_end - acknowledged
    if not has_received_all or not is_sm_current or snd_pos <= refused_from:
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
    """Return a description of the first wrong counter or host error after the trial, or an empty
    string.
    """
    for index, traffic in enumerate(world.case.traffic):
        if index not in stalled and (wrong := _wrong_counter(world, audit.streams[index], traffic)):
            return wrong
    return _host_error(world)


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
            return f"{traffic.id}: {name} ended at {value}, but the stream at {end}"
    return ""


def _host_error(world: SimulatedWorld) -> str:
    """Return a description of the first host error that injected faults do not explain, or an empty
    string.
    """
    frames = world.between.engine.frames
    for index, host in enumerate(world.hosts):
        towards = frames[1 - index]
        expected = int(towards[:, FRAMES_MUTATED_FROM].sum() + towards[:, FRAMES_FORGED].sum())
        invalid = int(counters.get(host.counter_values, system_counters.INVALID_PACKETS))
        if invalid > expected:
            return (
                f"host {host.name} counted {invalid} invalid packets, "
                f"expected at most {expected} (those that the link forged or corrupted)"
            )
        errors = int(counters.get(host.counter_values, system_counters.ERRORS))
        if errors:
            return f"host {host.name} counted {errors} errors"
        if host.errors:
            return f"host {host.name}'s client: {host.errors[0]}"
    return wire_loss(world, world.between.lost)


def wire_loss(world: SimulatedWorld, lost: Any) -> str:
    """Return a description of the datagrams that were lost although no rule or impairment dropped
    them. Returns an empty string if there are none.
    """
    flooded = world.between.wires.ends[:, OVERFLOWED]
    if lost.any() or flooded.any():
        return (
            "datagrams were lost without a rule: per host (no socket, full mailbox, bad checksum) "
            f"{lost.tolist()}, per link (full wire) {flooded.tolist()}"
        )
    return ""
