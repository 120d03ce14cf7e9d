"""The archives of a scenario: on which host one runs, beside the driver, and how it keeps files.

    archives:
      - {host: b, segment: 256KiB, disk: 16MiB}
    traffic:
      - {id: orders, from: a, to: b, recorded: b, ...}

An archive of its own runs on each host that is named; a stream says which of them records it.
Refuses to know what a recording is: that is the judge's business.
"""

from pydantic import Field

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Bytes, Name, Table
from windtunnel.harness.scenario.schema.units import format_bytes

ARCHIVES_MAX = 8
SEGMENT_MIN, SEGMENT_MAX = 64 * 1024, 1 << 30
CONTROL_PORT, ANSWER_PORT, COPY_PORT, ASKING_PORT = 8010, 8020, 8030, 8040
"""On which an archive hears archives and clients of other hosts, hears answers, and receives what
it copies; and on which a client hears the archive of another host."""
COPYING_PORTS = (CONTROL_PORT, ANSWER_PORT, COPY_PORT, ASKING_PORT)
SEGMENT_DEFAULT = 128 * 1024 * 1024
"""Aeron's."""
DISK_MIN, DISK_MAX = 8 << 20, 1 << 30
DISK_OTHERS_BYTES = 4 << 20
"""Of a disk, what catalog and mark file may take beside the recordings, and a block that no longer
fits."""


class Archive(Table):
    """One archive."""

    host: Name
    """Where it runs, over that host's driver."""

    segment_bytes: Bytes = Field(
        default=SEGMENT_DEFAULT, alias="segment", ge=SEGMENT_MIN, le=SEGMENT_MAX
    )
    """Length of a recording's files: a power of two from 64KiB to 1GiB, a term at least; default
    128MiB."""

    disk_bytes: Bytes | None = Field(default=None, alias="disk", ge=DISK_MIN, le=DISK_MAX)
    """Size of a disk that holds nothing but the archive's directory, which streams may fill: from
    8MiB to 1GiB; default the machine's own, which has room for all."""


class ArchiveCase(Part):
    """An archive with nothing left open."""

    host: Name
    segment_bytes: int
    disk_bytes: int | None = None


def archive_case(archive: Archive) -> ArchiveCase:
    """An archive as a case has it."""
    return ArchiveCase(
        host=archive.host, segment_bytes=archive.segment_bytes, disk_bytes=archive.disk_bytes
    )


def archive_line(archive: ArchiveCase) -> str:
    """An archive in words."""
    text = f"on {archive.host}, in files of {format_bytes(archive.segment_bytes)}"
    if archive.disk_bytes is not None:
        text += f", on a disk of {format_bytes(archive.disk_bytes)}"
    return text
