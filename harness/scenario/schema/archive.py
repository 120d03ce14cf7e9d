"""The archives of a scenario: the host on which each runs, and the size of its files.

    archives:
      - {host: b, segment: 256KiB, disk: 16MiB}
    traffic:
      - {id: orders, from: a, to: b, recorded: b, ...}

An archive runs next to the driver of each listed host. A stream specifies which of them records it.
"""

from pydantic import Field

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Bytes, Name, Table
from windtunnel.harness.scenario.schema.units import format_bytes

ARCHIVES_MAX = 8
SEGMENT_MIN, SEGMENT_MAX = 64 * 1024, 1 << 30
CONTROL_PORT, RESPONSE_PORT, REPLICATION_PORT, CLIENT_RESPONSE_PORT = 8010, 8020, 8030, 8040
"""UDP ports: control requests to an archive, responses to an archive, replicated recordings, and
responses to a client on another host."""
REPLICATION_PORTS = (CONTROL_PORT, RESPONSE_PORT, REPLICATION_PORT, CLIENT_RESPONSE_PORT)
SEGMENT_DEFAULT = 128 * 1024 * 1024
"""Aeron's default."""
DISK_MIN, DISK_MAX = 8 << 20, 1 << 30
DISK_RESERVE_BYTES = 4 << 20
"""Space on a disk for catalog and mark file, and for a block that no longer fits."""


class Archive(Table):
    """One archive."""

    host: Name
    """The host; the archive uses that host's driver."""

    segment_bytes: Bytes = Field(
        default=SEGMENT_DEFAULT, alias="segment", ge=SEGMENT_MIN, le=SEGMENT_MAX
    )
    """Segment file length: a power of two from 64KiB to 1GiB, at least the term length; default
    128MiB."""

    disk_bytes: Bytes | None = Field(default=None, alias="disk", ge=DISK_MIN, le=DISK_MAX)
    """Size of a separate disk for the archive's directory, which recordings may fill: from 8MiB to
    1GiB; default the machine's disk, which has enough space."""


class ArchiveCase(Part):
    """A resolved archive."""

    host: Name
    segment_bytes: int
    disk_bytes: int | None = None


def archive_case(archive: Archive) -> ArchiveCase:
    """Resolve an archive."""
    return ArchiveCase(
        host=archive.host, segment_bytes=archive.segment_bytes, disk_bytes=archive.disk_bytes
    )


def archive_line(archive: ArchiveCase) -> str:
    """Return the description of an archive."""
    text = f"on {archive.host}, in files of {format_bytes(archive.segment_bytes)}"
    if archive.disk_bytes is not None:
        text += f", on a disk of {format_bytes(archive.disk_bytes)}"
    return text
