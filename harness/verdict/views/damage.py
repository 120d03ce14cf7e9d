"""Payload corruption by the middlebox. A driver cannot detect it.

    decision   corrupt, position 4096, bit 2345 of the frame
    expected   ... 0x41 ...          delivered   ... 0x43 ...      only this bit: as specified

Aeron adds no checksum, so a flipped payload bit reaches the application. Only the bits that the
middlebox flipped may differ.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.decision import CORRUPT
from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.views.losses import frame_index, link_of


@dataclass(frozen=True)
class Damage:
    """One corrupted byte in a planned frame's payload."""

    frame: int
    "Index in the expected log."
    offset: int
    "Offset within the frame's payload."
    mask: int
    "The bits that were flipped."


def payload_damage(
    decisions: Records, case: Case, traffic: TrafficCase, log: ExpectedLog
) -> list[Damage]:
    """Return all payload bytes of a stream that were corrupted in any transmission of a frame."""
    link = link_of(case, traffic)
    chosen = decisions[(decisions["action"] == CORRUPT) & (decisions["link"] == link)]
    chosen = chosen[(chosen["stream_id"] == traffic.stream_id) & (chosen["frame_type"] == DATA)]
    index, found = frame_index(log, chosen["position"].astype(np.int64))
    damage: list[Damage] = []
    for frame, decision in zip(index[found].tolist(), chosen[found], strict=True):
        first = int(decision["detail"])
        masks: dict[int, int] = {}
        for bit in range(first, first + case.faults[int(decision["rule"])].bits):
            masks[bit // 8] = masks.get(bit // 8, 0) | 1 << bit % 8
        damage += [
            Damage(frame, byte - DATA_HEADER_LENGTH, mask)
            for byte, mask in masks.items()
            if byte >= DATA_HEADER_LENGTH
        ]
    return damage


def undo_damage(
    messages: NDArray[np.uint8],
    starts: NDArray[np.int64],
    log: ExpectedLog,
    payload: NDArray[np.uint8],
    plan_starts: NDArray[np.int64],
    damage: list[Damage],
) -> NDArray[np.uint8]:
    """Restore the delivered bytes that differ from the plan by exactly the specified corruption.

    Shapes: starts int64[m]: offset of each planned message in the delivered bytes, or -1;
            plan_starts int64[m]: its offset in the repeated payload
    """
    if not damage:
        return messages
    whole = np.array(messages)
    for each in damage:
        row = log.frames[each.frame]
        message = int(row["message"])
        if message < 0 or starts[message] < 0:
            continue
        source = int(row["payload_start"]) + each.offset
        at = int(starts[message]) + source - int(plan_starts[message])
        expected = int(payload[source % len(payload)])
        if at < len(whole) and int(whole[at]) == expected ^ each.mask:
            whole[at] = expected
    return whole


def undo_log_damage(
    image: NDArray[np.uint8],
    publication: NDArray[np.uint8],
    low: int,
    log: ExpectedLog,
    damage: list[Damage],
) -> NDArray[np.uint8]:
    """Restore the bytes of an image's log that differ from the publication's log by exactly the
    specified corruption.

    Shapes: image, publication uint8[n]: the same range of positions, which starts at `low`
    """
    if not damage:
        return image
    whole = np.array(image)
    for each in damage:
        at = int(log.frames["position"][each.frame]) + DATA_HEADER_LENGTH + each.offset - low
        if 0 <= at < len(whole) and int(whole[at]) == int(publication[at]) ^ each.mask:
            whole[at] = publication[at]
    return whole
