"""Lists of active slots."""

import numpy as np
import pytest

from windtunnel.driver.media_driver.agent import slot_list


@pytest.mark.parametrize("gone", [3, 5, 9])
def test_removing_a_slot_keeps_the_order_of_the_others(gone):
    slots = np.array([3, 5, 9, 7, 7], dtype=np.int64)
    slot_list.remove(slots, 3, gone)
    assert list(slots[:2]) == [slot for slot in (3, 5, 9) if slot != gone]
    assert list(slots[3:]) == [7, 7]


def test_removing_an_absent_slot_changes_nothing():
    slots = np.array([3, 5, 9], dtype=np.int64)
    slot_list.remove(slots, 3, 4)
    assert list(slots) == [3, 5, 9]
