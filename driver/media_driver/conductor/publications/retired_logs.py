"""Deletes the logs of publications and images that the driver no longer uses.

retire_log --> [ retired logs ] --free_retired_logs--> deleted, or --retry_deletions--> deleted
"""

from pathlib import Path

from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


def retire_log(resources: DriverResources, log: LogBuffer) -> None:
    """Add a log that the driver no longer uses to the retired logs, for later deletion."""
    resources.retired_logs.append(log)


def free_retired_logs(
    resources: DriverResources, limit: int | None = None, duration_ns_max: int | None = None
) -> int:
    """Delete the oldest retired logs: at most `limit` of them, and none after `duration_ns_max`
    nanoseconds, if these are set. Returns the number of deleted logs.
    """
    retired = len(resources.retired_logs)
    count = retired if limit is None else min(limit, retired)
    began_ns = resources.clock.now_ns()
    for index in range(count):
        delete_log(resources, resources.retired_logs.pop(0))
        if duration_ns_max is not None and resources.clock.now_ns() - began_ns >= duration_ns_max:
            return index + 1
    return count


def delete_log(resources: DriverResources, log: LogBuffer) -> None:
    """Delete a log that the driver no longer uses. Clients may still have the log mapped.

    A failure is recorded, and `retry_deletions` tries again. The caller can thus finish its
    cleanup.
    """
    length, path = log.length, log.path
    log.close()
    resources.add_mapped_bytes(-length)
    error = _try_unlink(resources, path)
    if error is not None:
        resources.unremoved_logs.append(path)
        resources.record_error(ErrorCode.GENERIC_ERROR, f"cannot remove {path}: {error.strerror}")


def retry_deletions(resources: DriverResources) -> None:
    """Try again to delete the log files whose deletion failed."""
    resources.unremoved_logs[:] = [
        path for path in resources.unremoved_logs if _try_unlink(resources, path) is not None
    ]


def _try_unlink(resources: DriverResources, path: Path) -> OSError | None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        counters.increment(resources.values, system_counters.FREE_FAILS)
        return error
    return None
