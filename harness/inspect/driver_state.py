"""The process, version and liveness of a driver.

heartbeat    recent, epoch ms        alive
             old, epoch ms           silent: the driver died, hangs, or is stopped
             -1                      closed normally
             0                       starting
"""

import re
from dataclasses import dataclass

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.cnc_file import CncFile

ALIVE, SILENT, CLOSED, STARTING = "alive", "silent", "closed", "starting"
DRIVER_TIMEOUT_MS = 10_000
"""Time without a heartbeat after which clients consider a driver dead: Aeron's default."""


@dataclass(frozen=True)
class DriverState:
    """The state of a driver, taken from a snapshot of its cnc.dat."""

    state: str
    pid: int
    cnc_version: str
    software: str
    """The driver's description of its build, or empty if it has none."""
    start_ms: int
    heartbeat_ms: int
    heartbeat_age_ms: int
    """Time since the last heartbeat in milliseconds, or -1 if there was none."""
    client_liveness_timeout_ns: int
    counter_count: int
    distinct_error_count: int

    @property
    def is_alive(self) -> bool:
        return self.state == ALIVE

    @property
    def software_version(self) -> str:
        """Return the version contained in `software`, or an empty string."""
        found = re.search(r"\bversion=(\S+)", self.software)
        return found[1] if found else ""


def driver_state(cnc: CncFile, now_ms: int) -> DriverState:
    """Return a driver's state at the time `now_ms`."""
    heartbeat_ms = int(cnc.heartbeat[0])
    age_ms = now_ms - heartbeat_ms if heartbeat_ms > 0 else -1
    if heartbeat_ms <= 0:
        state = STARTING if heartbeat_ms == 0 else CLOSED
    else:
        state = ALIVE if age_ms <= DRIVER_TIMEOUT_MS else SILENT
    counters = cnc.counters()
    software = counter_key.system_counter(counters, counter_key.SOFTWARE_VERSION)
    return DriverState(
        state=state,
        pid=cnc.pid,
        cnc_version=version_text(cnc.version),
        software=software.label.partition(": ")[2] if software else "",
        start_ms=cnc.start_timestamp_ms,
        heartbeat_ms=heartbeat_ms,
        heartbeat_age_ms=age_ms,
        client_liveness_timeout_ns=cnc.client_liveness_timeout_ns,
        counter_count=len(counters),
        distinct_error_count=len(cnc.errors()),
    )


def version_text(composed: int) -> str:
    """Format a version number that is packed into the low three bytes of an integer."""
    return f"{composed >> 16 & 0xFF}.{composed >> 8 & 0xFF}.{composed & 0xFF}"
