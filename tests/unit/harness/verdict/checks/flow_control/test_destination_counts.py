"""The number of destinations of a publication with control-mode=dynamic, over time."""

from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.destination_counts import (
    TIMEOUT_NS,
    TOLERANCE_NS,
    wrong_destinations,
)

S = 1_000_000_000
DYNAMIC = "aeron:udp?control-mode=dynamic|control=10.0.0.1:24324"


def finding_of(last_seconds, values, channel=DYNAMIC, counters=1):
    """Check receivers that send a status message each 200 ms until they fall silent."""
    rows = [
        (at * S // 5, address)
        for address, last in enumerate(last_seconds)
        for at in range(last * 5 + 1)
    ]
    return compare(rows, [(at * S // 10, value) for at, value in values], channel, counters)


def compare(
    messages, values, channel=DYNAMIC, counters=1, requests=(), port=24324, restarted_ns=S << 30
):
    """Check status messages, as (time in ns, address), with a counter's (time in ns, value).

    `requests` are those of receivers without an image, which are sent to a port.
    """
    frames = frames_of(messages)
    others = frames_of(requests)
    frames["receiver_id"] = frames["time_ns"] >= restarted_ns
    frames["destination_port"], others["destination_port"] = 24324, port
    samples = np.array(values, dtype=[("time_ns", "<i8"), ("value", "<i8")])
    counted = SimpleNamespace(
        counters=[SimpleNamespace(type_id=counter_key.DESTINATIONS)] * counters,
        samples_of=lambda counter: samples,
    )
    wire = SimpleNamespace(feedback_arrived_from_all=frames)
    captured = np.concatenate([frames, others])
    return wrong_destinations(wire, captured, counted, parse_channel(channel))


def frames_of(messages):
    frames = np.zeros(len(messages), FRAME)
    frames["time_ns"], frames["source_low"] = np.array(sorted(messages)).reshape(-1, 2).T
    frames["frame_type"] = SM
    return frames


@pytest.mark.parametrize(
    ("last_seconds", "values"),
    [
        ((20, 20), [(0, 2)]),
        ((20, 20), [(-30, 0), (1, 1), (2, 2)]),
        ((20, 2), [(0, 2), (70, 1)]),
        ((20, 2), [(0, 2), (74, 1)]),
        ((20, 1, 2), [(0, 3), (60, 2), (71, 1)]),
    ],
)
def test_receivers_of_the_last_five_seconds_are_a_pass(last_seconds, values):
    assert finding_of(last_seconds, values) == ""


@pytest.mark.parametrize(
    ("last_seconds", "values", "text"),
    [
        ((20, 2), [(0, 2)], "mdc-num-dest is 2 7500 ms after the first status message, expected 1"),
        ((20, 2), [(0, 2), (60, 1)], "mdc-num-dest is 1 6000 ms after"),
        ((20, 20), [(0, 1)], "mdc-num-dest is 1 500 ms after"),
        ((20, 20), [(0, 3)], "mdc-num-dest is 3 0 ms after"),
    ],
)
def test_another_number_is_reported(last_seconds, values, text):
    assert finding_of(last_seconds, values).startswith(text)


@pytest.mark.parametrize(
    ("request_s", "port", "is_wrong"), [(0, 24324, False), (0, 24325, True), (6, 24324, True)]
)
def test_a_receiver_that_requests_a_setup_is_a_destination(request_s, port, is_wrong):
    messages = [(at * S // 5, 0) for at in range(50)]
    values = [(-S // 10, 0), (0, 2), (5 * S, 1)]
    found = compare(messages, values, requests=[(request_s * S, 1)], port=port)
    assert bool(found) is is_wrong


@pytest.mark.parametrize(("value", "is_wrong"), [(1, False), (2, False), (3, True)])
def test_a_restarted_receiver_counts_once_or_twice(value, is_wrong):
    """Its address is 0, and its receiver id changes after 1 s."""
    messages = [(at * S // 5, 0) for at in range(20)]
    assert bool(compare(messages, [(0, 1), (2 * S, value)], restarted_ns=S)) is is_wrong


def test_other_channels_and_several_counters_are_not_compared():
    assert finding_of((20, 20), [(0, 7)], channel="aeron:udp?endpoint=10.0.0.1:24325") == ""
    assert finding_of((20, 20), [(0, 7)], counters=2) == ""


def naive(messages, values):
    """Return whether the counter is wrong. All times are multiples of 100 ms, so that it is enough
    to compare at these, and right after them, when a receiver may just have timed out.
    """
    last_ns = max(at_ns for at_ns, _ in messages)
    nows_ns = sorted({*range(values[0][0], last_ns, S // 10), *range(1, last_ns, S // 10)})
    for now_ns in nows_ns:
        value = [value for at_ns, value in values if at_ns <= now_ns][-1]
        least, most = (
            len({each for at_ns, each in messages if oldest_ns <= now_ns - at_ns <= newest_ns})
            for oldest_ns, newest_ns in (
                (TOLERANCE_NS, TIMEOUT_NS - TOLERANCE_NS),
                (-TOLERANCE_NS, TIMEOUT_NS + TOLERANCE_NS),
            )
        )
        if not least <= value <= most:
            return True
    return False


def trial(seed):
    """Return random status messages, and the values of a counter that is late by up to 1 s."""
    random = np.random.default_rng(seed)
    messages = [
        (int(at) * S // 10, address)
        for address in range(3)
        for at in random.integers(0, 300, random.integers(1, 40))
    ]
    late_ns = int(random.integers(0, 11)) * S // 10
    values = [
        (now, len({each for at, each in messages if 0 <= now - late_ns - at < TIMEOUT_NS}))
        for now in range(0, 30 * S, S // 10)
    ]
    return messages, values


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_a_naive_computation(seed):
    messages, values = trial(seed)
    assert bool(compare(messages, values)) == naive(messages, values)


def test_the_trials_include_correct_and_incorrect_counts():
    assert {naive(*trial(seed)) for seed in range(40)} == {True, False}


def test_messages_far_apart_are_compared_without_visiting_the_time_between():
    messages = [(0, 1), (1 << 62, 1)]
    assert compare(messages, [(0, 1)]).startswith("mdc-num-dest is 1 5500 ms after")
