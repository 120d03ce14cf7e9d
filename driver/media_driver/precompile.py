"""Precompiles the small numba kernels that the conductor's Python code calls.

The duty cycles of the agents are compiled when a driver is launched. Commands, publications and
images are handled in Python, which calls about ninety small kernels. Without this module, each
kernel would be loaded from disk, or compiled, at its first call while no agent makes progress.
Compiling `unblock` alone takes eight seconds. The argument types of these calls are therefore
listed here.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from windtunnel.driver.base import arith, atomics, handoff, system
from windtunnel.driver.cnc import broadcast, counters, ring_buffer, ring_buffer_reader
from windtunnel.driver.kernels import jit
from windtunnel.driver.logbuffer import descriptor, position, unblocker
from windtunnel.driver.media import receive_endpoint, send_endpoint
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.image import congestion_control, publication_image
from windtunnel.driver.media_driver.sender import error_frames, network_publication
from windtunnel.driver.wire import data, error, header, resolution

# One example argument of each type.
I64 = 0
BYTES = np.zeros(1, np.uint8)
"""Example of an argument that is a log buffer, a counter values buffer or a message."""
LONGS = np.zeros(1, np.int64)
POSITIONS = subscriber_positions.make_positions(1)

SCALAR_CALLS = (
    ((), (system.epoch_ns, system.monotonic_ns)),
    (
        (I64,),
        (
            arith.bits_to_shift,
            arith.is_power_of_two,
            arith.wrap_i32,
            descriptor.meta_at,
            error_frames.slot_at,
            system.sleep_ns,
        ),
    ),
    (
        (I64, I64),
        (arith.align, congestion_control.initial_window, descriptor.log_length, position.index),
    ),
    ((I64,) * 4, (position.of,)),
)
BUFFER_CALLS = (
    (
        (BYTES,),
        (
            broadcast.max_message_length,
            error_frames.release,
            ring_buffer_reader.advance,
            ring_buffer.consumer_heartbeat_ms,
            ring_buffer.consumer_position,
            ring_buffer.max_message_length,
            ring_buffer.next_correlation_id,
            ring_buffer.producer_position,
            ring_buffer_reader.unblock,
        ),
    ),
    (
        (BYTES, I64),
        (
            atomics.get_i32,
            atomics.get_i32_acquire,
            atomics.get_i64,
            atomics.get_i64_acquire,
            counters.get,
            counters.get_acquire,
            counters.increment,
            counters.owner_id,
            counters.reference_id,
            counters.registration_id,
            counters.state,
            counters.type_id,
            descriptor.active_term_count_acquire,
            descriptor.check_log,
            descriptor.initial_term_id,
            descriptor.is_connected_acquire,
            descriptor.is_publication_revoked,
            descriptor.log_type,
            descriptor.mtu_length,
            descriptor.producer_position,
            descriptor.put_is_publication_revoked_release,
            descriptor.term_length,
            error.error_code,
            error.group_tag,
            error.has_group_tag,
            error.receiver_id,
            error.session_id,
            error.stream_id,
            error.text_length,
            network_publication.has_receivers_acquire,
            network_publication.has_required_receivers_acquire,
            network_publication.has_unicast_eos_acquire,
            network_publication.is_behind_acquire,
            receive_endpoint.last_activity_acquire,
            send_endpoint.last_status_acquire,
            ring_buffer.set_consumer_heartbeat_ms,
        ),
    ),
    (
        (BYTES, I64, I64),
        (
            atomics.add_i32,
            atomics.put_i32,
            atomics.put_i32_release,
            atomics.put_i64,
            atomics.put_i64_release,
            atomics.put_u8,
            atomics.zero,
            counters.add,
            counters.add_atomic,
            counters.propose_max_release,
            counters.set_release,
            descriptor.put_end_of_stream_position_release,
            descriptor.put_is_connected_release,
            publication_image.shared_acquire,
        ),
    ),
    (
        (BYTES, I64, I64, I64),
        (
            descriptor.claimed_position,
            network_publication.set_spies_release,
            publication_image.set_shared_release,
        ),
    ),
    ((BYTES, *(I64,) * 4), (descriptor.initialise_tails, unblocker.unblock)),
    ((BYTES, *(I64,) * 9), (data.write,)),
)
MULTI_BUFFER_CALLS = (
    ((BYTES, BYTES), (counters.capacity, ring_buffer_reader.peek)),
    ((BYTES, BYTES, I64, I64), (counters.is_active, counters.find)),
    ((BYTES, LONGS), (handoff.put, handoff.take)),
    ((BYTES, I64, BYTES, I64, I64), (atomics.copy, broadcast.transmit)),
    ((POSITIONS, I64, BYTES), (subscriber_positions.bounds,)),
)
NAME_RESOLUTION_CALLS = (
    (
        (BYTES, I64),
        (
            header.frame_type,
            header.version,
            resolution.address_length,
            resolution.age_ms,
            resolution.is_self,
            resolution.name_at,
            resolution.name_length,
            resolution.udp_port,
        ),
    ),
    ((BYTES, I64, I64), (resolution.check_entry, resolution.write_header)),
    ((BYTES, *(I64,) * 4, BYTES, I64, BYTES, I64), (resolution.write_entry,)),
)
"""Example arguments of the driver name resolver's kernel calls, and the kernels called with
them."""

Calls = tuple[tuple[tuple[object, ...], tuple[Callable[..., object], ...]], ...]
CALLS: Calls = SCALAR_CALLS + BUFFER_CALLS + MULTI_BUFFER_CALLS + NAME_RESOLUTION_CALLS
"""Example arguments of the conductor's kernel calls, and the kernels called with those types."""


@cache
def precompile_calls() -> None:
    """Compile the conductor's small kernels, or load them from the cache, once per process."""
    for arguments, kernels in CALLS:
        for each in kernels:
            jit.compile_for(each, arguments)
