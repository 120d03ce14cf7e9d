"""Exit codes of the `windtunnel` command. Those of verdicts, 0 to 3, are in `verdict.core.outcome`.

2 means INCONCLUSIVE, so an invalid command line exits with 64 and not with the usual 2.
"""

OK = 0
NOTHING = 1
"""Nothing to show: the driver or file does not exist or, for `driver-info`, the driver is not
alive.
"""
INCONCLUSIVE = 2
"""No result: this machine cannot execute any run, or a run folder is incomplete or unreadable."""
HARNESS = 3
"""The harness failed: missing privileges, a full disk, or a defect of Windtunnel."""
USAGE = 64
"""Invalid command line or scenario file (EX_USAGE of sysexits.h). Nothing was started."""
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141
