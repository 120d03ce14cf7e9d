"""The base class of network and IPC publications, with their log buffer, identity and
clients.

    ACTIVE --last holder removed--> DRAINING --consumed--> LINGER --timeout--> DONE

Source: spec 2.2 and 4.8, Aeron 1.53.
"""

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.channel.publication_parameters import (
    InitialPosition,
    PublicationDefaults,
    PublicationParameters,
)
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor, position
from windtunnel.driver.logbuffer.log_buffer import LogBuffer, usable_bytes
from windtunnel.driver.logbuffer.parameters import LogParameters
from windtunnel.driver.media.udp_socket import SystemBuffers
from windtunnel.driver.media_driver.agent.agent_proxy import append_slot, fill_record, remove_slot
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredTimeouts
from windtunnel.driver.media_driver.conductor.storage import check_space
from windtunnel.driver.media_driver.context import Context


class State(enum.Enum):
    """The state of a publication."""

    ACTIVE = "active"
    DRAINING = "draining"
    LINGER = "linger"
    DONE = "done"


@dataclass(eq=False)
class LocalPublication:
    """The base class of network and IPC publications."""

    registration_id: int
    client_id: int
    session_id: int
    stream_id: int
    channel_text: str
    parameters: PublicationParameters
    is_exclusive: bool
    log: LogBuffer
    limit_slot: int
    record: np.record
    """The PUBLICATION_LIMIT record. It includes the head of the local subscriber list."""
    state: State = State.ACTIVE
    state_since_ns: int = 0
    holders: set[int] = field(default_factory=set)
    """Registration ids of the add commands whose clients hold the publication."""
    counter_ids: list[int] = field(default_factory=list)
    values: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """The counter values buffer of cnc.dat."""
    source_identity: str = "aeron:ipc"

    @property
    def pub_pos_id(self) -> int:
        """Id of the pub-pos counter."""
        return self.counter_ids[0]

    @property
    def pub_lmt_id(self) -> int:
        """Id of the pub-lmt counter."""
        return self.counter_ids[1]

    @property
    def is_revoked(self) -> bool:
        """Whether the publication was revoked."""
        return bool(descriptor.is_publication_revoked(self.log.log, self.log.meta_at))

    @property
    def untethered_timeouts(self) -> UntetheredTimeouts:
        """The publication's timeouts for untethered subscribers."""
        return UntetheredTimeouts(
            self.parameters.untethered_window_limit_timeout_ns,
            self.parameters.untethered_linger_timeout_ns,
            self.parameters.untethered_resting_timeout_ns,
        )

    @property
    def log_path(self) -> Path:
        """Path of the log buffer file that clients map."""
        return self.log.path

    def producer_position(self) -> int:
        """Return the position up to which publishers have claimed space in the log."""
        log = self.log
        return int(
            descriptor.claimed_position(log.log, log.meta_at, log.term_length, log.initial_term_id)
        )

    def publish_position(self) -> int:
        """Set the pub-pos counter to the producer position, and return this position."""
        produced = self.producer_position()
        counters.set_release(self.values, self.pub_pos_id, produced)
        return produced

    def set_end_of_stream(self, end_position: int) -> None:
        """Write the end-of-stream position to the log metadata."""
        descriptor.put_end_of_stream_position_release(self.log.log, self.log.meta_at, end_position)

    def set_connected(self, is_connected: bool) -> None:
        """Write the connection status to the log metadata."""
        if bool(descriptor.is_connected_acquire(self.log.log, self.log.meta_at)) != is_connected:
            descriptor.put_is_connected_release(self.log.log, self.log.meta_at, int(is_connected))

    def revoke(self) -> None:
        """Mark the publication as revoked in the log metadata. The conductor's timer then ends the
        publication.
        """
        descriptor.put_is_publication_revoked_release(self.log.log, self.log.meta_at)


def publication_defaults(context: Context, buffers: SystemBuffers) -> PublicationDefaults:
    """Return the driver's defaults for publication parameters that a channel does not set."""
    return PublicationDefaults(
        term_length=context.term_buffer_length,
        ipc_term_length=context.ipc_term_buffer_length,
        mtu_length=context.mtu_length,
        ipc_mtu_length=context.ipc_mtu_length,
        window_length=context.publication_window_length,
        ipc_window_length=context.ipc_publication_window_length,
        linger_ns=context.publication_linger_timeout_ns,
        is_sparse=context.term_buffer_sparse_file,
        spies_simulate_connection=context.spies_simulate_connection,
        max_resend=context.max_resend,
        has_retransmit_ranges=context.retransmit_ranges,
        linger_max_ns=context.publication_linger_max_ns,
        socket_sndbuf_length=context.socket_sndbuf_length,
        system_sndbuf_length=buffers.sndbuf_length,
        untethered_window_limit_timeout_ns=context.untethered_window_limit_timeout_ns,
        untethered_linger_timeout_ns=context.untethered_linger_timeout_ns,
        untethered_resting_timeout_ns=context.untethered_resting_timeout_ns,
    )


