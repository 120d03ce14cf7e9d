"""Compiled kernel that reassembles messages from frames in stream order.

    frames    | BEGIN 1344 | 1344 | END 200 | PAD | BEGIN END 64 |
    messages  |      one of 2888            |     | one of 64    |     with the CRC of each

The kernel reads no payloads: it computes a message's checksum from its fragments' checksums.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.dissect.frames.crc32 import combined_crc32
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EARLIER, FIRST
from windtunnel.reports.analysis.kernels.repair_kernel import FRAME

BEGIN, END = 0x80, 0x40
_BOTH = BEGIN | END

IMAGE = np.dtype(
    [
        ("position", "<i8"),  # end of the bytes that are complete or skipped
        ("is_known", "<i8"),
        ("time_ns", "<i8"),  # capture time of the image's last frame
        ("is_inside", "<i8"),  # whether a message has begun and not ended
        ("message_at", "<i8"),
        ("message_length", "<i8"),
        ("message_crc", "<i8"),
        ("message_has_crc", "<i8"),
        ("messages", "<i8"),
        ("message_bytes", "<i8"),
        ("crc", "<i8"),  # checksum of all messages, concatenated
        ("has_crc", "<i8"),
        ("broken_messages", "<i8"),  # messages with a missing part
        ("holes", "<i8"),
        ("hole_bytes", "<i8"),
    ]
)
PART = np.dtype(
    [
        ("start", "<i8"),  # position
        ("end", "<i8"),
        ("payload_length", "<i8"),  # 0 for padding
        ("flags", "<i8"),
        ("is_data", "<i8"),
        ("crc", "<i8"),
        ("has_crc", "<i8"),
        ("time_ns", "<i8"),
    ]
)
MESSAGE = np.dtype(
    [
        ("position", "<i8"),  # position of the message's first frame
        ("length", "<i8"),
        ("crc32", "<i8"),
        ("has_crc", "<i8"),
        ("time_ns", "<i8"),  # time at which everything up to the message's end had been captured
    ]
)


@kernel
def choose_parts(
    flow: int, flow_of: Any, kinds: Any, outcomes: Any, is_left_out: Any, takes_all: bool,
    starts: Any, ends: Any, times_ns: Any, types: Any, flags: Any, lengths: Any, crcs: Any,
    has_crc: Any, parts: Any,
) -> int:  # fmt: skip
    """Write the newly captured frames of a flow to `parts`. Unless `takes_all`, frames that filled
    a gap are left out, and those in `is_left_out`.

    Shapes:  events: flow_of int32[n], kinds uint8[n], outcomes EVENT_OUTCOME[n], is_left_out
             bool[n], starts, ends and times_ns int64[n]; their frames: types int32[n], codes of
             frame_class, flags and lengths int32[n], crcs int64[n], has_crc bool[n]; parts PART[n]
    Returns: the number of parts
    """
    count = 0
    for index in range(len(kinds)):
        outcome = outcomes[index]
        if kinds[index] != FRAME or flow_of[index] != flow or outcome["is_new"] == 0:
            continue
        if outcome["outcome"] == EARLIER:
            continue
        if not takes_all and (outcome["outcome"] != FIRST or is_left_out[index]):
            continue
        is_data = types[index] == DATA
        part = parts[count]
        count += 1
        part["start"], part["end"] = starts[index], ends[index]
        part["payload_length"] = lengths[index] - DATA_HEADER_LENGTH if is_data else 0
        part["flags"], part["is_data"] = flags[index], is_data
        part["crc"], part["has_crc"] = crcs[index], has_crc[index]
        part["time_ns"] = times_ns[index]
    return count


@kernel
def _break(image: Any) -> None:
    if image["is_inside"]:
        image["broken_messages"] += 1
        image["is_inside"] = 0


@kernel
def assemble(parts: Any, image: Any, messages: Any, until: int) -> int:
    """Append frames to an image. Gaps between the frames are skipped only below `until`.

    Shapes:  parts PART[n], by position; image an IMAGE record that persists between calls; messages
             MESSAGE[n], written
    Returns: the number of parts consumed; `image` counts their messages
    """
    first = image["messages"]
    for index in range(len(parts)):
        part = parts[index]
        if image["is_known"] == 0:
            image["is_known"], image["position"], image["has_crc"] = 1, part["start"], 1
        if part["start"] > image["position"]:
            if part["start"] > until:
                return index
            image["holes"] += 1
            image["hole_bytes"] += part["start"] - image["position"]
            _break(image)
        elif part["end"] <= image["position"]:
            continue
        image["position"] = part["end"]
        image["time_ns"] = max(image["time_ns"], part["time_ns"])
        if part["is_data"] == 0:
            continue
        if part["flags"] & BEGIN:
            _break(image)
            image["is_inside"], image["message_at"] = 1, part["start"]
            image["message_length"], image["message_crc"], image["message_has_crc"] = 0, 0, 1
        elif image["is_inside"] == 0:
            continue
        image["message_has_crc"] &= part["has_crc"]
        if image["message_has_crc"]:
            image["message_crc"] = combined_crc32(
                image["message_crc"], part["crc"], part["payload_length"]
            )
        image["message_length"] += part["payload_length"]
        if part["flags"] & END:
            message = messages[image["messages"] - first]
            message["position"], message["length"] = image["message_at"], image["message_length"]
            message["crc32"], message["has_crc"] = image["message_crc"], image["message_has_crc"]
            message["time_ns"] = image["time_ns"]
            image["messages"] += 1
            image["message_bytes"] += image["message_length"]
            image["has_crc"] &= image["message_has_crc"]
            if image["has_crc"]:
                image["crc"] = combined_crc32(
                    image["crc"], image["message_crc"], image["message_length"]
                )
            image["is_inside"] = 0
    return len(parts)
