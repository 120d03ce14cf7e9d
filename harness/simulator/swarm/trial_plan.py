"""Prepares the messages and the expected frames of a trial's streams for the compiled kernels.

    traffic --plan--> lengths of messages --expected_log--> frames      stream after stream

All streams in all trials send the same bytes, each starting at its own offset.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog, expected_log
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.simulator.audit.stream_record import Audit, make_audit
from windtunnel.harness.simulator.swarm.choice import Choice

PAYLOAD_BYTES = 48 << 20
_POSITIONS = ("position", "hwm", "rcv_pos", "snd_pos", "wire_top", "window_end", "status_top")
"""Fields of a stream that are initialized to its start position."""


@cache
def payload() -> NDArray[np.uint8]:
    """Return the bytes from which all streams in all trials take their messages."""
    raw: Any = np.random.Generator(np.random.PCG64(0)).bytes(PAYLOAD_BYTES)
    return np.frombuffer(raw, dtype=np.uint8)


def lay_out(choice: Choice) -> tuple[list[ExpectedLog], Audit]:
    """Plan the messages and the expected log of every stream. Returns the logs, and the arrays that
    the compiled checks read.
    """
    seed, streams = choice.case.seed, choice.case.traffic
    plans = [
        plan(seed, each.id, each.total_bytes, each.longest_bytes, each.shortest_bytes)
        for each in streams
    ]
    logs = [
        expected_log(stream_plan.lengths, each.mtu, each.term_length, each.initial_position)
        for stream_plan, each in zip(plans, streams, strict=True)
    ]
    messages = sum(stream_plan.count for stream_plan in plans)
    frames = sum(len(log.frames) for log in logs)
    audit = make_audit(len(plans), messages, frames, payload())
    message = frame = 0
    for index, (stream_plan, log) in enumerate(zip(plans, logs, strict=True)):
        audit.lengths[message : message + stream_plan.count] = stream_plan.lengths
        audit.frames[frame : frame + len(log.frames)] = log.frames
        _describe(choice, index, audit.streams[index])
        _place(choice, audit.streams[index], log, message, stream_plan.count, frame)
        message += stream_plan.count
        frame += len(log.frames)
    return logs, audit


def _describe(choice: Choice, index: int, stream: Any) -> None:
    """Copy the parameters chosen for a stream to the record from which the compiled kernels read
    them.
    """
    traffic, reader = choice.case.traffic[index], choice.readers[index]
    stream["from_host"] = 0 if traffic.from_host == "a" else 1
    stream["is_reliable"] = traffic.reliable
    stream["is_nak_all_gaps"] = bool(parse_channel(traffic.receive).nak_all_gaps)
    stream["term_length"] = traffic.term_length
    stream["payload_at"] = (index * 9_973 + choice.case.seed) % 65_536
    assert stream["payload_at"] + traffic.total_bytes <= PAYLOAD_BYTES
    stream["burst"] = choice.bursts[index]
    stream["visit_frames"], stream["rest_ns"] = reader.visit_frames, reader.rest_ns


def _place(
    choice: Choice, stream: Any, log: ExpectedLog, message: int, count: int, frame: int
) -> None:
    """Set, in a stream's record, its ranges of messages and frames, and its start and end
    positions.
    """
    stream["next_message"] = message
    stream["message_end"] = message + count
    recovery = max(1, int(count * choice.recovery_share))
    stream["gate"] = message + max(count - recovery, 0)
    stream["next_frame"], stream["frame_end"] = frame, frame + len(log.frames)
    for name in _POSITIONS:
        stream[name] = log.start_position
    stream["end_position"] = log.end_position