class StreamStart(NamedTuple):
    """The start position of a new stream."""

    initial_term_id: int
    term_id: int
    term_offset: int
    position: int

    def configured_initial_position(self, parameters: PublicationParameters) -> InitialPosition:
        """Return the initial position that a later channel must specify to share this stream's
        publication.

        This is the unchanged initial position of the first channel. The end of a term and the start
        of the next term are the same position, but Aeron treats them as different parameters.
        """
        own = InitialPosition(self.initial_term_id, self.term_id, self.term_offset)
        return parameters.initial_position or own


def stream_start(resources: DriverResources, parameters: PublicationParameters) -> StreamStart:
    """Return the start position that a channel specifies. If it specifies none, the initial term id
    is random.

    The end of a term is normalised to the start of the next term.
    """
    initial = parameters.initial_position
    if initial is None:
        term_id = wrap_i32(resources.random.getrandbits(32))
        return StreamStart(term_id, term_id, 0, 0)
    term_id, offset = initial.term_id, initial.term_offset
    if offset == parameters.term_length:
        term_id, offset = int(wrap_i32(term_id + 1)), 0
    shift = parameters.term_length.bit_length() - 1
    at = int(position.of(term_id, offset, shift, initial.initial_term_id))
    return StreamStart(initial.initial_term_id, term_id, offset, at)


def create_log(
    resources: DriverResources,
    registration_id: int,
    session_id: int,
    stream_id: int,
    parameters: PublicationParameters,
    start: StreamStart,
    channel: UdpChannel | None,
    *,
    is_exclusive: bool,
) -> LogBuffer:
    """Create the log of a new publication. `channel` is None for IPC."""
    context, buffers = resources.context, resources.system_buffers
    kind = descriptor.EXCLUSIVE_PUBLICATION if is_exclusive else descriptor.CONCURRENT_PUBLICATION
    explicit_resend = parameters.max_resend if "max-resend" in parameters.explicit else 0
    log_length = int(descriptor.log_length(parameters.term_length, context.file_page_size))
    check_space(context, log_length, resources.record_error, usable_bytes)
    log = LogBuffer.create(
        resources.publication_file(registration_id),
        LogParameters(
            type=kind,
            correlation_id=registration_id,
            session_id=session_id,
            stream_id=stream_id,
            initial_term_id=start.initial_term_id,
            term_length=parameters.term_length,
            mtu_length=parameters.mtu_length,
            page_size=context.file_page_size,
            start_term_id=start.term_id,
            start_term_offset=start.term_offset,
            publication_window_length=parameters.window_length,
            socket_sndbuf_length=(channel and channel.socket_sndbuf_length) or 0,
            # As in the C driver, leave the system's maximum unset.
            os_default_socket_sndbuf_length=buffers.sndbuf_length,
            socket_rcvbuf_length=(channel and channel.socket_rcvbuf_length) or 0,
            os_default_socket_rcvbuf_length=buffers.rcvbuf_length,
            max_resend=explicit_resend,
            entity_tag=-1 if parameters.entity_tag is None else parameters.entity_tag,
            response_correlation_id=parameters.response_correlation_id,
            linger_timeout_ns=parameters.linger_ns,
            untethered_window_limit_timeout_ns=parameters.untethered_window_limit_timeout_ns,
            untethered_resting_timeout_ns=parameters.untethered_resting_timeout_ns,
            untethered_linger_timeout_ns=parameters.untethered_linger_timeout_ns,
            group=channel is not None and channel.has_group_semantics,
            is_response=parameters.is_response,
            sparse=parameters.is_sparse,
            signal_eos=parameters.signal_eos,
            spies_simulate_connection=parameters.spies_simulate_connection,
        ),
        sparse=parameters.is_sparse,
        check_storage=False,
    )
    resources.add_mapped_bytes(log.length)
    return log


def fill_limit(
    record: np.record,
    log: LogBuffer,
    parameters: PublicationParameters,
    start: StreamStart,
    kind: int,
) -> None:
    """Fill the PUBLICATION_LIMIT record of a publication."""
    fill_record(
        record,
        kind=kind,
        log_address=log.address,
        log_length=log.length,
        meta_at=log.meta_at,
        term_length=log.term_length,
        bits=log.bits,
        initial_term_id=log.initial_term_id,
        window_length=parameters.window_length,
        spies_simulate_connection=int(parameters.spies_simulate_connection),
        first_subscriber=subscriber_positions.NONE,
        clean_position=start.position,
        trip_limit=start.position,
        consumer_position=start.position,
    )


def activate_limit(resources: DriverResources, slot: int) -> None:
    """Start updating the limit of a publication, whose PUBLICATION_LIMIT record is in this slot."""
    conductor = resources.conductor
    append_slot(conductor.active_limits, conductor.agent[0], "limit_count", slot)


def deactivate_limit(resources: DriverResources, slot: int) -> None:
    """Stop updating the limit of a publication. Repeated calls have no effect."""
    conductor = resources.conductor
    remove_slot(conductor.active_limits, conductor.agent[0], "limit_count", slot)
