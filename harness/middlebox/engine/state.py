"""The state of a middlebox engine, as arrays shared by compiled kernels and Python code.

Array sizes are upper limits derived from the case, so nothing grows while frames pass. Memory for
the attempts table is reserved, but not allocated until a term is used.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import DECISION
from windtunnel.harness.dissect.frames.frames import FRAME, FRAME_ALIGNMENT
from windtunnel.harness.middlebox.engine.held_frames import HeldFrames, make_held_frames
from windtunnel.harness.middlebox.engine.outbox import Outbox, make_outbox
from windtunnel.harness.middlebox.engine.replayed_decisions import (
    REPLAYED_DECISION,
    ReplayedDecisions,
)
from windtunnel.harness.middlebox.engine.sessions import SESSION, region_slots
from windtunnel.harness.middlebox.engine.templates import SOURCES
from windtunnel.harness.middlebox.rule_compiler import (
    compile_ranges,
    compile_rules,
    compile_templates,
    stream_ends,
)
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.scenario.resolved.case import Case

# Columns of `datagrams`, which has one row per link direction.
DATAGRAMS_IN, DATAGRAMS_OUT, DATAGRAMS_DROPPED, DATAGRAMS_ADDED = range(4)
# Columns of `frames`, by link direction and class index, in the order of FrameAccount's fields.
FRAMES_IN, FRAMES_OUT, FRAMES_DROPPED, FRAMES_DUPLICATED, FRAMES_HELD, FRAMES_SWAPPED = range(6)
FRAMES_FORGED, FRAMES_MUTATED_FROM, FRAMES_MUTATED_INTO, FRAMES_OTHER_STREAMS = range(6, 10)
FRAME_COLUMNS = 10
# Columns of `tallies`, which has one row per rule.
TRIED, MATCHED = range(2)
# Cells of `state`.
SEED, SESSIONS, SLOTS, DECISIONS, HELD_COUNT, HELD_BYTES, HOLD_OVERFLOWS, SESSION_OVERFLOWS = range(
    8
)
FIRST_DATA_NS, COPIES_MAX, FORGED_MAX, FORGED_BYTES_MAX, IS_REPLAY = range(8, 13)
STATE_CELLS = 13

SESSIONS_PER_STREAM = 8
"""Maximum number of sessions per stream, because publications may be closed and added again.

