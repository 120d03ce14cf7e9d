"""The state of the conductor's compiled kernels, and the compiled part of its duty cycle.

`run` repeats the compiled part, which rebuilds images and updates publication limits. It returns as
soon as Python is needed: for a command, an event from an agent, or a timer.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base import handoff, idle, system
from windtunnel.driver.cnc import ring_buffer_reader
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.conductor.images import image_tracker
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import make_positions
from windtunnel.driver.media_driver.conductor.publications import publication_limit
from windtunnel.driver.media_driver.conductor.publications.publication_limit import make_limits
from windtunnel.driver.media_driver.image import gap_rows
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender.sender_state import SenderState

NEVER_NS = (1 << 63) - 1

CONDUCTOR = np.dtype(
    (
        np.record,
        [
            ("image_count", "i8"),  # entries of `active_images`
            ("limit_count", "i8"),  # entries of `active_limits`
            ("loss_report_end", "i8"),  # offset of the next entry in the loss report
            ("nak_due_ns", "i8"),  # when the next NAK of an image with a gap is due
            ("is_stopping", "i8"),  # the driver is shutting down: `run` returns
        ],
    )
)


class ConductorState(NamedTuple):
    """The arrays that the conductor's compiled kernels use. The dtype declarations document the
    fields.
    """

    agent: np.ndarray  # CONDUCTOR[1]
    images: np.ndarray  # PUBLICATION_IMAGE[n], shared with the receiver
    image_words: np.ndarray  # the same memory as uint8
    gaps: np.ndarray  # GAP[n, GAPS_MAX], the rows of each image
    lost_ranges: np.ndarray  # LOST_RANGE[n, RANGES_MAX], shared with the receiver
    publication_words: np.ndarray  # the sender's NETWORK_PUBLICATION[n] as uint8
    active_images: np.ndarray  # int64[n]
    limits: np.ndarray  # PUBLICATION_LIMIT[m]
    active_limits: np.ndarray  # int64[m]
    subscribers: np.ndarray  # SUBSCRIBER_POSITION[...]
    counters: np.ndarray  # uint8, the counter values of cnc.dat
    loss_report: np.ndarray  # uint8, the whole file
    ring: np.ndarray  # uint8, the to-driver ring of cnc.dat
    sender_events: np.ndarray  # queue, sender to conductor
    receiver_events: np.ndarray  # queue, receiver to conductor
    idle: np.ndarray  # IDLE[1]
    cycle: np.ndarray  # DUTY_CYCLE[1]


def make_conductor_state(
    counters: np.ndarray,
    loss_report: np.ndarray,
    ring: np.ndarray,
    sender: SenderState,
    receiver: ReceiverState,
    cycle: np.ndarray,
    *,
    limits: int = 2048,
    subscribers: int = 16_384,
    idle_state: Any = None,
) -> ConductorState:
    """Create the state of a conductor, which shares arrays with the given sender and receiver."""
    return ConductorState(
        agent=np.zeros(1, dtype=CONDUCTOR).view(np.recarray),
        images=receiver.images,
        image_words=receiver.words,
        gaps=gap_rows.make_gaps(receiver.images.size),
        lost_ranges=receiver.lost_ranges,
        publication_words=sender.words,
        active_images=np.zeros(receiver.images.size, dtype=np.int64),
        limits=make_limits(limits),
        active_limits=np.zeros(limits, dtype=np.int64),
        subscribers=make_positions(subscribers),
        counters=counters,
        loss_report=loss_report,
        ring=ring,
        sender_events=sender.events,
        receiver_events=receiver.events,
        idle=idle.make_idle() if idle_state is None else idle_state,
        cycle=cycle,
    )


@kernel
def track(state, now_ns, now_ms):
    """Advance rcv-pos of every image and update every publication limit once. Returns the work
    count.
    """
    agent = state.agent[0]
    agent.nak_due_ns = NEVER_NS
    work_count = 0
    for index in range(agent.image_count):
        work_count += image_tracker.track_rebuild(state, state.active_images[index], now_ns, now_ms)
    for index in range(agent.limit_count):
        work_count += publication_limit.update(state, state.active_limits[index])
    return work_count


@kernel
def needs_python(state):
    """Return whether the Python part of the conductor must run, because there is a command or an
    event.
    """
    return (
        ring_buffer_reader.has_message(state.ring)
        or not handoff.is_empty(state.sender_events)
        or not handoff.is_empty(state.receiver_events)
    )


@kernel
def run(state, deadline_ns):
    """Repeat the compiled part of the duty cycle, idling in between, until Python is needed or the
    deadline passes.

    Runs at least one duty cycle, even if Python is already needed, because the commands and events
    may depend on its results.
    """
    now_ns = system.monotonic_ns()
    while True:
        duty_cycle.measure(state.cycle, state.counters, now_ns)
        work_count = track(state, now_ns, system.epoch_ns() // system.NS_PER_MS)
        if needs_python(state):
            return
        idle.until(state.idle, work_count, state.agent[0].nak_due_ns - now_ns)
        now_ns = system.monotonic_ns()
        if now_ns >= deadline_ns or state.agent[0].is_stopping:
            return
