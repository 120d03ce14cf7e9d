"""One sending channel as the sender sees it: where its frames go, and where control frames come in.

A unicast channel is one connected socket; so it hears status messages and NAKs only from the very
address that it sends to. Slots are written by the conductor before they are handed over. One word
is shared while the sender runs: when it last heard a status message, published with release
through the same memory seen as bytes.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

SEND_ENDPOINT = np.dtype(
    [
        ("fd", "i8"),  # socket that frames leave from; <= -2 names a virtual link
        ("control_fd", "i8"),  # socket that control frames arrive at; equals fd unless multicast
        ("is_connected", "i8"),
        ("name_length", "i8"),  # of `name`, for a socket that is not connected
        ("name", "u1", (28,)),  # struct sockaddr of the remote end
        ("pad", "u1", (4,)),
        # Multi-destination channels only; see media_driver.destination_tracker.
        ("destinations_mode", "i8"),  # 0, or who keeps the destinations
        ("destinations_count", "i8"),
        ("destinations_first", "i8"),  # which one is served first; another each time
        ("destinations_id", "i8"),  # counter id of mdc-num-dest, or -1
        # Published by the sender (release; the conductor reads with acquire).
        ("last_status_ns", "i8"),  # when the last status message for a known stream came in
    ]
)

RECORD_LENGTH = SEND_ENDPOINT.itemsize
LAST_STATUS_NS = dict(SEND_ENDPOINT.fields or {})["last_status_ns"][1]
assert RECORD_LENGTH % 8 == 0 and LAST_STATUS_NS % 8 == 0, "the shared word is aligned"


def make_send_endpoints(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Blank slots, SEND_ENDPOINT[capacity], and the same memory as uint8 for the shared word."""
    records = np.zeros(capacity, dtype=SEND_ENDPOINT)
    records["destinations_id"] = -1
    return records.view(np.recarray), records.view(np.uint8)


@kernel
def last_status_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + LAST_STATUS_NS)


@kernel
def set_last_status_release(words, slot, now_ns):
    put_i64_release(words, slot * RECORD_LENGTH + LAST_STATUS_NS, now_ns)
