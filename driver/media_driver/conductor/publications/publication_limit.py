"""Updates the pub-pos and pub-lmt counters of every publication in each conductor duty cycle.

    clean ... (dirty) ... slowest consumer ........ pub-lmt = slowest consumer + window
       |////////|              |                       |

The limit advances only after the range one term behind the slowest consumer was cleaned. Publishers
therefore never write over old frames. Source: spec 4.6, Aeron 1.53.
"""

import numpy as np

from windtunnel.driver.base.atomics import bytes_at, put_i32_release
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media_driver.conductor import term_cleaning
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.sender import network_publication

NETWORK = 0
IPC = 1

PUBLICATION_LIMIT = np.dtype(
    (
        np.record,
        [
            ("kind", "i8"),  # NETWORK or IPC
            ("slot", "i8"),  # slot of the network publication in the sender
            ("log_address", "i8"),
            ("log_length", "i8"),
            ("meta_at", "i8"),
            ("term_length", "i8"),
            ("bits", "i8"),  # log2(term_length)
            ("initial_term_id", "i8"),
            ("window_length", "i8"),
            ("pub_pos_id", "i8"),  # counter ids
            ("pub_lmt_id", "i8"),
            ("snd_pos_id", "i8"),
            ("first_subscriber", "i8"),  # spies, or IPC subscribers
            ("spies_simulate_connection", "i8"),
            ("clean_position", "i8"),
            ("trip_limit", "i8"),  # IPC: the limit is updated only after this position
            ("consumer_position", "i8"),  # IPC: position of the fastest subscriber
        ],
    )
)


def make_limits(capacity: int) -> np.recarray:
    """Create an array of `capacity` zeroed publication limit records."""
    return np.zeros(capacity, dtype=PUBLICATION_LIMIT).view(np.recarray)


@kernel
def update(state, index):
    """Update pub-pos and pub-lmt of one publication. Returns the work count."""
    limit = state.limits[index]
    log = bytes_at(limit.log_address, limit.log_length)
    produced = descriptor.claimed_position(
        log, limit.meta_at, limit.term_length, limit.initial_term_id
    )
    counters.set_release(state.counters, limit.pub_pos_id, produced)
    if limit.kind == NETWORK:
        return _update_network(state, index)
    return _update_ipc(state, index)


@kernel
def _update_network(state, index):
    limit = state.limits[index]
    values = state.counters
    snd_pos = counters.get_acquire(values, limit.snd_pos_id)
    pub_lmt = counters.get(values, limit.pub_lmt_id)
    lowest, highest, spies = subscriber_positions.bounds(
        state.subscribers, limit.first_subscriber, values
    )
    if spies > 0:
        network_publication.set_spies_release(state.publication_words, limit.slot, 1, highest)
    has_receivers = network_publication.has_required_receivers_acquire(
        state.publication_words, limit.slot
    )
    if has_receivers or (limit.spies_simulate_connection and spies > 0):
        slowest = min(snd_pos, lowest)
        new_limit = slowest + limit.window_length
        if new_limit <= pub_lmt:
            return 0
        term_cleaning.clean_to(limit, slowest - limit.term_length)
        terms_ahead = (new_limit >> limit.bits) - (limit.clean_position >> limit.bits)
        is_inside = limit.clean_position & (limit.term_length - 1) != 0
        if terms_ahead < 2 or (terms_ahead == 2 and is_inside):
            counters.set_release(values, limit.pub_lmt_id, new_limit)
        return 1
    if pub_lmt > snd_pos:
        log = bytes_at(limit.log_address, limit.log_length)
        put_i32_release(log, limit.meta_at + descriptor.IS_CONNECTED, 0)
        counters.set_release(values, limit.pub_lmt_id, snd_pos)
        term_cleaning.clean_to(limit, snd_pos - limit.term_length)
        return 1
    return 0


@kernel
def _update_ipc(state, index):
    limit = state.limits[index]
    values = state.counters
    lowest, highest, readers = subscriber_positions.bounds(
        state.subscribers, limit.first_subscriber, values
    )
    if readers > 0:
        limit.consumer_position = max(limit.consumer_position, highest)
        new_limit = lowest + limit.window_length
        if new_limit <= limit.trip_limit:
            return 0
        term_cleaning.clean_to(limit, lowest)
        counters.set_release(values, limit.pub_lmt_id, new_limit)
        limit.trip_limit = new_limit + limit.window_length // 8
        return 1
    if counters.get(values, limit.pub_lmt_id) > limit.consumer_position:
        limit.trip_limit = limit.consumer_position
        counters.set_release(values, limit.pub_lmt_id, limit.consumer_position)
        term_cleaning.clean_to(limit, limit.consumer_position)
        return 1
    return 0
