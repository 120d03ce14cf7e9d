"""Values that the driver writes into a log's metadata once, when it creates the log.

Where Aeron's drivers differ, the values are those of the C driver.
Source: driver-protocol 2.2, 2.3, 2.5.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.arith import I64_MAX, wrap_i32
from windtunnel.driver.base.atomics import put_i32, put_i64, put_u8
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.wire import data
from windtunnel.driver.wire import frame_type as types


class LogParameters(NamedTuple):
    """Metadata values of a new log, with lengths in bytes and timeouts in nanoseconds."""

    type: int
    """Log type: CONCURRENT_PUBLICATION, EXCLUSIVE_PUBLICATION or IMAGE of `descriptor`."""
    correlation_id: int
    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu_length: int
    page_size: int = 4096
    start_term_id: int | None = None
    """First term id of a publication that begins in a later term than the initial one, or None."""
    start_term_offset: int = 0
    publication_window_length: int = 0
    receiver_window_length: int = 0
    """Configured receiver window, not limited to half a term."""
    socket_sndbuf_length: int = 0
    os_default_socket_sndbuf_length: int = 0
    os_max_socket_sndbuf_length: int = 0
    socket_rcvbuf_length: int = 0
    os_default_socket_rcvbuf_length: int = 0
    os_max_socket_rcvbuf_length: int = 0
    max_resend: int = 0
    """Value from the channel URI, or 0 if the URI has none."""
    entity_tag: int = 0
    """Tag of the publication, -1 for a publication without a tag, 0 for an image."""
    response_correlation_id: int = 0
    """Correlation id from the channel URI; -1 if the publication is not a response, 0 for an image.
    """
    linger_timeout_ns: int = 0
    untethered_window_limit_timeout_ns: int = 0
    untethered_resting_timeout_ns: int = 0
    untethered_linger_timeout_ns: int = 0
    group: bool = False
    is_response: bool = False
    rejoin: bool = False
    reliable: bool = False
    sparse: bool = False
    signal_eos: bool = False
    spies_simulate_connection: bool = False
    tether: bool = False


_I32_FIELDS = {
    descriptor.INITIAL_TERM_ID: "initial_term_id",
    descriptor.MTU_LENGTH: "mtu_length",
    descriptor.TERM_LENGTH: "term_length",
    descriptor.PAGE_SIZE: "page_size",
    descriptor.PUBLICATION_WINDOW_LENGTH: "publication_window_length",
    descriptor.RECEIVER_WINDOW_LENGTH: "receiver_window_length",
    descriptor.SOCKET_SNDBUF_LENGTH: "socket_sndbuf_length",
    descriptor.OS_DEFAULT_SOCKET_SNDBUF_LENGTH: "os_default_socket_sndbuf_length",
    descriptor.OS_MAX_SOCKET_SNDBUF_LENGTH: "os_max_socket_sndbuf_length",
    descriptor.SOCKET_RCVBUF_LENGTH: "socket_rcvbuf_length",
    descriptor.OS_DEFAULT_SOCKET_RCVBUF_LENGTH: "os_default_socket_rcvbuf_length",
    descriptor.OS_MAX_SOCKET_RCVBUF_LENGTH: "os_max_socket_rcvbuf_length",
    descriptor.MAX_RESEND: "max_resend",
}
_I64_FIELDS = {
    descriptor.CORRELATION_ID: "correlation_id",
    descriptor.ENTITY_TAG: "entity_tag",
    descriptor.RESPONSE_CORRELATION_ID: "response_correlation_id",
    descriptor.LINGER_TIMEOUT_NS: "linger_timeout_ns",
    descriptor.UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS: "untethered_window_limit_timeout_ns",
    descriptor.UNTETHERED_RESTING_TIMEOUT_NS: "untethered_resting_timeout_ns",
    descriptor.UNTETHERED_LINGER_TIMEOUT_NS: "untethered_linger_timeout_ns",
}
_U8_FIELDS = {
    descriptor.GROUP: "group",
    descriptor.IS_RESPONSE: "is_response",
    descriptor.REJOIN: "rejoin",
    descriptor.RELIABLE: "reliable",
    descriptor.SPARSE: "sparse",
    descriptor.SIGNAL_EOS: "signal_eos",
    descriptor.SPIES_SIMULATE_CONNECTION: "spies_simulate_connection",
    descriptor.TETHER: "tether",
    descriptor.TYPE: "type",
}


def initialise(log: np.ndarray, meta_at: int, parameters: LogParameters) -> None:
    """Write all metadata of a new, zeroed log. Raises ConfigurationError if a value is invalid."""
    for offset, name in _I32_FIELDS.items():
        put_i32(log, meta_at + offset, int(getattr(parameters, name)))
    for offset, name in _I64_FIELDS.items():
        put_i64(log, meta_at + offset, int(getattr(parameters, name)))
    for offset, name in _U8_FIELDS.items():
        put_u8(log, meta_at + offset, int(getattr(parameters, name)))
    put_i32(log, meta_at + descriptor.DEFAULT_HEADER_LENGTH, data.HEADER_LENGTH)
    data.write(
        log,
        meta_at + descriptor.DEFAULT_HEADER,
        0,
        types.UNFRAGMENTED,
        types.DATA,
        0,
        parameters.session_id,
        parameters.stream_id,
        parameters.initial_term_id,
        0,
    )
    descriptor.put_end_of_stream_position_release(log, meta_at, I64_MAX)
    if parameters.type != descriptor.IMAGE:
        _initialise_tails(log, meta_at, parameters)
    status = int(descriptor.check_log(log, meta_at))
    if status != descriptor.OK:
        raise ConfigurationError(
            f"cannot create a log with term-length {parameters.term_length}, "
            f"mtu {parameters.mtu_length} and page size {parameters.page_size} "
            f"in {log.size} bytes (status {status})"
        )


def _initialise_tails(log: np.ndarray, meta_at: int, parameters: LogParameters) -> None:
    start = parameters.start_term_id
    term_id = parameters.initial_term_id if start is None else start
    if wrap_i32(term_id - parameters.initial_term_id) < 0:
        raise ConfigurationError(
            f"term-id {term_id} comes before init-term-id {parameters.initial_term_id}"
        )
    offset = parameters.start_term_offset
    if not 0 <= offset < parameters.term_length or offset % data.ALIGNMENT:
        raise ConfigurationError(
            f"term-offset {offset}: expected a multiple of {data.ALIGNMENT} "
            f"below term-length {parameters.term_length}"
        )
    descriptor.initialise_tails(log, meta_at, parameters.initial_term_id, term_id, offset)
