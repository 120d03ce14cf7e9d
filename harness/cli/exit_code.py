"""Exit codes of the command; those of verdicts, 0 to 3, are in `verdict.core.outcome`.

2 means "could not look", so a wrong command line is not 2, as it is for most tools, but 64.
"""

OK = 0
NOTHING = 1
"""A tool found nothing to look at: no driver, no file, or, for `driver-info`, no life in it."""
INCONCLUSIVE = 2
"""Nothing was decided: a machine on which no run is possible, a run with missing evidence."""
HARNESS = 3
"""Our side failed: no privileges, no disk space, a defect of Windtunnel."""
USAGE = 64
"""The command line or a scenario file is wrong (EX_USAGE of sysexits.h); nothing was started."""
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141
