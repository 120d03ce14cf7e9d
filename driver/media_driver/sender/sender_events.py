"""Sends the sender's events to the conductor, except the acknowledgements of commands.

The event queue reserves one record per slot for acknowledgements. When only reserved records are
free, other events are dropped. The sender repeats them later.
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.sender.sender_state import EVENT_RESERVE_PER_SLOT


@kernel
def has_capacity(state):
    """Return whether the event queue has space for another event. Records that are reserved for
    acknowledgements do not count as space.
    """
    slots = state.publications.size + state.endpoints.size
    return handoff.free_record_count(state.events) > slots * EVENT_RESERVE_PER_SLOT


@kernel
def put_event(state, event, first, second, third, fourth):
    """Queue an event with four parameters for the conductor. Returns False if only reserved records
    are free.
    """
    if not has_capacity(state):
        return False
    state.record[0] = event
    state.record[1] = first
    state.record[2] = second
    state.record[3] = third
    state.record[4] = fourth
    return handoff.put(state.events, state.record)


@kernel
def put_event_if_empty(state, event, endpoint_slot, code):
    """Queue an event only if the event queue is empty. Used for events that can occur in every duty
    cycle.
    """
    if handoff.is_empty(state.events):
        put_event(state, event, endpoint_slot, code, 0, 0)
