"""The table that Python and the machine code of `fast_calls` share: words of 64 bits."""

NOW_AT, EPOCH_NS, CALLS, SLOW, RINGS = 0, 1, 2, 3, 8
"""Words of the table: address of the current time, or 0 if no world runs; epoch time at which it is
zero; number of calls since the last check of `CALLS_MAX`; from SLOW on, the addresses of the
functions in Python; from RINGS on, the address of each descriptor's inbound ring, or 0.
"""
RINGS_MAX = 256
CALLS_MAX = 1 << 20
"""Number of system calls between checks that virtual time has moved, far more than one duty
cycle makes.
"""
FIRST_DESCRIPTOR = 1 << 20
FUNCTIONS = ("clock_gettime", "recvmmsg")
TABLE = "windtunnel_fast_calls"
