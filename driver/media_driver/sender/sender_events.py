"""What the sender tells the conductor, beside its answers to commands.

The queue has a place for an answer about every slot, and those are never taken by anything else:
whatever is said here is dropped while the conductor is that far behind, and whoever says it says it
again.
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.sender.sender_state import EVENT_RESERVE_PER_SLOT


@kernel
def has_room(state):
    """Whether an event can be put without taking the place of an answer."""
    slots = state.publications.size + state.endpoints.size
    return handoff.room(state.events) > slots * EVENT_RESERVE_PER_SLOT


@kernel
def tell(state, event, first, second, third, fourth):
    """Put an event of four words. Returns False when there is no room for it."""
    if not has_room(state):
        return False
    state.record[0] = event
    state.record[1] = first
    state.record[2] = second
    state.record[3] = third
    state.record[4] = fourth
    return handoff.put(state.events, state.record)


@kernel
def complain(state, event, endpoint_slot, code):
    """Say what may happen at every turn: only if nothing else waits to be heard."""
    if handoff.is_empty(state.events):
        tell(state, event, endpoint_slot, code, 0, 0)
