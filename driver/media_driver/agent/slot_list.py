"""The slots that an agent serves, as the first entries of an array, and its answers about them."""

from windtunnel.driver.base import handoff
from windtunnel.driver.kernels.jit import kernel


@kernel
def forget(slots, count, slot):
    """Take `slot` out of the first `count` entries, keeping the order of the others."""
    kept = 0
    for index in range(count):
        if slots[index] != slot:
            slots[kept] = slots[index]
            kept += 1


@kernel
def answer(state, event, slot):
    """Tell the conductor that the agent did what was asked about a slot."""
    state.record[0] = event
    state.record[1] = slot
    # There is room: a slot is answered for once before it is given out again.
    handoff.put(state.events, state.record)
