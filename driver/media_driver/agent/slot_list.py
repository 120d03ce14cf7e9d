"""Removes a record's slot from an agent's list of active slots, and acknowledges the conductor's
command.
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.kernels.jit import kernel


@kernel
def remove(slots, count, slot):
    """Remove `slot` from the first `count` entries of a list of slots, keeping the order of the
    other entries.
    """
    kept = 0
    for index in range(count):
        if slots[index] != slot:
            slots[kept] = slots[index]
            kept += 1


@kernel
def acknowledge(state, event, slot):
    """Send the conductor an event that acknowledges its command for the given slot."""
    state.record[0] = event
    state.record[1] = slot
    # The queue has space, because each slot is acknowledged once before it is allocated again.
    handoff.put(state.events, state.record)
