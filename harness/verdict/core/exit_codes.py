"""Exit codes of a run's processes, and what each says about the subject or the harness."""

import signal

UNSUPPORTED_EXIT_CODE = 127
CANNOT_START_EXIT_CODES = (126, 127)
HARNESS_EXIT_CODES = (3, 120)
"""Of a workload that failed through an error of its own or for lack of disk or memory, which says
nothing about its subject. Python exits with 120 if it cannot flush its standard output."""
NO_DISK_EXIT_CODE = 125
"""Of an archive whose small disk the harness could not create, or whose files it could not save."""
ORDERLY_EXIT_CODES = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Of a server after a shutdown request: a normal exit, the signal, or the signal as a JVM reports
it."""
GAVE_UP_EXIT_CODE = 124
"""Of a workload or an archive that received no response in time."""
