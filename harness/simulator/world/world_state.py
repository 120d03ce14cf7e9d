"""The state of a simulated world as arrays and numbers, for compiled kernels.

    left, right     each host's agents and mailboxes
    between         what the hosts share, and what is recorded:
        engine, ...     the middlebox: its star, fault rules, rewritten ports, impairments
        wires           datagrams in flight, one ring per link direction
        audit, events   the streams to check, the recorded events

This module only names the cells. It contains no compiled code.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.media.link import Links
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender.sender_state import SenderState
from windtunnel.harness.middlebox.engine.state import Engine
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.network.in_flight import NEVER, Wires
from windtunnel.harness.simulator.network.port_rewriting import RewrittenPorts
from windtunnel.harness.simulator.network.routes import Routes
from windtunnel.harness.simulator.world.event_log import EventLog
from windtunnel.harness.simulator.world.virtual_time import START_NS

# Cells of `state`.
NOW, IDLE, TURN, IDLE_MAX, DELAY, COUNTERS_FROM, COUNTERS_END, LONGEST, TURNS = range(9)
"""Time; current, shortest and longest sleep; delay of the wires; first and end id of the watched
counters; longest datagram that a host may send; number of turns taken.
"""
LEFT_OVER, LEFT_OVER_LENGTH = range(9, 11)
"""Bit set of the links on which the datagram in `scratch` must still be sent, and its length."""
CURRENT_HOST = 11
"""Index of the host whose driver is running."""
NATIVE, NATIVE_DRIVER, NATIVE_CELLS = 12, 13, 2
"""In a world of two hosts, NATIVE_CELLS cells per host: for a real driver, the addresses of the
function that runs its duty cycle and of the driver, else 0.
"""
CURRENT_AGENT = NATIVE + 2 * NATIVE_CELLS
"""The agent of the current host's driver whose compiled code is running: one of these numbers."""
NO_AGENT, CONDUCTOR, SENDER, RECEIVER, ALL_AGENTS = range(5)
"""A real driver runs all of its agents in one call."""
STEP, STEP_END, HAS_WORKED = range(CURRENT_AGENT + 1, CURRENT_AGENT + 4)
"""Length and end of the current step, at whose end the world stops if any agent or Python duty
cycle has worked. Otherwise the next step follows. The end is NEVER in a world without steps.
"""
STATE_CELLS = HAS_WORKED + 1

SAVED_WORDS = 4096
"""Space for the saved agents of a host, in words of 8 bytes."""

# Columns of `lost`, one row per host: losses that the engine does not see.
UNBOUND, OVERFLOWS, REFUSED = range(3)
"""Number of datagrams lost because no socket was bound to their address, because a mailbox was
full, or because their checksum was wrong.
"""

# Columns of `ports`, one row per host: datagrams that entered the middlebox there.
RECEIVED_FROM, STRAYS, UNLINKED, COPIES = range(4)
"""Number of datagrams received from the host; of these, datagrams to an unknown address and to a
host without a link; extra copies made of datagrams to a multicast group.
"""

# Bits that the kernels return: whether a buffer is full, whether the audit has something to report,
# and from NEEDS_PYTHON on, one bit per host, whether its conductor needs Python.
FULL, AUDIT, NEEDS_PYTHON = 1, 2, 4
TIME_OVER = 0


class Agents(NamedTuple):
    """The states of one driver's agents, and the mailboxes that replace its sockets."""

    conductor: ConductorState
    sender: SenderState
    receiver: ReceiverState
    links: Links


class Between(NamedTuple):
    """Everything that simulated hosts share: the middlebox, the datagrams in flight, the streams to
    check, and the event log.
    """

    routes: Routes
    engine: Engine
    rewritten_ports: RewrittenPorts
    impairments: Impairments
    wires: Wires
    events: EventLog
    audit: Audit
    scratch: Any  # uint8: an envelope and the longest datagram
    packet: Any  # uint8: the same for impairments
    state: Any  # int64[STATE_CELLS]
    clock_steps_ns: Any  # int64[host]: sum of all steps of the host's clock
    lost: Any  # int64[host, 3]
    ports: Any  # int64[host, 4]


class World(NamedTuple):
    """Two hosts and the middlebox between them."""

    left: Agents
    right: Agents
    between: Between
    saved: Any  # int64[2, SAVED_WORDS], where the kernel saves the agents of both hosts


def make_state(delay_ns: int, turn_ns: int, idle_max_ns: int, longest: int) -> Any:
    """Create the array that holds a simulated world's time, turn lengths and delays."""
    state = np.zeros(STATE_CELLS, dtype=np.int64)
    state[NOW] = START_NS
    state[TURN] = state[IDLE] = turn_ns
    state[IDLE_MAX] = idle_max_ns
    state[DELAY] = delay_ns
    state[LONGEST] = longest
    state[STEP_END] = NEVER
    return state
