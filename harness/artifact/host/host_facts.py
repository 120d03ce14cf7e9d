"""Small documents about a host: UDP statistics, capture statistics, the driver's error log."""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

SNMP_SCHEMA = "windtunnel-snmp/1"
CAPTURE_SCHEMA = "windtunnel-capture/1"
ERROR_LOG_SCHEMA = "windtunnel-cnc-errors/1"


def udp_lines(snmp_text: str) -> dict[str, int]:
    """The Udp line of /proc/net/snmp by its field names; empty when there is none."""
    rows = [line.split()[1:] for line in snmp_text.splitlines() if line.startswith("Udp:")]
    if len(rows) < 2:
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=False)}


@dataclass
class SnmpFacts:
    """The Udp line of /proc/net/snmp of a host, before the traffic and after it."""

    before: dict[str, int]
    after: dict[str, int]

    def grown(self, name: str) -> int | None:
        """By how much a statistic grew during the run; None when it was not read."""
        if name not in self.before or name not in self.after:
            return None
        return self.after[name] - self.before[name]

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SNMP_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "SnmpFacts | None":
        document = read_document(path, SNMP_SCHEMA)
        if document is None:
            return None
        try:
            return cls(before=dict(document["before"]), after=dict(document["after"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DocumentError(f"{path.name}: {error}") from error


@dataclass
class CaptureFacts:
    """What the capture tool said when it ended."""

    received: int
    "Packets that it wrote."
    dropped_by_kernel: int

    def write(self, path: Path) -> None:
        write_document(path, {"schema": CAPTURE_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "CaptureFacts | None":
        document = read_document(path, CAPTURE_SCHEMA)
        if document is None:
            return None
        try:
            return cls(int(document["received"]), int(document["dropped_by_kernel"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DocumentError(f"{path.name}: {error}") from error


@dataclass
class ErrorObservation:
    """One entry of a driver's distinct error log."""

    count: int
    first_ms: int
    last_ms: int
    text: str


def write_error_log(path: Path, errors: list[ErrorObservation]) -> None:
    """Write a driver's distinct error log."""
    plain = [asdict(each) for each in errors]
    write_document(path, {"schema": ERROR_LOG_SCHEMA, "errors": plain})


def read_error_log(path: Path) -> list[ErrorObservation] | None:
    """A driver's distinct error log, or None when the file is missing."""
    document = read_document(path, ERROR_LOG_SCHEMA)
    if document is None:
        return None
    try:
        return [ErrorObservation(**each) for each in document["errors"]]
    except (KeyError, TypeError) as error:
        raise DocumentError(f"{path.name}: {error}") from error
