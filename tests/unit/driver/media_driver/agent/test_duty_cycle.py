"""Duty cycle times: the maximum, and the number above the threshold."""

import numpy as np

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import duty_cycle

LONGEST, EXCEEDED, THRESHOLD = 0, 1, 100


def test_the_longest_cycle_and_cycles_above_the_threshold_are_counted():
    state = duty_cycle.make_duty_cycle(LONGEST, EXCEEDED, THRESHOLD)
    values, seen = np.zeros(256, np.uint8), []
    for now in (1_000, 1_050, 1_150, 1_251, 1_300, 1_500):
        duty_cycle.measure(state, values, now)
        seen.append((int(counters.get(values, LONGEST)), int(counters.get(values, EXCEEDED))))
    assert seen == [(0, 0), (50, 0), (100, 0), (101, 1), (101, 1), (200, 2)]
