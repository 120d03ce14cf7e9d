"""The sender's record of a send channel endpoint: its sockets and remote address.

A unicast channel has one connected socket, which receives status messages and NAKs only from the
address that it sends to. The conductor writes a slot before the hand-over. One field is shared
while the sender runs: the time of the last status message, published with release through a byte
view of the same memory.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

SEND_ENDPOINT = np.dtype(
    (
        np.record,
        [
            ("fd", "i8"),  # socket that sends frames; <= -2 names a virtual link
            ("control_fd", "i8"),  # socket that receives control frames; equals fd unless multicast
            ("is_connected", "i8"),
            ("name_length", "i8"),  # of `name`, for a socket that is not connected
            ("name", "u1", (28,)),  # struct sockaddr of the remote end
            ("pad", "u1", (4,)),
            # Multi-destination channels only; see media_driver.destination_tracker.
            ("destinations_mode", "i8"),  # 0, MANUAL or DYNAMIC
            ("destinations_count", "i8"),
            ("destinations_first", "i8"),  # of the next destination to serve (round robin)
            ("next_publication", "i8"),  # index of the publication whose SETUP is sent next
            ("destinations_id", "i8"),  # counter id of mdc-num-dest, or -1
            ("gso_retry_ns", "i8"),  # time from which GSO may be tried again after a refusal
            ("gso_refusals", "i8"),  # how often its route refused GSO
            ("is_gso_refusal_reported", "i8"),
            # Published by the sender (release; the conductor reads with acquire).
            ("last_status_ns", "i8"),  # time of the last status message for a known stream
        ],
    )
)

RECORD_LENGTH = SEND_ENDPOINT.itemsize
LAST_STATUS_NS = dict(SEND_ENDPOINT.fields or {})["last_status_ns"][1]
assert RECORD_LENGTH % 8 == 0 and LAST_STATUS_NS % 8 == 0, "the shared word is aligned"


def make_send_endpoints(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Create an array of `capacity` unused SEND_ENDPOINT records. Also returns a uint8 view of the
    array for atomic access.
    """
    records = np.zeros(capacity, dtype=SEND_ENDPOINT)
    records["destinations_id"] = -1
    return records.view(np.recarray), records.view(np.uint8)


@kernel
def last_status_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + LAST_STATUS_NS)


@kernel
def set_last_status_release(words, slot, now_ns):
    put_i64_release(words, slot * RECORD_LENGTH + LAST_STATUS_NS, now_ns)
