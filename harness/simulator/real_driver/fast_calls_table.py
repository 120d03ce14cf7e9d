"""The table that Python and the machine code of `fast_calls` share: words of 64 bits."""

NOW_AT, STEPS_AT, CURRENT_AT, CALLS, SLOW, INNER, SOCKETS = 0, 1, 2, 3, 4, 12, 20
"""Words of the table: address of the monotonic time, or 0 if no world runs; address of the steps of
each host's epoch clock; address of the index of the host whose driver is running; number of calls
since the last check of `CALLS_MAX`; from SLOW on, the addresses of the functions in Python, and
from INNER on, of their kernels; from SOCKETS on, SOCKET_WORDS for each descriptor.
"""
SOCKET_RING, SOCKET_MEMORY, SOCKET_RING_BYTES, SOCKET_MAILBOX, SOCKET_WORDS = range(5)
"""Words of a socket: addresses of its inbound ring's state, or 0 if it has no mailbox, and of that
ring's memory; length of a ring; address of its mailbox. The outbound ring follows the inbound one.
"""
SOCKETS_MAX = 256
WORDS = SOCKETS + SOCKETS_MAX * SOCKET_WORDS
CALLS_MAX = 1 << 20
"""Number of system calls between checks that virtual time has moved, far more than one duty
cycle makes.
"""
FIRST_DESCRIPTOR = 1 << 20
TABLE = "windtunnel_fast_calls"
