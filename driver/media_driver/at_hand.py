"""The kernels that the conductor's Python calls one by one, in memory before there is a stream.

What the agents run in their turns is compiled whole when a driver is made. Publications, images and
commands are worked on in Python, though, which calls small kernels; each is read from the disk at
its first call, some forty of them for the first stream. The agents would stand still meanwhile, for
a tenth of a second and, on a machine ten times slower, for longer than clients wait for a driver.
"""

from functools import cache

from driver.base import arith, atomics, handoff, jit
from driver.cnc import broadcast, counters, ring_buffer
from driver.logbuffer import descriptor, position, unblocker
from driver.media_driver import (
    congestion_control,
    network_publication,
    publication_image,
    subscriber_positions,
)
from driver.wire import data

KERNELS = (
    arith.bits_to_shift,
    atomics.copy,
    atomics.get_i32,
    atomics.put_u8,
    atomics.zero,
    handoff.put,
    handoff.take,
    broadcast.transmit,
    counters.add,
    counters.get,
    counters.get_acquire,
    ring_buffer.advance,
    ring_buffer.consumer_position,
    ring_buffer.peek,
    ring_buffer.producer_position,
    descriptor.active_term_count_acquire,
    descriptor.check_log,
    descriptor.initial_term_id,
    descriptor.initialise_tails,
    descriptor.is_connected_acquire,
    descriptor.is_publication_revoked,
    descriptor.log_length,
    descriptor.log_type,
    descriptor.meta_at,
    descriptor.mtu_length,
    descriptor.producer_position,
    descriptor.put_end_of_stream_position_release,
    descriptor.put_is_connected_release,
    descriptor.term_length,
    position.of,
    unblocker.unblock,
    congestion_control.initial_window,
    network_publication.has_unicast_eos_acquire,
    network_publication.set_spies_release,
    publication_image.shared_acquire,
    subscriber_positions.bounds,
    data.write,
)
"""Called by the conductor from Python, for any stream; on disk if any driver had one."""


@cache
def load() -> int:
    """Load what is compiled of them, once a process; return how many builds that are."""
    return sum(jit.load_kept(each) for each in KERNELS)
