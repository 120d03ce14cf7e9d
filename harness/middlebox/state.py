"""Everything that an engine knows, as arrays which kernels can share with the shell around them.

Sizes are bounds, chosen once from the case: nothing grows while frames flow. Memory for the
attempts table is reserved, and costs nothing until a term is really used.
"""

from typing import Any, NamedTuple

import numpy as np

from harness.artifact.decision import DECISION, LINKS
from harness.dissect.frames import FRAME, FRAME_ALIGNMENT
from harness.middlebox.outbox import Outbox, make_outbox
from harness.middlebox.rules import CLASSES, compile_rules
from harness.middlebox.sessions import SESSION, region_slots
from harness.middlebox.waiting import Waiting, make_waiting
from harness.scenario.case import Case

# Columns of `datagrams`, one row a link direction.
DATAGRAMS_IN, DATAGRAMS_OUT, DATAGRAMS_DROPPED, DATAGRAMS_ADDED = range(4)
# Columns of `frames`, by link direction and class index.
FRAMES_IN, FRAMES_OUT, FRAMES_DROPPED, FRAMES_DUPLICATED, FRAMES_HELD, FRAMES_SWAPPED = range(6)
# Cells of `state`.
SEED, SESSIONS, SLOTS, DECISIONS, SWAPS, SWAP_BYTES, HOLD_OVERFLOWS, SESSION_OVERFLOWS = range(8)

SESSIONS_PER_STREAM = 8
"""Room for publications that come and go; each has a region of the attempts table."""
WAITING_SLOTS = 8192
WAITING_BYTES_MAX = 256 << 20
OUTBOX_DATAGRAMS = 8192
DECISIONS_KEPT_MIN = 1 << 16
BATCH_MAX = 64
"""Datagrams that an owner may offer before it empties the decision log, whatever they hold."""


class Engine(NamedTuple):
    """The state of one middlebox, for both directions of its link."""

    rules: Any  # RULE, in file order
    streams: Any  # int64: the case's stream ids in order; a place here is a stream ordinal
    sessions: Any  # SESSION
    attempts: Any  # int64, see `sessions`
    orders: Any  # int64[link, class index, stream ordinal]: frames without a position so far
    datagrams: Any  # int64[link, 4]
    frames: Any  # int64[link, class index, 6]
    decisions: Any  # DECISION, emptied by the owner
    row: Any  # FRAME[1]: what the frame at hand says
    copies: Any  # int64: offsets of the frames of one datagram that leave twice
    waiting: Waiting
    outbox: Outbox
    state: Any  # int64, one cell each


def make_engine(case: Case, *, datagram_length_max: int, envelope_length_max: int) -> Engine:
    """An engine for a case, for datagrams and envelopes up to a length."""
    slot_length = datagram_length_max + envelope_length_max
    slots = max(64, min(WAITING_SLOTS, WAITING_BYTES_MAX // slot_length))
    frames_max = 1 + datagram_length_max // FRAME_ALIGNMENT
    waiting_length = slots * (slot_length + 64)
    one_length = 2 * (datagram_length_max + frames_max * (envelope_length_max + 64))
    stream_ids = sorted(traffic.stream_id for traffic in case.traffic)
    regions = sum(region_slots(traffic.term_length) for traffic in case.traffic)
    state = np.zeros(8, dtype=np.int64)
    state[SEED] = case.seed
    links, classes = len(LINKS), len(CLASSES)
    return Engine(
        rules=compile_rules(case),
        streams=np.array(stream_ids, dtype=np.int64),
        sessions=np.zeros(SESSIONS_PER_STREAM * len(case.traffic), dtype=SESSION),
        attempts=np.zeros(SESSIONS_PER_STREAM * regions, dtype=np.int64),
        orders=np.zeros((links, classes, len(stream_ids)), dtype=np.int64),
        datagrams=np.zeros((links, 4), dtype=np.int64),
        frames=np.zeros((links, classes, 6), dtype=np.int64),
        decisions=np.zeros(max(DECISIONS_KEPT_MIN, 2 * BATCH_MAX * frames_max), dtype=DECISION),
        row=np.zeros(1, dtype=FRAME),
        copies=np.zeros(frames_max, dtype=np.int64),
        waiting=make_waiting(slots, slot_length),
        outbox=make_outbox(
            max(OUTBOX_DATAGRAMS, slots + 2 * frames_max), waiting_length + 2 * one_length
        ),
        state=state,
    )
