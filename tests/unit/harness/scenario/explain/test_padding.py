"""`explain` states how much the padding at the ends of terms adds.

It is compared with messages that are placed into terms one by one.
"""

import math
import random
import re

import pytest

from tests.unit.harness.scenario.explain.test_explain_arithmetic import (
    case_of,
    frames,
    line_of,
    lines_of,
    made,
    messages,
)
from windtunnel.harness.scenario.explain.stream_length import expected_padding


def padding(spans, term):
    """Return the padding at the ends of terms if such messages are placed one by one."""
    left, padded = term, 0
    for span in spans:
        if span > left:
            padded, left = padded + left, term
        left -= span
    return padded


def drawn(total, shortest, longest):
    """Return random lengths, uniform on a logarithmic scale, drawn like a publisher's."""
    draw, found = random.Random(1), []
    low, high = math.log(shortest), math.log(longest + 1)
    while total > 0:
        found.append(min(total, int(math.exp(draw.uniform(low, high)))))
        total -= found[-1]
    return found


def test_the_padding_of_messages_of_one_length_is_exact():
    for length, term in ((1000, 65536), (1376, 65536), (5000, 131072), (8192, 65536)):
        spans = [sum(frames(each)) for each in messages(1 << 20, length)]
        text = made(f"from: {length}B, to: {length}B")
        text = text.replace("term-length=1m", f"term-length={term >> 10}k")
        found = re.search(r", padding at the ends of terms ([\d.]+)%$", line_of(text, "^a message"))
        expected = padding(spans, term)
        assert found is not None
        assert expected_padding(case_of(text).traffic[0]) == (expected, True)
        assert found[1] == f"{100 * expected / (1 << 20):.1f}"


def test_the_padding_of_messages_of_several_lengths_is_estimated():
    for longest in (2048, 8192):
        text = made(f"from: 1B, to: {longest}B").replace("bytes: 1MiB", "bytes: 32MiB")
        text = text.replace("term-length=1m", "term-length=64k")
        spans = [sum(frames(each)) for each in drawn(32 << 20, 1, longest)]
        found = re.search(r", padding .* terms about ([\d.]+)%$", line_of(text, "^a message is"))
        assert found is not None
        expected = 100 * padding(spans, 1 << 16) / (32 << 20)
        assert float(found[1]) == pytest.approx(expected, abs=0.06, rel=0.05)


def test_terms_are_counted_with_their_padding():
    text = made("from: 8000B, to: 8000B").replace("term-length=1m", "term-length=64k")
    per_term = (64 << 10) // sum(frames(8000))
    count = -(-len(messages(1 << 20, 8000)) // per_term)
    assert line_of(text, "^content ").endswith(f", about {count} terms")


def test_no_padding_is_named_if_the_frames_fill_the_term_or_one_term_is_enough():
    for length, total in ((992, "1MiB"), (5000, "60KiB")):
        text = made(f"from: {length}B, to: {length}B").replace("bytes: 1MiB", f"bytes: {total}")
        text = text.replace("term-length=1m", "term-length=64k")
        assert "padding" not in line_of(text, "^a message is")


ACTS = {
    "pause: 1s": True,
    "kill: {restart_after: 1s}": True,
    "step_clock: -5s": False,
    "impair: {for: 1s, loss: 5%}": False,
}


@pytest.mark.parametrize("act", ACTS)
def test_a_reader_may_be_considered_dead_only_if_an_event_stops_something(act):
    stops = ACTS[act]
    whom = "host: b, process: driver" if stops else "host: b"
    event = f"events: [{{id: one, whom: {{{whom}}}, when: {{after: 1s}}, act: {{{act}}}}}]"
    text = made().replace("expect:", f"{event}\nexpect:")
    text = text.replace("term-length=1m", "term-length=64k").replace("[netns]", "[sim]")
    if "kill" in act:
        text = text.replace("    content", "    rejoins: true\n    content")
        text = text.replace("- delivered_once", "- delivered_in_parts")
    warned = [each for each in lines_of(text) if "exceed half a term" in each]
    assert len(warned) == stops
