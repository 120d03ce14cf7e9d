"""One receiving channel as the receiver sees it: a bound socket, and where its answers go.

Status messages and NAKs leave from the socket that the data came in on, since a connected
publication hears nobody else. Slots are written by the conductor before they are handed over.
"""

import numpy as np

RECEIVE_ENDPOINT = np.dtype(
    [
        ("fd", "i8"),  # bound socket; <= -2 names a virtual link
        ("has_control", "i8"),  # answers go to `control`, not to the source of the data
        ("control_length", "i8"),
        ("control", "u1", (28,)),  # struct sockaddr of an explicit or multicast control address
        ("pad", "u1", (4,)),
        ("has_group_tag", "i8"),
        ("group_tag", "i8"),
        ("is_multicast", "i8"),
        ("ttl", "i8"),
        ("receiver_id", "i8"),  # who we are in status messages
    ]
)


def make_receive_endpoints(capacity: int) -> np.recarray:
    """Blank slots, RECEIVE_ENDPOINT[capacity]."""
    return np.zeros(capacity, dtype=RECEIVE_ENDPOINT).view(np.recarray)
