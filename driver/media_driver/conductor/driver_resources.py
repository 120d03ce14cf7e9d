"""What the conductor's parts share: settings, the cnc file, the agents' state, and the ways to
reach them.

One value made by the composition root and handed to each part; nothing here decides anything.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.cnc import counters, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.media.channel_sockets import Sockets
from windtunnel.driver.media.udp_socket import SystemBuffers
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import AgentProxy
from windtunnel.driver.media_driver.conductor.client_proxy import ClientProxy
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import PositionPool
from windtunnel.driver.media_driver.conductor.stream_counters import StreamCounters
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.image.loss_report import LossReport
from windtunnel.driver.media_driver.name_resolution.name_resolver import NameResolver
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender.sender_state import SenderState


@dataclass(frozen=True)
class DriverResources:
    """The parts, each with one owner; the conductor's thread is the only one that uses this."""

    context: Context
    clock: Clock
    cnc: CncFile
    values: np.ndarray
    counters: StreamCounters
    clients: ClientProxy
    record_error: Callable[[int, str], None]
    """Note an error where tools will find it, and count it."""
    sender: SenderState
    receiver: ReceiverState
    conductor: ConductorState
    sender_proxy: AgentProxy
    receiver_proxy: AgentProxy
    positions: PositionPool
    loss_report: LossReport
    names: NameResolver
    sockets: Sockets
    system_buffers: SystemBuffers
    random: random.Random
    unremoved_logs: list[Path] = field(default_factory=list)
    """Files of logs that are no longer in use, and that the system did not let go yet."""

    @property
    def resolver(self) -> Resolver:
        """Addresses for names."""
        return self.names

    def next_correlation_id(self) -> int:
        """An id that no client and no image of this driver has had."""
        return int(ring_buffer.next_correlation_id(self.cnc.to_driver))

    def publication_file(self, registration_id: int) -> Path:
        """Where a publication's log lives."""
        return self.context.dir / "publications" / f"{registration_id}.logbuffer"

    def image_file(self, correlation_id: int) -> Path:
        """Where an image's log lives."""
        return self.context.dir / "images" / f"{correlation_id}.logbuffer"

    def note_mapped(self, delta_bytes: int) -> None:
        """Keep the count of bytes that are mapped."""
        counters.add(self.values, system_counters.BYTES_CURRENTLY_MAPPED, delta_bytes)
