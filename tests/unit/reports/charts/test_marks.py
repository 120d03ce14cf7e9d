"""Marks are the single events of a stream: drops, NAKs, retransmits and gap fills."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.decimate import nth_occurrence
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN, HEADER
from windtunnel.harness.artifact.middlebox.decision import (
    DECISION,
    DISPLACE,
    DROP,
    DUPLICATE,
    HOLD,
    NO_POSITION,
    SWAP,
)
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD, SM
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.reports.charts.marks import (
    KINDS,
    Geometry,
    _nth_occurrence,
    decision_marks,
    gap_fill_marks,
    impairment_marks,
    nak_marks,
    retransmit_marks,
)
from windtunnel.reports.html import ASSETS

STREAM = 1001
TERM = 65536
WRAPPING = Geometry(initial_term_id=2**31 - 1, term_length=TERM)


def captured(*rows: tuple[int, int, int, int, int]) -> np.ndarray:
    """Make frames of (time, type, term id, term offset, length)."""
    frames = np.zeros(len(rows), dtype=FRAME)
    for frame, (time_ns, kind, term_id, term_offset, length) in zip(frames, rows, strict=True):
        frame["time_ns"], frame["frame_type"], frame["frame_length"] = time_ns, kind, length
        frame["term_id"], frame["term_offset"] = term_id, term_offset
    return frames


def test_groups_decisions_by_action() -> None:
    rows = np.zeros(8, dtype=DECISION)
    rows["stream_id"] = STREAM
    rows["stream_id"][5] = 7
    rows["action"] = DROP, HOLD, SWAP, DUPLICATE, DROP, DROP, HOLD, DISPLACE
    rows["frame_type"] = DATA, DATA, DATA, DATA, SM, DATA, SM, DATA
    rows["position"] = 32, 64, 96, 128, NO_POSITION, 0, NO_POSITION, 160
    rows["attempt"] = 1, 2, 3, 4, 1, 1, 1, 5
    rows["time_ns"] = 10, 20, 30, 40, 50, 60, 70, 80
    marks = {each.kind: each for each in decision_marks(rows, STREAM)}
    assert {kind: each.position.tolist() for kind, each in marks.items()} == {
        "dropped": [32],
        "held": [64],
        "swapped": [96],
        "displaced": [160],
        "duplicated": [128],
        "feedback lost": [NO_POSITION],
    }
    assert marks["swapped"].detail.tolist() == [3]
    assert marks["displaced"].detail.tolist() == [5]
    assert marks["feedback lost"].detail.tolist() == [SM]


def test_every_kind_of_mark_has_a_symbol_an_icon_and_a_colour() -> None:
    script, style = ((ASSETS / name).read_text() for name in ("chart.js", "report.css"))
    for kind in KINDS:
        key = f'"{kind}"' if " " in kind else kind
        # One entry in the table of symbols, and one in the table of icons.
        assert script.count(f'\n    {key}: "') == 2, kind
        # In the light and in the dark theme.
        assert style.count(f"--{kind.replace(' ', '-')}: #") == 2, kind


def decisions_of(*rows: tuple[int, int, int]) -> np.ndarray:
    """Make decisions of (action, position, attempt)."""
    decisions = np.zeros(len(rows), dtype=DECISION)
    for name, values in zip(
        ("action", "position", "attempt"), zip(*rows, strict=True), strict=True
    ):
        decisions[name] = values
    return decisions


def test_a_frame_that_was_sent_not_dropped_and_never_arrived_was_lost_on_the_link() -> None:
    term = 2**31 - 1
    sent = captured(
        (1, DATA, term, 0, 1000),
        (2, DATA, term, 1024, 1000),
        (3, DATA, term, 2048, 1000),
        (4, PAD, term, 3072, 64),
        (50, DATA, term, 1024, 1000),  # a retransmit: the first one was dropped by a rule
        (60, DATA, term, 2048, 1000),  # a retransmit: the first one was lost to impairment
    )
    arrived = captured(
        (11, DATA, term, 0, 1000),
        (60, DATA, term, 1024, 1000),
        (61, DATA, term, 1024, 1000),  # a copy
        (70, DATA, term, 2048, 1000),
    )
    found = impairment_marks(
        sent, arrived, decisions_of((DROP, 1024, 1), (HOLD, 3072, 1)), WRAPPING
    )
    assert found.kind == "lost to impairment"
    assert found.time_ns.tolist() == [3, 4]
    assert found.position.tolist() == [2048, 3072]
    assert found.length.tolist() == [1024, 64]
    assert found.detail.tolist() == [1, 1]


def test_a_lost_repair_is_marked_at_its_own_time() -> None:
    term = 2**31 - 1
    sent = captured((1, DATA, term, 0, 1000), (50, DATA, term, 0, 1000), (90, DATA, term, 0, 1000))
    arrived = captured((95, DATA, term, 0, 1000))
    found = impairment_marks(sent, arrived, decisions_of((DROP, 0, 1)), WRAPPING)
    assert (found.time_ns.tolist(), found.detail.tolist()) == ([50], [2])


def test_a_position_that_was_sent_before_is_a_retransmit() -> None:
    frames = captured(
        (1, DATA, 2**31 - 1, 0, 1000),
        (2, DATA, 2**31 - 1, 1024, 64),
        (3, DATA, 2**31 - 1, 0, 1000),
        (4, DATA, -(2**31), 0, 32),
        (5, DATA, 2**31 - 1, 0, 1000),
    )
    retransmits = retransmit_marks(frames, WRAPPING)
    assert retransmits.time_ns.tolist() == [3, 5]
    assert retransmits.position.tolist() == [0, 0]
    assert retransmits.length.tolist() == [1024, 1024]
    assert retransmits.detail.tolist() == [2, 3]


def test_a_stream_without_repetition_has_no_retransmits() -> None:
    frames = captured((1, DATA, 2**31 - 1, 0, 32), (2, DATA, -(2**31), 0, 32))
    assert len(retransmit_marks(frames, WRAPPING).time_ns) == 0


def test_the_position_of_a_nak_is_correct_across_the_wrap_of_term_ids() -> None:
    frames = captured((9, 2, -(2**31), 96, 28), (1, DATA, 0, 0, 32))
    frames["nak_length"][0] = 1408
    naks = nak_marks(frames, WRAPPING)
    assert naks.position.tolist() == [TERM + 96]
    assert naks.length.tolist() == [1408]


def received(*rows: tuple[int, int]) -> np.ndarray:
    """Make received frames of (position, type), each 64 bytes long."""
    frames = np.zeros(len(rows), dtype=FRAME_SEEN)
    for frame, (position, kind) in zip(frames, rows, strict=True):
        header = np.zeros(1, dtype=HEADER)
        header["type"], header["frame_length"] = kind, 64
        frame["position"], frame["header"] = position, header.view(np.uint8)
    return frames


def test_a_pad_that_was_not_sent_is_a_gap_fill() -> None:
    wire = captured((1, PAD, 2**31 - 1, 64, 64))
    image = received((0, DATA), (64, PAD), (128, PAD))
    assert gap_fill_marks(image, wire, WRAPPING).position.tolist() == [128]
    assert gap_fill_marks(image, None, WRAPPING).position.tolist() == [64, 128]


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_counts_occurrences_like_the_naive_twin(values: list[int]) -> None:
    column = np.array(values, dtype=np.int64)
    assert _nth_occurrence(column).tolist() == nth_occurrence(values)
