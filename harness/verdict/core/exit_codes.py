"""What processes of a run end with, and what that says of whom."""

import signal

UNSUPPORTED_EXIT_CODE = 127
CANNOT_START_EXIT_CODES = (126, 127)
HARNESS_EXIT_CODES = (3, 120)
"""Of a workload that failed by itself, or for want of disk or memory: no word about its subject.
With 120 Python ends if it could not write out what was printed."""
NO_DISK_EXIT_CODE = 125
"""Of an archive whose small disk the harness could not make, or whose files it could not keep."""
ORDERLY_EXIT_CODES = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Of a server that was asked to end: of its own accord, by the signal, or as a JVM tells of one."""
GAVE_UP_EXIT_CODE = 124
"""Of a workload, or an archive, that was not answered in time."""
