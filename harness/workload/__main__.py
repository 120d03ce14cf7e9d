"""The process of one workload, such as a publisher or a subscriber.

    python -m windtunnel.harness.workload publisher|subscriber|recorder|replayer|replicator|saboteur
                    --case case.json --traffic ID --aeron-dir D --out DIR [--sabotage NAME]

It prints `ready` once it has subscribed or records, and `progress <bytes>/<total>` as it proceeds.
The subject is the software under test. Exit codes: 0 the stream completed; 1 the subject failed
(the reason is on stderr and in the document); 3 the workload or its machine failed, which is no
evidence against the subject (the traceback is on stderr); 124 the subject failed because it timed
out; 127 the subject does not support what the case requires; 143 or 130 a signal stopped the
process.
"""

import contextlib
import errno
import sys
import traceback

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.artifact.huge_pages import avoid_huge_pages
from windtunnel.harness.workload import options, publisher, saboteur, subscriber
from windtunnel.harness.workload.archive import archive_workload
from windtunnel.harness.workload.stop import TIMEOUTS, GaveUp, Stop, Stopped, SubjectError

SUBJECT_FAILED = 1
HARNESS_FAILED = 3
GAVE_UP = 124
UNSUPPORTED = 127
SIGNAL_BASE = 128

SUBJECT_PACKAGE = "windtunnel.driver"
"""The package under test, which includes the client. Its exceptions are failures of the subject."""

SCARCE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Errors that show that the machine has run out of a resource. Any code may raise them."""

RUNS = {
    "publisher": publisher.run,
    "subscriber": subscriber.run,
    "recorder": archive_workload.run,
    "replayer": archive_workload.run,
    "replicator": archive_workload.run,
    "saboteur": saboteur.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one workload to its end. Returns the exit code."""
    avoid_huge_pages()
    try:
        chosen = options.parse(arguments)
    except Exception as error:
        return _report_unexpected("workload", error)
    try:
        RUNS[chosen.role](chosen, Stop.on_signals())
    except Stopped as stopped:
        print(f"{chosen.role}: {stopped}", file=sys.stderr)
        return SIGNAL_BASE + stopped.number
    except RegistrationError as error:
        print(f"{chosen.role}: {error}", file=sys.stderr)
        return UNSUPPORTED if error.code == ErrorCode.NOT_SUPPORTED else SUBJECT_FAILED
    except (GaveUp, *TIMEOUTS) as error:
        print(f"{chosen.role}: {error}", file=sys.stderr)
        return GAVE_UP
    except (DriverError, SubjectError) as error:
        print(f"{chosen.role}: {error}", file=sys.stderr)
        return SUBJECT_FAILED
    except Exception as error:
        return _report_unexpected(chosen.role, error)
    return 0


def _report_unexpected(role: str, error: Exception) -> int:
    """Report an unexpected error. Returns the exit code for a failure of the software under test or
    of the harness.
    """
    is_subject = _is_subject_error(error)
    whose = "the client failed" if is_subject else "the workload itself failed, not the subject"
    # The log may be on the disk that is full.
    with contextlib.suppress(OSError):
        traceback.print_exception(error, file=sys.stderr)
        # This line comes last, because it is read first.
        print(f"{role}: {whose}: {type(error).__name__}: {error}", file=sys.stderr)
    return SUBJECT_FAILED if is_subject else HARNESS_FAILED


def _is_subject_error(error: Exception) -> bool:
    """Return whether the innermost traceback frame from this project is in the driver package."""
    is_scarce = isinstance(error, OSError) and error.errno in SCARCE
    if is_scarce or isinstance(error, MemoryError):
        return False
    packages = [
        ".".join(str(frame.f_globals.get("__name__", "")).split(".")[:2])
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    # The entry point of a workload is called `__main__`.
    own = [each for each in packages if each in (SUBJECT_PACKAGE, "windtunnel.harness", "__main__")]
    return bool(own) and own[-1] == SUBJECT_PACKAGE


if __name__ == "__main__":
    sys.exit(main())
