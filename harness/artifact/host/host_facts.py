"""Documents about a host: UDP statistics, capture statistics and the driver's error log."""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import read_as, write_document

SNMP_SCHEMA = "windtunnel-snmp/1"
CAPTURE_SCHEMA = "windtunnel-capture/1"
ERROR_LOG_SCHEMA = "windtunnel-cnc-errors/1"


def udp_lines(snmp_text: str) -> dict[str, int]:
    """Parse the Udp lines of /proc/net/snmp into a dict. The dict is empty if there are no such
    lines.
    """
    rows = [line.split()[1:] for line in snmp_text.splitlines() if line.startswith("Udp:")]
    if len(rows) < 2:
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=False)}


@dataclass
class SnmpFacts:
    """A host's UDP statistics from /proc/net/snmp, before and after the traffic."""

    before: dict[str, int]
    after: dict[str, int]

    def grown(self, name: str) -> int | None:
        """Return the increase of a statistic during the run, or None if it was not recorded."""
        if name not in self.before or name not in self.after:
            return None
        return self.after[name] - self.before[name]

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SNMP_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "SnmpFacts | None":
        return read_as(cls, path, SNMP_SCHEMA)


@dataclass
class CaptureFacts:
    """The statistics that the capture tool reported when it ended."""

    received: int
    "Number of packets that were written to the capture file."
    dropped_by_kernel: int

    def write(self, path: Path) -> None:
        write_document(path, {"schema": CAPTURE_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "CaptureFacts | None":
        return read_as(cls, path, CAPTURE_SCHEMA)


@dataclass
class ErrorObservation:
    """One entry of a driver's distinct error log."""

    count: int
    first_ms: int
    last_ms: int
    text: str


@dataclass(frozen=True)
class _ErrorLog:
    errors: list[ErrorObservation]


def write_error_log(path: Path, errors: list[ErrorObservation]) -> None:
    """Write a driver's distinct error log."""
    plain = [asdict(each) for each in errors]
    write_document(path, {"schema": ERROR_LOG_SCHEMA, "errors": plain})


def read_error_log(path: Path) -> list[ErrorObservation] | None:
    """Read a driver's distinct error log. Returns None if the file is missing."""
    found = read_as(_ErrorLog, path, ERROR_LOG_SCHEMA)
    return None if found is None else found.errors
