"""Everything that a turn of the world touches, as arrays and numbers.

    left, right     each host's agents and mailboxes
    between         what joins hosts, and what is kept of it:
        engine, ...     the middlebox: its star, fault rules, ports that it changes, weather
        wires           what is on its way, one ring a link direction
        audit, events   what is checked, what is written down

Knows no kernel of its own: it is only the names of the cells.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.media.link import Links
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender.sender_state import SenderState
from windtunnel.harness.middlebox.engine.state import Engine
from windtunnel.harness.middlebox.impairment.impairment import Weather
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.network.in_flight import Flight
from windtunnel.harness.simulator.network.port_rewriting import MovedPorts
from windtunnel.harness.simulator.network.routes import Routes
from windtunnel.harness.simulator.world.event_log import EventLog

# Cells of `state`.
NOW, IDLE, TURN, IDLE_MAX, DELAY, COUNTERS_FROM, COUNTERS_END, LONGEST, TURNS = range(9)
"""Time; the present sleep, the shortest and the longest; the wires' delay; the counters that are
watched; the longest datagram that a host may send; turns taken."""
LEFT_OVER, LEFT_OVER_LENGTH = range(9, 11)
"""Links that the datagram in `scratch` has yet to take, as bits, and its length."""
STATE_CELLS = 11

# Columns of `lost`, one row a host: what the engine never hears of.
UNHEARD, OVERFLOWS, REFUSED = range(3)
"""Datagrams that nobody at the host listened for, that found a mailbox full, that its checksum
refused."""

# Columns of `ports`, one row a host: what came into the middlebox there.
RECEIVED_FROM, STRAYS, UNLINKED, COPIES = range(4)
"""Datagrams; of them for nobody's address, for a host that no link leads to; and what those to a
group make of themselves beyond the one that came."""

# What a run of turns returns, as bits: whether a buffer is full, whether the audit has something to
# say, and from WANTED on, bit by bit, which hosts' conductors need Python.
FULL, AUDIT, WANTED = 1, 2, 4
TIME_OVER = 0


class Agents(NamedTuple):
    """One driver's agents and the mailboxes that are their sockets."""

    conductor: ConductorState
    sender: SenderState
    receiver: ReceiverState
    links: Links


class Between(NamedTuple):
    """What all hosts share."""

    routes: Routes
    engine: Engine
    moved: MovedPorts
    weather: Weather
    wires: Flight
    events: EventLog
    audit: Audit
    scratch: Any  # uint8: an envelope and the longest datagram
    packet: Any  # uint8: the same for the weather
    state: Any  # int64[STATE_CELLS]
    lost: Any  # int64[host, 3]
    ports: Any  # int64[host, 4]


class World(NamedTuple):
    """Two hosts and what is between them."""

    left: Agents
    right: Agents
    between: Between


def make_state(delay_ns: int, turn_ns: int, idle_max_ns: int, longest: int) -> Any:
    """The cells of a world whose clock has not begun."""
    state = np.zeros(STATE_CELLS, dtype=np.int64)
    state[TURN] = state[IDLE] = turn_ns
    state[IDLE_MAX] = idle_max_ns
    state[DELAY] = delay_ns
    state[LONGEST] = longest
    return state
