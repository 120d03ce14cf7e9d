"""The number of destinations of a publication with control-mode=dynamic, over time."""

from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.destination_counts import wrong_destinations

S = 1_000_000_000
DYNAMIC = "aeron:udp?control-mode=dynamic|control=10.0.0.1:24324"


def look(last_seconds, values, channel=DYNAMIC, counters=1):
    """Check receivers that send a status message each 200 ms until they fall silent."""
    rows = [
        (at * S // 5, address)
        for address, last in enumerate(last_seconds)
        for at in range(last * 5 + 1)
    ]
    frames = np.zeros(len(rows), FRAME)
    frames["time_ns"], frames["source_low"] = np.array(sorted(rows)).T
    frames["frame_type"] = SM
    samples = np.array(values, dtype=[("time_ns", "<i8"), ("value", "<i8")])
    samples["time_ns"] *= S // 10
    counted = SimpleNamespace(
        counters=[SimpleNamespace(type_id=counter_key.DESTINATIONS)] * counters,
        samples_of=lambda counter: samples,
    )
    wire = SimpleNamespace(feedback_arrived_from_all=frames)
    return wrong_destinations(wire, counted, parse_channel(channel))


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
    assert look(last_seconds, values) == ""


@pytest.mark.parametrize(
    ("last_seconds", "values", "text"),
    [
        ((20, 2), [(0, 2)], "mdc-num-dest is 2 7600 ms after the first status message, expected 1"),
        ((20, 2), [(0, 2), (60, 1)], "mdc-num-dest is 1 6000 ms after"),
        ((20, 20), [(0, 1)], "mdc-num-dest is 1 500 ms after"),
        ((20, 20), [(0, 3)], "mdc-num-dest is 3 0 ms after"),
    ],
)
def test_another_number_is_reported(last_seconds, values, text):
    assert look(last_seconds, values).startswith(text)


def test_other_channels_and_several_counters_are_not_compared():
    assert look((20, 20), [(0, 7)], channel="aeron:udp?endpoint=10.0.0.1:24325") == ""
    assert look((20, 20), [(0, 7)], counters=2) == ""
