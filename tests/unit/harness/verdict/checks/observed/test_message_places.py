"""Positions of messages that applications report, found by their checksums."""

import zlib

import pytest

from tests.unit.harness.verdict.checks.observed import test_observed_streams
from windtunnel.harness.verdict.checks.observed.message_places import (
    absent_messages,
    message_position,
)
from windtunnel.harness.verdict.core.evidence import Evidence

run = test_observed_streams.run


@pytest.fixture
def sent(run):
    """The messages of the stream: the position after each, and its checksum."""
    frames = run.log.frames
    starts = [int(frames["position"][frames["message"].tolist().index(n)]) for n in range(4)]
    crcs = [zlib.crc32(run.messages[n][1]) for n in range(4)]
    return starts, crcs


def place(run, checksums, index):
    return message_position(Evidence(run.write()), run.case.observed[0], checksums, index)


def test_a_message_is_found_by_its_checksum_wherever_it_is(run, sent):
    starts, crcs = sent
    assert place(run, crcs, 2) == (starts[2], f"position {starts[2]}")
    # The application has sent message 1 twice, and numbers the following ones accordingly.
    assert place(run, [crcs[0], crcs[2]], 1) == (starts[2], f"position {starts[2]}")


def test_a_message_that_was_never_sent_has_the_position_of_the_end_before_it(run, sent):
    starts, crcs = sent
    text = f"not on the wire, after position {starts[2]}"
    assert place(run, [crcs[0], crcs[1], 12345, crcs[2]], 2) == (starts[2], text)
    assert place(run, [crcs[0], crcs[1], 12345, 23456], 3) == (starts[2], text)


def test_a_first_message_that_was_never_sent_is_before_all_others(run, sent):
    starts, crcs = sent
    text = f"not on the wire, after position {starts[0]}"
    assert place(run, [12345, *crcs], 0) == (starts[0], text)


@pytest.mark.parametrize("absent", [[], [0], [1, 2], [0, 3]])
def test_reported_messages_that_are_not_in_the_stream_are_listed(run, sent, absent):
    _, crcs = sent
    reported = list(crcs)
    for number in absent:
        reported.insert(number, 12345)
    evidence = Evidence(run.write())
    traffic = run.case.observed[0]
    assert absent_messages(evidence, traffic, reported) == absent
    # Messages at the end may still wait for the window.
    assert absent_messages(evidence, traffic, [*reported, 12345]) == absent
    assert absent_messages(evidence, traffic, [1, 2, 3]) == []
    assert absent_messages(evidence, traffic, []) == []


def test_a_message_that_is_not_reported_as_sent_is_after_all_others(run, sent):
    starts, crcs = sent
    assert place(run, crcs[:2], 2) == (starts[2], f"after position {starts[2]}")


def test_messages_are_counted_if_no_checksum_is_that_of_a_message(run, sent):
    starts, _ = sent
    assert place(run, [1, 2, 3, 4], 2) == (starts[2], f"position {starts[2]}")
    assert place(run, [1] * 100_000, 99_999) == (None, "")


def test_a_stream_without_frames_has_no_position(run, sent):
    _, crcs = sent
    run.packets["a"] = []
    assert place(run, crcs, 2) == (None, "")
