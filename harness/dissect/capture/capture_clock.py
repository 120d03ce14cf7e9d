"""Finds the places where the times of a capture go back.

    time     10:00:03   10:00:04 | 09:00:04   09:00:05       a step back of an hour
    packet       5          6    |     7          8          `clock_step_packet` is 7

Only a step back can be seen: a step forward looks like a pause of the traffic.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel

CLOCK_STEP_NS = 10_000_000
"""Times of a capture go back if a packet is earlier than the one before it by this or more. Smaller
differences are usual: Linux stamps packets before they are queued, each receive queue on its own
core, which handles packets for up to two ticks (netdev_budget_usecs, 8 ms at 250 Hz) before the
next queue's turn. Time services do not step a clock for so little: they change its rate.
"""

CLOCK = np.dtype(
    [
        ("first_packet", "<i8"),  # number of the first packet that has a time; 0 if there is none
        ("first_ns", "<i8"),
        ("last_ns", "<i8"),
        ("clock_steps", "<i8"),
        ("clock_step_ns", "<i8"),  # the greatest step
        ("clock_step_packet", "<i8"),  # number of the first packet behind a step; 0 without steps
    ]
)
"""The times of a capture, or of a part of it. Packets are numbered from 1, as in Wireshark."""


@kernel
def observe_time(clock: Any, time_ns: int, packet: int) -> None:
    """Add the time of the next packet, whose number is `packet`."""
    if clock["first_packet"] == 0:
        clock["first_packet"], clock["first_ns"] = packet, time_ns
    elif clock["last_ns"] - time_ns >= CLOCK_STEP_NS:
        clock["clock_steps"] += 1
        clock["clock_step_ns"] = max(clock["clock_step_ns"], clock["last_ns"] - time_ns)
        if clock["clock_step_packet"] == 0:
            clock["clock_step_packet"] = packet
    clock["last_ns"] = time_ns


@dataclass(frozen=True)
class ClockSteps:
    """How often the times of a capture go back, and by how much. See CLOCK for the fields."""

    first_packet: int = 0
    first_ns: int = 0
    last_ns: int = 0
    clock_steps: int = 0
    clock_step_ns: int = 0
    clock_step_packet: int = 0

    def followed_by(self, other: "ClockSteps", packets: int) -> "ClockSteps":
        """Return the steps of this part of a capture and the next one, if this part and all before
        it have this many packets.
        """
        if not other.first_packet:
            return self
        joint_ns = 0 if not self.first_packet else self.last_ns - other.first_ns
        is_step = joint_ns >= CLOCK_STEP_NS
        found = other.first_packet if is_step else other.clock_step_packet
        return ClockSteps(
            self.first_packet or packets + other.first_packet,
            self.first_ns if self.first_packet else other.first_ns,
            other.last_ns,
            self.clock_steps + is_step + other.clock_steps,
            max(self.clock_step_ns, joint_ns if is_step else 0, other.clock_step_ns),
            self.clock_step_packet or (packets + found if found else 0),
        )
