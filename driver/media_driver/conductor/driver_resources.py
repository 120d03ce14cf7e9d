"""The resources that the conductor's components share, such as settings and agent states.

`composition.make_resources` makes one DriverResources per driver. Every component receives it.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.channel.subscription_parameters import SubscriptionDefaults
from windtunnel.driver.cnc import counters, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.error_log import RecordError
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media.channel_sockets import Sockets
from windtunnel.driver.media.udp_socket import SystemBuffers
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import AgentProxy
from windtunnel.driver.media_driver.conductor.client_proxy import ClientProxy
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import PositionPool
from windtunnel.driver.media_driver.conductor.stream_counters import StreamCounters
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.name_resolution.name_resolver import NameResolver
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender.sender_state import SenderState


@dataclass(frozen=True)
class DriverResources:
    """The resources that a driver's components share. Only the conductor's thread uses them."""

    context: Context
    clock: Clock
    cnc: CncFile
    values: np.ndarray
    counters: StreamCounters
    clients: ClientProxy
    record_error: RecordError
    sender: SenderState
    receiver: ReceiverState
    conductor: ConductorState
    sender_proxy: AgentProxy
    receiver_proxy: AgentProxy
    positions: PositionPool
    names: NameResolver
    sockets: Sockets
    system_buffers: SystemBuffers
    random: random.Random
    retired_logs: list[LogBuffer] = field(default_factory=list)
    """Unused log buffers that are not freed yet, oldest first."""
    unremoved_logs: list[Path] = field(default_factory=list)
    """Unused log buffer files that could not be deleted yet."""

    @property
    def resolver(self) -> Resolver:
        """The driver's resolver for host names."""
        return self.names

    def subscription_defaults(self) -> SubscriptionDefaults:
        """Return the driver's values of subscription parameters that a channel omits."""
        context = self.context
        return SubscriptionDefaults(
            is_reliable=context.reliable_stream,
            is_tethered=context.tether_subscriptions,
            is_rejoin=context.rejoin_stream,
            is_sparse=context.term_buffer_sparse_file,
            is_nak_all_gaps=context.nak_all_gaps,
            gap_fill_datagrams=context.gap_fill_datagrams,
            gap_fill_delay_ns=context.gap_fill_delay_ns,
            group=context.receiver_group_consideration,
            group_tag=context.receiver_group_tag,
            congestion_control=context.congestion_control,
            initial_window_length=context.initial_window_length,
            socket_rcvbuf_length=context.socket_rcvbuf_length,
            system_rcvbuf_length=self.system_buffers.rcvbuf_length,
            untethered_window_limit_timeout_ns=context.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns=context.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns=context.untethered_resting_timeout_ns,
        )

    def next_correlation_id(self) -> int:
        """Return a new correlation id that no client or image of this driver uses."""
        return int(ring_buffer.next_correlation_id(self.cnc.to_driver))

    def publication_file(self, registration_id: int) -> Path:
        """Return the path of a publication's log buffer file."""
        return self.context.dir / "publications" / f"{registration_id}.logbuffer"

    def image_file(self, correlation_id: int) -> Path:
        """Return the path of an image's log buffer file."""
        return self.context.dir / "images" / f"{correlation_id}.logbuffer"

    def add_mapped_bytes(self, delta_bytes: int) -> None:
        """Add a number of bytes to the counter of mapped bytes."""
        counters.add(self.values, system_counters.BYTES_CURRENTLY_MAPPED, delta_bytes)
