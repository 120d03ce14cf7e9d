"""The environment variables of the archives of a run, apart from those of their threads."""

from windtunnel.harness.scenario.schema.archive import (
    CONTROL_PORT,
    REPLICATION_PORT,
    RESPONSE_PORT,
    Archive,
    ArchiveCase,
)

_VARIABLES = {
    "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED": "false",
    # The timeouts are longer than Aeron's defaults, which a slow host can exceed.
    "AERON_ARCHIVE_CONNECT_TIMEOUT": "30s",
    "AERON_ARCHIVE_MESSAGE_TIMEOUT": "30s",
    # An archive requires these channels even if it does not replicate.
    "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL": "aeron:udp?endpoint=localhost:0",
    "AERON_ARCHIVE_REPLICATION_CHANNEL": "aeron:udp?endpoint=localhost:0",
}


def archive_variables(archive: Archive | ArchiveCase, address: str = "") -> dict[str, str]:
    """Return an archive's environment variables. If an address is given, they include the archive's
    UDP channels.
    """
    found = {**_VARIABLES, "AERON_ARCHIVE_SEGMENT_FILE_LENGTH": str(archive.segment_bytes)}
    if archive.disk_bytes is not None:
        # The archive must write until the disk is full.
        found["AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD"] = "0"
    if address:
        endpoint = f"aeron:udp?endpoint={address}"
        found |= {
            "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED": "true",
            "AERON_ARCHIVE_CONTROL_CHANNEL": f"{endpoint}:{CONTROL_PORT}",
            "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL": f"{endpoint}:{RESPONSE_PORT}",
            "AERON_ARCHIVE_REPLICATION_CHANNEL": f"{endpoint}:{REPLICATION_PORT}",
        }
    return found
