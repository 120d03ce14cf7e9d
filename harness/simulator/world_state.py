"""Everything that a turn of the world touches, as arrays and numbers.

    left, right     each host's agents and mailboxes
    engine, ...     the middlebox: fault rules, ports that it changes, weather
    there, back     the wire, a->b and b->a
    audit, events   what is checked, what is written down

Knows no kernel of its own: it is only the names of the cells.
"""

from typing import Any, NamedTuple

import numpy as np

from driver.media.link import Links
from driver.media_driver.conductor_state import ConductorState
from driver.media_driver.receiver_state import ReceiverState
from driver.media_driver.sender_state import SenderState
from harness.middlebox.state import Engine
from harness.middlebox.weather import Weather
from harness.simulator.event_log import EventLog
from harness.simulator.flight import Flight
from harness.simulator.moved_ports import MovedPorts
from harness.simulator.stream_audit import Audit

# Cells of `state`.
NOW, IDLE, TURN, IDLE_MAX, DELAY, COUNTERS_FROM, COUNTERS_END, LONGEST, TURNS = range(9)
"""Time; the present sleep, the shortest and the longest; the wire's delay; the counters that are
watched; the longest datagram that a host may send; turns taken."""

# Columns of `lost`, one row a host: what the engine never hears of.
UNHEARD, OVERFLOWS, FLOODED, REFUSED = range(4)
"""Datagrams that nobody at the host listened for, that found a mailbox full, that found the wire to
it full, that its checksum refused."""

# What a run of turns returns, as bits: which hosts' conductors need Python, whether a buffer is
# full, whether the audit has something to say.
LEFT, RIGHT, FULL, AUDIT = 1, 2, 4, 8
TIME_OVER = 0


class Agents(NamedTuple):
    """One driver's agents and the mailboxes that are their sockets."""

    conductor: ConductorState
    sender: SenderState
    receiver: ReceiverState
    links: Links


class World(NamedTuple):
    """All of it."""

    left: Agents
    right: Agents
    engine: Engine
    moved: MovedPorts
    weather: Weather
    there: Flight  # a->b
    back: Flight  # b->a
    events: EventLog
    audit: Audit
    scratch: Any  # uint8: an envelope and the longest datagram
    packet: Any  # uint8: the same for the weather
    state: Any  # int64, one cell each
    lost: Any  # int64[host, 4]


def make_state(delay_ns: int, turn_ns: int, idle_max_ns: int, longest: int) -> Any:
    """The cells of a world whose clock has not begun."""
    state = np.zeros(9, dtype=np.int64)
    state[TURN] = state[IDLE] = turn_ns
    state[IDLE_MAX] = idle_max_ns
    state[DELAY] = delay_ns
    state[LONGEST] = longest
    return state
