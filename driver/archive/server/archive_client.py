"""Connects an archive's Aeron client, whose name contains the archive id.

    archive id of the settings, or the driver's next correlation id --> client's name --> client

A client appends its name to the label of its heartbeat counter once, so the id must be known before
the client exists. Source: Aeron 1.53, `Archive.Context.conclude`.
"""

from dataclasses import replace

from windtunnel.driver.archive.control.archive_resources import client_name
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client.aeron import Aeron, map_cnc_file
from windtunnel.driver.client.context import ClientContext, from_environment
from windtunnel.driver.cnc import ring_buffer


def connect(settings: ArchiveSettings, clock: Clock) -> tuple[Aeron, int]:
    """Connect to the driver. Returns the client, which must be invoked, and the archive id.

    Raises ConfigurationError, StorageError, DriverTimeoutError.
    """
    context = from_environment(dir=settings.aeron_dir)
    archive_id = settings.archive_id
    if archive_id == NULL_VALUE:
        archive_id = _next_correlation_id(context, clock)
    context = replace(context, client_name=client_name(archive_id))
    return Aeron(context=context, clock=clock, invoked=True), archive_id


def _next_correlation_id(context: ClientContext, clock: Clock) -> int:
    cnc = map_cnc_file(context, clock)
    try:
        return int(ring_buffer.next_correlation_id(cnc.to_driver))
    finally:
        cnc.close()
