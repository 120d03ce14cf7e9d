"""One sending channel as the sender sees it: where its frames go, and where control frames come in.

A unicast channel is one connected socket; so it hears status messages and NAKs only from the very
address that it sends to. Slots are written by the conductor before they are handed over.
"""

import numpy as np

SEND_ENDPOINT = np.dtype(
    [
        ("fd", "i8"),  # socket that frames leave from; <= -2 names a virtual link
        ("control_fd", "i8"),  # socket that control frames arrive at; equals fd unless multicast
        ("is_connected", "i8"),
        ("name_length", "i8"),  # of `name`, for a socket that is not connected
        ("name", "u1", (28,)),  # struct sockaddr of the remote end
        ("pad", "u1", (4,)),
        ("last_status_ns", "i8"),  # when the last status message for a known stream came in
    ]
)


def make_send_endpoints(capacity: int) -> np.recarray:
    """Blank slots, SEND_ENDPOINT[capacity]."""
    return np.zeros(capacity, dtype=SEND_ENDPOINT).view(np.recarray)
