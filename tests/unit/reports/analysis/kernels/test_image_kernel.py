"""The kernel that selects an image's frames agrees with a naive implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, PAD
from windtunnel.reports.analysis.kernels import image_kernel as kernel
from windtunnel.reports.analysis.kernels import repair_kernel as repair
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import (
    EARLIER,
    EVENT_OUTCOME,
    FIRST,
    LATE,
)

TYPES = {DATA: repair.FRAME, PAD: repair.FRAME, HEARTBEAT: repair.HEARTBEAT}
FIELDS = ("start", "end", "payload_length", "flags", "is_data", "crc", "has_crc", "time_ns")

events = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(sorted(TYPES)),
            "flow": st.integers(0, 1),
            "is_new": st.booleans(),
            "outcome": st.sampled_from((FIRST, EARLIER, LATE)),
            "is_left_out": st.booleans(),
            "start": st.integers(0, 1 << 40),
            "length": st.integers(32, 1 << 16),
            "flags": st.integers(0, 255),
            "crc": st.integers(0, (1 << 32) - 1),
            "has_crc": st.booleans(),
            "time_ns": st.integers(0, 1 << 60),
        }
    ),
    max_size=30,
)


def naive(found, takes_all):
    """The parts of flow 1, as tuples of FIELDS."""
    chosen = []
    for event in found:
        if event["type"] not in (DATA, PAD) or event["flow"] != 1 or not event["is_new"]:
            continue
        if event["outcome"] == EARLIER:
            continue
        if not takes_all and (event["outcome"] != FIRST or event["is_left_out"]):
            continue
        is_data = event["type"] == DATA
        end = event["start"] + event["length"]
        payload_length = event["length"] - 32 if is_data else 0
        metadata = event["flags"], is_data, event["crc"], event["has_crc"], event["time_ns"]
        chosen.append((event["start"], end, payload_length, *metadata))
    return chosen


def chosen_by_kernel(found, takes_all):
    def column(name, dtype):
        return np.array([event[name] for event in found], dtype=dtype)

    outcomes = np.zeros(len(found), dtype=EVENT_OUTCOME)
    outcomes["is_new"], outcomes["outcome"] = column("is_new", "u1"), column("outcome", "u1")
    starts, lengths = column("start", np.int64), column("length", np.int32)
    parts = np.full(len(found), -1, dtype=np.int64).repeat(len(FIELDS)).view(kernel.PART)
    count = kernel.choose_parts(
        1,
        column("flow", np.int32),
        np.array([TYPES[event["type"]] for event in found], dtype=np.uint8),
        outcomes,
        column("is_left_out", np.bool_),
        takes_all,
        starts,
        starts + lengths,
        column("time_ns", np.int64),
        column("type", np.int32),
        column("flags", np.int32),
        lengths,
        column("crc", np.int64),
        column("has_crc", np.bool_),
        parts,
    )
    return [tuple(int(each) for each in part) for part in parts[:count][list(FIELDS)].tolist()]


@given(events, st.booleans())
def test_chooses_the_new_frames_of_a_flow(found, takes_all):
    assert chosen_by_kernel(found, takes_all) == naive(found, takes_all)


def test_messages_are_written_to_memory_that_is_not_zeroed():
    parts = np.zeros(2, dtype=kernel.PART)
    parts["start"], parts["end"] = [0, 64], [64, 128]
    parts["payload_length"], parts["is_data"], parts["time_ns"] = [20, 30], 1, [5, 9]
    parts["flags"] = [kernel.BEGIN, kernel.END]
    image = np.zeros(1, dtype=kernel.IMAGE)
    messages = np.full(2 * 5, -1, dtype=np.int64).view(kernel.MESSAGE)
    assert kernel.assemble(parts, image[0], messages, 128) == 2
    assert messages.tolist()[0] == (0, 50, 0, 0, 9)
    assert image["messages"][0] == 1
