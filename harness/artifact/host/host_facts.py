"""Documents about a host: UDP statistics, capture statistics and the driver's error log."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


def udp_lines(snmp_text: str) -> dict[str, int]:
    """Parse the Udp lines of /proc/net/snmp into a dict. The dict is empty if there are no such
    lines.
    """
    rows = [line.split()[1:] for line in snmp_text.splitlines() if line.startswith("Udp:")]
    if len(rows) < 2:
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=False)}


@dataclass
class SnmpFacts(StoredDocument):
    """A host's UDP statistics from /proc/net/snmp, before and after the traffic."""

    SCHEMA: ClassVar[str] = "windtunnel-snmp/1"

    before: dict[str, int]
    after: dict[str, int]

    def grown(self, name: str) -> int | None:
        """Return the increase of a statistic during the run, or None if it was not recorded."""
        if name not in self.before or name not in self.after:
            return None
        return self.after[name] - self.before[name]


@dataclass
class CaptureFacts(StoredDocument):
    """The statistics that the capture tool reported when it ended."""

    SCHEMA: ClassVar[str] = "windtunnel-capture/1"

    received: int
    "Number of packets that were written to the capture file."
    dropped_by_kernel: int


@dataclass
class ErrorObservation:
    """One entry of a driver's distinct error log."""

    count: int
    first_ms: int
    last_ms: int
    text: str


@dataclass(frozen=True)
class _ErrorLog(StoredDocument):
    SCHEMA: ClassVar[str] = "windtunnel-cnc-errors/1"

    errors: list[ErrorObservation]


def write_error_log(path: Path, errors: list[ErrorObservation]) -> None:
    """Write a driver's distinct error log."""
    _ErrorLog(errors).write(path)


def read_error_log(path: Path) -> list[ErrorObservation] | None:
    """Read a driver's distinct error log. Returns None if the file is missing."""
    found = _ErrorLog.read(path)
    return None if found is None else found.errors
