"""Exit codes of a run's processes, and what each one means for the verdict."""

import signal

UNSUPPORTED_EXIT_CODE = 127
CANNOT_START_EXIT_CODES = (126, 127)
HARNESS_EXIT_CODES = (3, 120)
"""Exit codes of a workload that failed because of its own error or a lack of disk space or memory.
They say nothing about the driver under test. Python exits with 120 if it cannot flush its standard
output."""
NO_DISK_EXIT_CODE = 125
"""Exit code of an archive whose small disk the harness could not create, or whose files it could
not save."""
INVALID_FILE_EXIT_CODE = 4
"""Exit code of a sampler that found something else than a valid cnc.dat. Its driver is at fault."""
TRUNCATED_FILE_EXIT_CODES = (-signal.SIGBUS, 128 + signal.SIGBUS)
"""Exit codes of a sampler whose driver truncated cnc.dat while it was read."""
ORDERLY_EXIT_CODES = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit codes of a driver or archive after a shutdown request: a normal exit, the signal, or the
signal as a JVM reports it."""
GAVE_UP_EXIT_CODE = 124
"""Exit code of a workload or an archive that received no response in time."""


def invalid_file_text(sampler: str, code: int | None, last_log_line: str) -> str:
    """Describe the cnc.dat that has ended a sampler. Returns "" if the code has another reason."""
    if code == INVALID_FILE_EXIT_CODE:
        why = last_log_line
    elif code in TRUNCATED_FILE_EXIT_CODES:
        why = "it was truncated while it was read"
    else:
        return ""
    return f"{sampler.partition('/')[0]}/driver has written an invalid cnc.dat: {why}"
