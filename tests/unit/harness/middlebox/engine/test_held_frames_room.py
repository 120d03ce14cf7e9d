"""The heap of held frames against its reference implementation."""

from hypothesis import given
from hypothesis import strategies as st

from tests.naive.delay_queue import NaiveDelayQueue
from windtunnel.harness.middlebox.engine.held_frames import (
    NEVER,
    NONE,
    allocate,
    free_slot,
    make_held_frames,
    next_due_ns,
    pop,
    remove,
)

SLOTS = 9
STEPS = st.one_of(
    st.integers(0, 4), st.none(), st.builds(lambda which: ("remove", which), st.integers(0, 8))
)


@given(st.lists(STEPS, max_size=60))
def test_agrees_with_the_reference(steps):
    waiting, naive = make_held_frames(SLOTS, 8), NaiveDelayQueue(SLOTS)
    names = {}
    for number, due_ns in enumerate(steps):
        if isinstance(due_ns, tuple) and names:
            slot = sorted(names)[due_ns[1] % len(names)]
            name = names.pop(slot)
            remove(waiting, slot)
            free_slot(waiting, slot)
            naive.held = [each for each in naive.held if each[2] != name]
        elif isinstance(due_ns, int):
            slot = allocate(waiting, due_ns)
            assert (slot != NONE) == naive.add(due_ns, number)
            if slot != NONE:
                assert slot not in names
                names[slot] = number
        elif naive.held:
            slot = pop(waiting)
            assert names.pop(slot) == naive.pop()
            free_slot(waiting, slot)
        assert next_due_ns(waiting) == naive.next_due_ns()


def test_nothing_is_due_in_an_empty_heap():
    assert next_due_ns(make_held_frames(SLOTS, 8)) == NEVER


def test_a_full_heap_accepts_no_frame():
    waiting = make_held_frames(SLOTS, 8)
    assert [allocate(waiting, 1) != NONE for _ in range(SLOTS + 1)] == [True] * SLOTS + [False]
