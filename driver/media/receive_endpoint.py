"""One way that frames come in, as the receiver sees it: a bound socket, and where its answers go.

    plain channel             multi-destination channel
    slot 3: fd 7, serves 3    slot 4: fd -1, serves 4       streams and sessions are kept here
                              slot 5: fd 8,  serves 4       connection 0 of its images
                              slot 6: fd 9,  serves 4       connection 1

A slot is a *transport* by its socket and an *endpoint* by the streams that are wanted of it; a
destination is only the first and names the endpoint that it serves. Status messages and NAKs leave
from the socket that the data came in on, since a connected publication hears nobody else. Slots are
written by the conductor before they are handed over; afterwards the receiver has them.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

RECEIVE_ENDPOINT = np.dtype(
    [
        ("fd", "i8"),  # bound socket; <= -2 names a virtual link, -1 none
        ("serves", "i8"),  # slot of the endpoint whose streams its frames belong to
        ("connection", "i8"),  # which connection of the images of that endpoint it feeds
        ("has_control", "i8"),  # answers go to `control`, not to the source of the data
        ("control_length", "i8"),
        ("control", "u1", (28,)),  # struct sockaddr of an explicit or multicast control address
        ("pad", "u1", (4,)),
        ("solicits_setup", "i8"),  # asks the explicit control address for SETUPs by itself
        ("next_elicit_ns", "i8"),
        ("has_group_tag", "i8"),
        ("group_tag", "i8"),
        ("is_multicast", "i8"),
        ("ttl", "i8"),
        ("receiver_id", "i8"),  # who we are in status messages
        ("is_stamping", "i8"),  # times are written into messages, so they must be taken
        ("last_activity_ns", "i8"),  # published by the receiver for the conductor
    ]
)

RECORD_LENGTH = RECEIVE_ENDPOINT.itemsize
_LAST_ACTIVITY_NS = int(dict(RECEIVE_ENDPOINT.fields or {})["last_activity_ns"][1])


def make_receive_endpoints(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Blank slots, RECEIVE_ENDPOINT[capacity], and the same memory as uint8 for the shared word."""
    records = np.zeros(capacity, dtype=RECEIVE_ENDPOINT)
    return records.view(np.recarray), records.view(np.uint8)


@kernel
def set_last_activity_release(words, slot, now_ns):
    """Receiver: a frame that makes sense came in."""
    put_i64_release(words, slot * RECORD_LENGTH + _LAST_ACTIVITY_NS, now_ns)


@kernel
def last_activity_acquire(words, slot):
    """Conductor: when a frame that makes sense came in last."""
    return get_i64_acquire(words, slot * RECORD_LENGTH + _LAST_ACTIVITY_NS)
