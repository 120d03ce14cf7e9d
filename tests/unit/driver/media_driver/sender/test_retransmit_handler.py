"""The retransmit handler compared with a list of actions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.flow import Resends
from windtunnel.driver.media_driver.sender import retransmit_handler as handler

ROW, LINGER = 1, 10
FIRST = ROW * handler.RESENDS_MAX


class Actions:
    """The kernel's actions of one stream, called as the sender calls them."""

    def __init__(self, most, is_group, delay):
        self.most, self.is_group, self.delay = most, is_group, delay
        self.resends = handler.make_resends(3)
        self.overflows = 0

    def request(self, term, offset, length, now):
        index = handler.assign(self.resends, ROW, self.most, self.is_group, term, offset)
        self.overflows += int(index == handler.POOL_OVERFLOW)
        if index < 0:
            return []
        due = handler.start(self.resends, index, term, offset, length, self.delay, LINGER, now)
        return [(term, offset, length)] if due else []

    def time_passes(self, now):
        leaving = []
        for index in range(FIRST, FIRST + (self.most if self.is_group else 1)):
            rec = self.resends[index]
            if handler.on_timeout(self.resends, index, LINGER, now):
                leaving.append((int(rec.term_id), int(rec.term_offset), int(rec.length)))
        return leaving


STEPS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(7, 8),
        st.sampled_from([0, 32, 64, 96, 256]),
        st.sampled_from([32, 64, 128]),
    ),
    max_size=50,
)


@given(steps=STEPS, is_group=st.booleans(), delay=st.sampled_from([0, 4]))
def test_agrees_with_its_naive_twin(steps, is_group, delay):
    actions, twin, now = Actions(3, is_group, delay), Resends(3, is_group, delay, LINGER), 100
    for pause, term, offset, length in steps:
        now += pause
        assert actions.time_passes(now) == twin.time_passes(now)
        assert actions.request(term, offset, length, now) == twin.request(term, offset, length, now)
    assert not actions.resends[:FIRST].state.any()


@pytest.mark.parametrize(("later", "is_answered"), [(9, False), (10, True)])
def test_the_same_request_is_accepted_again_after_the_linger(later, is_answered):
    actions = Actions(1, False, 0)
    assert actions.request(7, 64, 128, 100)
    actions.time_passes(100 + later)
    assert bool(actions.request(7, 64, 128, 100 + later)) == is_answered


@pytest.mark.parametrize(
    ("term", "offset", "is_answered"),
    [(7, 64, False), (7, 160, False), (7, 192, True), (7, 32, True), (8, 64, True)],
)
def test_only_a_request_that_starts_inside_an_active_action_is_ignored(term, offset, is_answered):
    actions = Actions(1, False, 0)
    actions.request(7, 64, 128, 100)
    assert bool(actions.request(term, offset, 4096, 101)) == is_answered


def test_a_unicast_stream_replaces_its_only_action_and_a_group_overflows():
    unicast, group = Actions(16, False, 0), Actions(2, True, 0)
    for offset in (0, 1024, 2048):
        assert unicast.request(7, offset, 32, 100)
    assert [bool(group.request(7, offset, 32, 100)) for offset in (0, 1024, 2048)] == [1, 1, 0]
    assert (unicast.overflows, group.overflows) == (0, 1)
