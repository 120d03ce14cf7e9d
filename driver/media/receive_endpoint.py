"""The receiver's record of a receive channel endpoint: its socket and control address.

    plain channel             multi-destination channel
    slot 3: fd 7, serves 3    slot 4: fd -1, serves 4       holds the streams and sessions
                              slot 5: fd 8,  serves 4       connection 0 of its images
                              slot 6: fd 9,  serves 4       connection 1

A slot with a socket is a *transport*; a slot with subscriptions is an *endpoint*. A destination is
a transport only and refers to the endpoint that it serves. Status messages and NAKs are sent from
the socket that received the data, because a connected publication accepts no other source. The
conductor writes a slot before the hand-over; afterwards the receiver owns it.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

RECEIVE_ENDPOINT = np.dtype(
    (
        np.record,
        [
            ("fd", "i8"),  # bound socket; <= -2 names a virtual link, -1 none
            ("serves", "i8"),  # slot of the endpoint that its frames belong to
            ("connection", "i8"),  # connection index within the images of that endpoint
            ("has_control", "i8"),  # send to `control`, not to the source of the data
            ("control_length", "i8"),
            ("control", "u1", (28,)),  # struct sockaddr of an explicit or multicast control address
            ("pad", "u1", (4,)),
            ("solicits_setup", "i8"),  # elicits SETUPs from the explicit control address
            ("next_elicit_ns", "i8"),
            ("has_group_tag", "i8"),
            ("group_tag", "i8"),
            ("is_multicast", "i8"),
            ("ttl", "i8"),
            ("receiver_id", "i8"),  # receiver id in status messages
            ("is_stamping", "i8"),  # receive timestamps are written into messages
            ("last_activity_ns", "i8"),  # published by the receiver for the conductor
        ],
    )
)

RECORD_LENGTH = RECEIVE_ENDPOINT.itemsize
_LAST_ACTIVITY_NS = int(dict(RECEIVE_ENDPOINT.fields or {})["last_activity_ns"][1])


def make_receive_endpoints(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Create an array of `capacity` zeroed RECEIVE_ENDPOINT records. Also returns a uint8 view of
    the array for atomic access.
    """
    records = np.zeros(capacity, dtype=RECEIVE_ENDPOINT)
    return records.view(np.recarray), records.view(np.uint8)


@kernel
def set_last_activity_release(words, slot, now_ns):
    """Record the time at which a valid frame was received. Called by the receiver."""
    put_i64_release(words, slot * RECORD_LENGTH + _LAST_ACTIVITY_NS, now_ns)


@kernel
def last_activity_acquire(words, slot):
    """Return the time at which the last valid frame was received. Called by the conductor."""
    return get_i64_acquire(words, slot * RECORD_LENGTH + _LAST_ACTIVITY_NS)
