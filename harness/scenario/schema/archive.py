"""The archives of a scenario: their hosts, and the sizes of their segment files and disks.

    archives:
      - {host: b, segment: 256KiB, disk: 16MiB}
    traffic:
      - {id: orders, from: a, to: b, recorded: b, ...}

An archive runs alongside the driver of each listed host. A stream specifies which archive records
it.
"""

from pydantic import Field

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Bytes, Name, Table
from windtunnel.harness.scenario.schema.units import format_bytes

ARCHIVES_MAX = 8
SEGMENT_MIN, SEGMENT_MAX = 64 * 1024, 1 << 30
CONTROL_PORT, RESPONSE_PORT, REPLICATION_PORT, CLIENT_RESPONSE_PORT = 8010, 8020, 8030, 8040
"""UDP ports: control requests to an archive, responses to an archive, replicated recordings, and
responses to a client on another host.
"""
REPLICATION_PORTS = (CONTROL_PORT, RESPONSE_PORT, REPLICATION_PORT, CLIENT_RESPONSE_PORT)
SEGMENT_DEFAULT = 128 * 1024 * 1024
"""Default segment file length in bytes, the same as in Aeron."""
DISK_MIN, DISK_MAX = 8 << 20, 1 << 30
DISK_RESERVE_BYTES = 4 << 20
"""Disk space for the catalog, the mark file, and a block that no longer fits."""


class Archive(Table):
    """The archive on one host."""

    host: Name
    """The host. The archive uses this host's driver."""

    segment_bytes: Bytes = Field(
        default=SEGMENT_DEFAULT, alias="segment", ge=SEGMENT_MIN, le=SEGMENT_MAX
    )
    """Segment file length: a power of two from 64KiB to 1GiB, not less than the term length.
    Default: 128MiB.
    """

    disk_bytes: Bytes | None = Field(default=None, alias="disk", ge=DISK_MIN, le=DISK_MAX)
    """Size of a separate disk for the archive's directory, which recordings may fill: 8MiB to 1GiB.
    Default: the machine's disk, which has enough space.
    """


class ArchiveCase(Part):
    """An archive in a resolved case: its host, and the sizes of its segment files and disk."""

    host: Name
    segment_bytes: int
    disk_bytes: int | None = None


def archive_case(archive: Archive) -> ArchiveCase:
    """Convert an archive of a scenario file to the form used in a resolved case."""
    return ArchiveCase(
        host=archive.host, segment_bytes=archive.segment_bytes, disk_bytes=archive.disk_bytes
    )


def archive_line(archive: ArchiveCase) -> str:
    """Return a one-line description of an archive."""
    text = f"on {archive.host}, in files of {format_bytes(archive.segment_bytes)}"
    if archive.disk_bytes is not None:
        text += f", on a disk of {format_bytes(archive.disk_bytes)}"
    return text
