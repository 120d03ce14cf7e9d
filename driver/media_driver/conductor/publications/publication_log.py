"""What every local publication has, on the network or not: its log, its identity, and who holds it.

    ACTIVE --last holder gone--> DRAINING --all consumed--> LINGER --time--> DONE

Source: spec 2.2 and 4.8, Aeron 1.53.
"""

import enum
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.channel.publication_parameters import (
    InitialPosition,
    PublicationDefaults,
    PublicationParameters,
)
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.logbuffer import descriptor, position
from windtunnel.driver.logbuffer.log_buffer import LogBuffer, usable_bytes
from windtunnel.driver.logbuffer.parameters import LogParameters
from windtunnel.driver.media.udp_socket import SystemBuffers
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import fill_record
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredTimeouts
from windtunnel.driver.media_driver.conductor.storage import check_space
from windtunnel.driver.media_driver.context import Context


class State(enum.Enum):
    """Where a publication is in its life."""

    ACTIVE = "active"
    DRAINING = "draining"
    LINGER = "linger"
    DONE = "done"


@dataclass(eq=False)
class LocalPublication:
    """The part that network and IPC publications share."""

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
    """Its PUBLICATION_LIMIT record, which also heads the list of its local readers."""
    state: State = State.ACTIVE
    state_since_ns: int = 0
    holders: set[int] = field(default_factory=set)
    """Registration ids that clients hold it by; a shared one has several."""
    counter_ids: list[int] = field(default_factory=list)
    values: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """The counter values of cnc.dat."""
    source_identity: str = "aeron:ipc"

    @property
    def pub_pos_id(self) -> int:
        """Counter of how far its publishers have claimed."""
        return self.counter_ids[0]

    @property
    def pub_lmt_id(self) -> int:
        """Counter of how far its publishers may go."""
        return self.counter_ids[1]

    @property
    def is_revoked(self) -> bool:
        """Whether it was revoked by its last holder."""
        return bool(descriptor.is_publication_revoked(self.log.log, self.log.meta_at))

    @property
    def untethered_timeouts(self) -> UntetheredTimeouts:
        """What it grants readers that cannot keep up."""
        return UntetheredTimeouts(
            self.parameters.untethered_window_limit_timeout_ns,
            self.parameters.untethered_linger_timeout_ns,
            self.parameters.untethered_resting_timeout_ns,
        )

    @property
    def log_path(self) -> Path:
        """What clients map."""
        return self.log.path

    def producer_position(self) -> int:
        """How far its publishers have claimed."""
        return self.log.producer_position()

    def publish_position(self) -> int:
        """Show tools how far its publishers have claimed; the limit kernel does so while ACTIVE."""
        produced = self.producer_position()
        counters.set_release(self.values, self.pub_pos_id, produced)
        return produced

    def set_end_of_stream(self, end_position: int) -> None:
        """Tell readers of the log where the stream ends."""
        descriptor.put_end_of_stream_position_release(self.log.log, self.log.meta_at, end_position)

    def set_connected(self, is_connected: bool) -> None:
        """Tell publishers whether anybody listens."""
        if bool(descriptor.is_connected_acquire(self.log.log, self.log.meta_at)) != is_connected:
            descriptor.put_is_connected_release(self.log.log, self.log.meta_at, int(is_connected))

    def revoke(self) -> None:
        """Mark the stream as withdrawn; the timer acts on it."""
        descriptor.put_is_publication_revoked_release(self.log.log, self.log.meta_at)


def defaults_of(context: Context, buffers: SystemBuffers) -> PublicationDefaults:
    """What the driver's settings say where a channel is silent."""
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
        socket_sndbuf_length=context.socket_sndbuf_length,
        system_sndbuf_length=buffers.sndbuf_length,
        untethered_window_limit_timeout_ns=context.untethered_window_limit_timeout_ns,
        untethered_linger_timeout_ns=context.untethered_linger_timeout_ns,
        untethered_resting_timeout_ns=context.untethered_resting_timeout_ns,
    )


@dataclass(frozen=True)
class Start:
    """Where a new stream begins."""

    initial_term_id: int
    term_id: int
    term_offset: int
    position: int

    def configured_initial_position(self, parameters: PublicationParameters) -> InitialPosition:
        """What a channel must say to share the stream: what the first one said, if anything.

        Not where that is: the end of a term and the beginning of the next are one place, but to
        Aeron two requests.
        """
        own = InitialPosition(self.initial_term_id, self.term_id, self.term_offset)
        return parameters.initial_position or own


def start_of(parts: DriverResources, parameters: PublicationParameters) -> Start:
    """The start that the channel asks for, or a random initial term id.

    A start at the very end of a term is the beginning of the next.
    """
    wanted = parameters.initial_position
    if wanted is None:
        term_id = wrap_i32(parts.random.getrandbits(32))
        return Start(term_id, term_id, 0, 0)
    term_id, offset = wanted.term_id, wanted.term_offset
    if offset == parameters.term_length:
        term_id, offset = int(wrap_i32(term_id + 1)), 0
    shift = parameters.term_length.bit_length() - 1
    at = int(position.of(term_id, offset, shift, wanted.initial_term_id))
    return Start(wanted.initial_term_id, term_id, offset, at)


def create_log(
    parts: DriverResources,
    registration_id: int,
    session_id: int,
    stream_id: int,
    parameters: PublicationParameters,
    start: Start,
    channel: UdpChannel | None,
    *,
    is_exclusive: bool,
) -> LogBuffer:
    """Make the log of a new publication; `channel` is None for IPC."""
    context, buffers = parts.context, parts.system_buffers
    kind = descriptor.EXCLUSIVE_PUBLICATION if is_exclusive else descriptor.CONCURRENT_PUBLICATION
    explicit_resend = parameters.max_resend if "max-resend" in parameters.explicit else 0
    log_length = int(descriptor.log_length(parameters.term_length, context.file_page_size))
    check_space(context, log_length, parts.record_error, usable_bytes)
    log = LogBuffer.create(
        parts.publication_file(registration_id),
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
            # What the system allows at most, the C driver does not note either.
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
    parts.note_mapped(log.length)
    return log


def delete_log(parts: DriverResources, log: LogBuffer) -> None:
    """Remove a log that nobody of ours uses any more; clients may still have it mapped.

    What cannot be removed is noted and left to `retry_deletions`: an end must not fail half-way.
    """
    length, path = log.length, log.path
    log.close()
    parts.note_mapped(-length)
    error = _try_unlink(parts, path)
    if error is not None:
        parts.unremoved_logs.append(path)
        parts.record_error(ErrorCode.GENERIC_ERROR, f"cannot remove {path}: {error.strerror}")


def retry_deletions(parts: DriverResources) -> None:
    """Remove the logs that could not be removed before, as far as that is possible now."""
    parts.unremoved_logs[:] = [
        path for path in parts.unremoved_logs if _try_unlink(parts, path) is not None
    ]


def _try_unlink(parts: DriverResources, path: Path) -> OSError | None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        counters.increment(parts.values, system_counters.FREE_FAILS)
        return error
    return None


def fill_limit(
    record: np.record, log: LogBuffer, parameters: PublicationParameters, start: Start, kind: int
) -> None:
    """Set up the conductor's record of a publication's limit."""
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
