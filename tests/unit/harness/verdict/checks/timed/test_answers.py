"""The search for answers has the same result as a plain search over all frames."""

import random

import numpy as np
import pytest

from tests.naive import frame_responses
from windtunnel.harness.artifact.middlebox.decision import DECISION, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import CODES
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.scenario.frame_expectation import TYPES
from windtunnel.harness.verdict.checks.timed.answers import Answers, met_between

SEEDS = range(40)


def some_frame(choose: random.Random) -> dict[str, object]:
    return {
        "time_ns": choose.randrange(100),
        "type": choose.choice([*TYPES, "PAD", "NAK", "DATA"]),
        "stream_id": choose.choice([1001, 1002]),
        "session_id": choose.choice([-7, 7]),
        "term_id": choose.choice([-1, 0]),
        "term_offset": 32 * choose.randrange(8),
        "nak_length": 32 * choose.randrange(6),
        "frame_length": choose.randrange(32, 160),
    }


def some_matched_frame(choose: random.Random) -> dict[str, object]:
    met = some_frame(choose)
    met["frame_length"] = 32 * choose.randrange(1, 5)
    met["position"] = choose.choice([NO_POSITION, *[64] * 4])
    return met


def rows(items, dtype):
    found = np.zeros(len(items), dtype=dtype)
    for row, item in zip(found, items, strict=True):
        for name, value in item.items():
            if name in found.dtype.names:
                row[name] = value
        if "frame_type" in found.dtype.names and "type" in item:
            row["frame_type"] = CODES[item["type"]]
    return found


@pytest.mark.parametrize("then", TYPES)
def test_finds_what_a_plain_search_finds(then):
    seen = 0
    for seed in SEEDS:
        choose = random.Random(f"{then} {seed}")
        frames = [some_frame(choose) for _ in range(60)]
        met = [some_matched_frame(choose) for _ in range(20)]
        answers = Answers(rows(frames, FRAME), then)
        for each, row in zip(met, rows(met, DECISION), strict=True):
            expected = frame_responses.responses(each, frames, then)
            due_ns = choose.randrange(120)
            assert answers.times_ns(row).tolist() == expected
            in_time = [time for time in expected if time <= due_ns]
            assert answers.times_ns(row, due_ns).tolist() == in_time
            seen += len(expected)
    assert seen > 50


def test_selects_the_decisions_of_a_rule_on_links():
    decisions = np.zeros(6, dtype=DECISION)
    decisions["rule"] = [0, 1, 1, 1, 2, 1]
    decisions["link"] = [0, 0, 1, 2, 0, 0]
    decisions["time_ns"] = range(6)
    assert met_between(decisions, 1, [0, 1])["time_ns"].tolist() == [1, 2, 5]
