"""What a trial's streams are to send and what must come of it, laid out for the kernels.

    traffic --plan--> lengths of messages --expected_log--> frames      one stream behind the other

All streams of all trials send from the same bytes, each from a place of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog, expected_log
from windtunnel.harness.simulator.audit.stream_record import Audit, make_audit
from windtunnel.harness.simulator.swarm.choice import Choice

PAYLOAD_BYTES = 48 << 20
_POSITIONS = ("position", "hwm", "rcv_pos", "snd_pos", "wire_top", "window_end", "status_top")
"""Of a stream, all that begin where it does."""


@cache
def payload() -> NDArray[np.uint8]:
    """The bytes that all streams of all trials send."""
    made: Any = np.random.Generator(np.random.PCG64(0)).bytes(PAYLOAD_BYTES)
    return np.frombuffer(made, dtype=np.uint8)


def lay_out(choice: Choice) -> tuple[list[ExpectedLog], Audit]:
    """The log of each stream, and an audit of all with plans and logs one behind the other."""
    seed, streams = choice.case.seed, choice.case.traffic
    plans = [
        plan(seed, each.id, each.total_bytes, each.longest_bytes, each.shortest_bytes)
        for each in streams
    ]
    logs = [
        expected_log(made.lengths, each.mtu, each.term_length, each.initial_position)
        for made, each in zip(plans, streams, strict=True)
    ]
    messages = sum(made.count for made in plans)
    frames = sum(len(log.frames) for log in logs)
    audit = make_audit(len(plans), messages, frames, payload())
    message = frame = 0
    for index, (made, log) in enumerate(zip(plans, logs, strict=True)):
        audit.lengths[message : message + made.count] = made.lengths
        audit.frames[frame : frame + len(log.frames)] = log.frames
        _describe(choice, index, audit.streams[index])
        _place(choice, audit.streams[index], log, message, made.count, frame)
        message += made.count
        frame += len(log.frames)
    return logs, audit


def _describe(choice: Choice, index: int, stream: Any) -> None:
    """Note what a seed chose for a stream."""
    traffic, reader = choice.case.traffic[index], choice.readers[index]
    stream["from_host"] = 0 if traffic.from_host == "a" else 1
    stream["is_reliable"] = traffic.reliable
    stream["term_length"] = traffic.term_length
    stream["payload_at"] = (index * 9_973 + choice.case.seed) % 65_536
    assert stream["payload_at"] + traffic.total_bytes <= PAYLOAD_BYTES
    stream["burst"] = choice.bursts[index]
    stream["visit_frames"], stream["rest_ns"] = reader.visit_frames, reader.rest_ns


def _place(
    choice: Choice, stream: Any, log: ExpectedLog, message: int, count: int, frame: int
) -> None:
    """Note where a stream's messages and frames lie, and where it begins and ends."""
    stream["next_message"] = message
    stream["message_end"] = message + count
    healed = max(1, int(count * choice.healed_share))
    stream["gate"] = message + max(count - healed, 0)
    stream["next_frame"], stream["frame_end"] = frame, frame + len(log.frames)
    for name in _POSITIONS:
        stream[name] = log.start_position
    stream["end_position"] = log.end_position
