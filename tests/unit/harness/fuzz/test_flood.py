"""The forged sessions of a flood."""

import random
from collections import Counter

from windtunnel.harness.fuzz.flood import REPETITION_S, Sessions


def test_every_second_session_repeats_its_setup_once_after_the_interval_of_publishers():
    sessions, times = Sessions(random.Random(1)), {}
    for n in range(3_000):
        times.setdefault(sessions.next_id(n / 1_000), []).append(n / 1_000)
    begun = [each for each in times.values() if each[0] < 2]
    assert Counter(map(len, begun)).keys() == {1, 2}
    twice = [each for each in begun if len(each) == 2]
    assert abs(2 * len(twice) - len(begun)) <= 1
    assert all(0.99 < (second - first) / REPETITION_S < 2 for first, second in twice)
