"""The process of one workload.

    python -m harness.workload publisher|subscriber|recorder|replayer|replicator|saboteur
                    --case case.json --traffic ID --aeron-dir D --out DIR [--sabotage NAME]

Prints `ready` when subscribed, or recorded, and `progress <bytes>/<total>` on the way. Exit codes:
0 the stream went to its end, 1 the subject failed (why is on stderr and in the document left
behind), 124 the same, but all that failed is that it did not answer in time, 127 the subject cannot
do what the case asks for, 143 or 130 asked to end before that.
"""

import sys

from driver.base.errors import DriverError
from driver.client.errors import RegistrationError
from driver.command.command_type import ErrorCode
from harness.workload import (
    options,
    publisher,
    recorder,
    replayer,
    replicator,
    saboteur,
    subscriber,
)
from harness.workload.stop import TIMEOUTS, GaveUp, Stop, Stopped, SubjectError

SUBJECT_FAILED = 1
GAVE_UP = 124
UNSUPPORTED = 127
SIGNAL_BASE = 128

RUNS = {
    "publisher": publisher.run,
    "subscriber": subscriber.run,
    "recorder": recorder.run,
    "replayer": replayer.run,
    "replicator": replicator.run,
    "saboteur": saboteur.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one workload to its end. Returns the exit code."""
    chosen = options.parse(arguments)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
