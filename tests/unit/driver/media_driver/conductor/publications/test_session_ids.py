"""Session ids: a sequence that skips reserved and used ids."""

from random import Random

import pytest

from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds


class Fixed(Random):
    """Starts the sequence at a given id."""

    def __init__(self, start):
        super().__init__()
        self.start = start

    def getrandbits(self, count):
        assert count == 32
        return self.start & 0xFFFFFFFF


def take(start, in_use=(), count=4):
    ids = SessionIds(Fixed(start), -1, 1000)
    return [ids.next(in_use) for _ in range(count)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (5000, [5000, 5001, 5002, 5003]),
        (-3, [-3, -2, 1001, 1002]),
        (-1, [1001, 1002, 1003, 1004]),
        (1000, [1001, 1002, 1003, 1004]),
        (2**31 - 2, [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1]),
    ],
)
def test_ids_increase_and_wrap_around(start, expected):
    assert take(start) == expected


def test_ids_in_use_are_skipped():
    assert take(-3, {-2, 1001, 1003}) == [-3, 1002, 1004, 1005]


def test_a_range_up_to_the_largest_id_wraps_before_it_is_compared():
    ids = SessionIds(Fixed(2**31 - 5), 2**31 - 5, 2**31 - 1)
    assert ids.next({-(2**31)}) == -(2**31) + 1


def test_an_id_is_not_returned_again():
    ids = SessionIds(Random(1), -1, 1000)
    assert len({ids.next(()) for _ in range(100)}) == 100