Each session has a region of the attempts table.
"""
HELD_SLOTS = 8192
HELD_BYTES_MAX = 256 << 20
OUTBOX_DATAGRAMS = 8192
DECISIONS_KEPT_MIN = 1 << 16
BATCH_MAX = 64
"""Maximum number of datagrams offered per link between checks of the free decision log
space."""


@kernel
def spread(state: Any, frames: int, length: int, envelope_length: int) -> tuple[int, int]:
    """Return the maximum numbers of datagrams and bytes that the engine can emit at once for one
    arriving datagram.

    As an upper limit, this assumes that every frame is followed by the forged frames of all rules.
    """
    copies = 1 + state[COPIES_MAX]
    forged_bytes = state[FORGED_MAX] * envelope_length + state[FORGED_BYTES_MAX]
    return (
        frames * (copies + state[FORGED_MAX]),
        copies * (length + frames * envelope_length) + frames * forged_bytes,
    )


class Engine(NamedTuple):
    """The state of one middlebox engine, for both directions of all its links."""

    rules: Any  # RULE, in file order
    selected_streams: Any  # uint8[rule, stream ordinal]: 1 if a rule applies; last: no stream
    spans: Any  # int64[rule, class index, 2]: first bit and count of the field that it corrupts
    ranges: Any  # int64[n, 2]: begins and ends of all rules' lists of positions, list after list
    replayed: Any  # REPLAYED_DECISION, sorted by frame: the recorded decisions of a replay
    templates: Any  # TEMPLATE, of all rules in sequence
    patches: Any  # PATCH, of all templates in sequence
    template_buf: Any  # uint8, the bytes of all templates
    chains: Any  # uint8[rule, sessions, then order-keyed subjects]: states
    tallies: Any  # int64[rule, 2]
    active_since_ns: Any  # int64[rule], 0 while a rule waits for its stream position
    streams: Any  # int64: the case's stream ids in order; an index is a stream ordinal
    stream_ends: Any  # int64[stream ordinal]: position after the last expected frame
    reached: Any  # int64[stream ordinal]: position after the farthest frame so far
    sessions: Any  # SESSION
    attempts: Any  # int64, see `sessions`
    orders: Any  # int64[link, class index, stream ordinal]: frames keyed by order; last: no stream
    datagrams: Any  # int64[link, 4]
    frames: Any  # int64[link, class index, FRAME_COLUMNS]
    decisions: Any  # DECISION, drained by the caller
    row: Any  # FRAME[1]: the fields of the current frame
    values: Any  # int64[m]: values of the fields of a forged frame, see `templates`
    copies: Any  # int64[n, 2]: offset of a frame of one datagram, and number of its copies
    held: HeldFrames
    outbox: Outbox
    state: Any  # int64, one cell each


def make_engine(
    case: Case,
    *,
    datagram_length_max: int,
    envelope_length_max: int,
    replayed: ReplayedDecisions | None = None,
) -> Engine:
    """Create the engine for a run, given the maximum lengths of datagrams and of their headers.

    With `replayed`, the engine replays these decisions, and rules only determine the details of
    their actions.
    """
    rules, chosen_streams, spans = compile_rules(case)
    templates, patches, template_buf = compile_templates(case)
    state = np.zeros(STATE_CELLS, dtype=np.int64)
    state[SEED] = case.seed
    state[COPIES_MAX] = max((fault.copies for fault in case.faults), default=1)
    state[FORGED_MAX] = max((len(fault.forged) for fault in case.faults), default=0)
    state[FORGED_BYTES_MAX] = len(template_buf)
    state[IS_REPLAY] = 0 if replayed is None else 1
    slot_length = datagram_length_max + envelope_length_max
    slots = max(64, min(HELD_SLOTS, HELD_BYTES_MAX // slot_length))
    frames_max = 1 + datagram_length_max // FRAME_ALIGNMENT
    stream_ids = sorted(traffic.stream_id for traffic in case.traffic)
    regions = sum(region_slots(traffic.term_length) for traffic in case.traffic)
    links, classes, streams = len(case.link_names), len(CLASSES), len(stream_ids)
    pairs = links // 2
    sessions = SESSIONS_PER_STREAM * len(case.traffic) * pairs
    one_datagrams, one_bytes = spread(
        state, frames_max, datagram_length_max, envelope_length_max + 64
    )
    return Engine(
        rules=rules,
        selected_streams=chosen_streams,
        spans=spans,
        ranges=compile_ranges(case),
        replayed=np.zeros(0, dtype=REPLAYED_DECISION) if replayed is None else replayed,
        templates=templates,
        patches=patches,
        template_buf=template_buf,
        chains=np.zeros((len(rules), sessions + links * classes * (streams + 1)), dtype=np.uint8),
        tallies=np.zeros((len(rules), 2), dtype=np.int64),
        active_since_ns=np.zeros(len(rules), dtype=np.int64),
        streams=np.array(stream_ids, dtype=np.int64),
        stream_ends=stream_ends(case),
        reached=np.zeros(streams, dtype=np.int64),
        sessions=np.zeros(sessions, dtype=SESSION),
        attempts=np.zeros(SESSIONS_PER_STREAM * regions * pairs, dtype=np.int64),
        orders=np.zeros((links, classes, streams + 1), dtype=np.int64),
        datagrams=np.zeros((links, 4), dtype=np.int64),
        frames=np.zeros((links, classes, FRAME_COLUMNS), dtype=np.int64),
        decisions=np.zeros(
            pairs * max(DECISIONS_KEPT_MIN, 2 * BATCH_MAX * frames_max), dtype=DECISION
        ),
        row=np.zeros(1, dtype=FRAME),
        values=np.zeros(len(SOURCES), dtype=np.int64),
        copies=np.zeros((frames_max, 2), dtype=np.int64),
        held=make_held_frames(slots, slot_length),
        outbox=make_outbox(
            max(OUTBOX_DATAGRAMS, slots + 2 * one_datagrams),
            slots * (slot_length + 64) + 2 * one_bytes,
        ),
        state=state,
    )
