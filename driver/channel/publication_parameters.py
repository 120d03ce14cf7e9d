"""Validated publication parameters, from a channel URI and the driver's defaults.

    uri + PublicationDefaults  ->  PublicationParameters        all ranges are checked here

An error about two parameters names both. `udp_channel` checks addresses, and `admission` checks
whether a channel is valid for a publication. Source: spec 9.2, Aeron 1.53.
"""

from collections.abc import Callable
from typing import NamedTuple

from windtunnel.driver.base.arith import I32_MAX, is_power_of_two, wrap_i32
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import flow_control_parameters, uri_param, uri_value
from windtunnel.driver.channel.flow_control_parameters import FlowControlParameters
from windtunnel.driver.channel.timestamp_offsets import parse_offset
from windtunnel.driver.channel.udp_channel import ControlMode, parse_tags
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.channel.uri_value import format_size

FRAME_ALIGNMENT = 32
MTU_LENGTH_MIN = 64
"""The smallest multiple of the frame alignment that exceeds the 32 bytes of a header."""
MTU_LENGTH_MAX = 65504
TERM_LENGTH_MIN = 64 * 1024
TERM_LENGTH_MAX = 1 << 30
RESENDS_MAX = 256
RESPONSE_PROTOTYPE = -2
NULL_CORRELATION_ID = -1
_TAG_PREFIX = "tag:"


class PublicationDefaults(NamedTuple):
    """The driver's default values for publication parameters that a URI omits."""

    term_length: int = 16 << 20
    ipc_term_length: int = 64 << 20
    mtu_length: int = 1408
    ipc_mtu_length: int = 1408
    window_length: int = 0
    """Publication window in bytes, or 0 for half a term."""
    ipc_window_length: int = 0
    linger_ns: int = 5_000_000_000
    is_sparse: bool = True
    spies_simulate_connection: bool = False
    max_resend: int = 16
    has_retransmit_ranges: bool = False
    linger_max_ns: int = 60_000_000_000
    socket_sndbuf_length: int = 0
    """Send buffer size in bytes, or 0 for the system's default, `system_sndbuf_length`."""
    system_sndbuf_length: int = 212_992
    untethered_window_limit_timeout_ns: int = 5_000_000_000
    untethered_linger_timeout_ns: int | None = None
    """Timeout in nanoseconds, or None for the untethered window limit timeout."""
    untethered_resting_timeout_ns: int = 10_000_000_000


class TaggedPublication(NamedTuple):
    """Values that `session-id=tag:<tag>` copies from the publication with that tag."""

    session_id: int
    mtu_length: int
    term_length: int


class InitialPosition(NamedTuple):
    """The start position of a stream. Its three parameters must be given together."""

    initial_term_id: int
    term_id: int
    term_offset: int


class PublicationParameters(NamedTuple):
    """The validated parameters of a publication."""

    term_length: int
    mtu_length: int
    window_length: int
    linger_ns: int
    is_sparse: bool
    signal_eos: bool
    spies_simulate_connection: bool
    max_resend: int
    untethered_window_limit_timeout_ns: int
    untethered_linger_timeout_ns: int
    untethered_resting_timeout_ns: int
    session_id: int | None = None
    """The session id, or None if the driver chooses it."""
    initial_position: InitialPosition | None = None
    """The start position, or None for a random initial term id and offset 0."""
    flow_control: FlowControlParameters | None = None
    response_correlation_id: int = NULL_CORRELATION_ID
    is_response: bool = False
    entity_tag: int | None = None
    send_timestamp_offset: int | None = None
    has_retransmit_ranges: bool = False
    """Whether NAKs for many ranges are answered at once, but not again within a round trip."""
    linger_max_ns: int = 0
    """Linger time with retransmit ranges, while a receiver has not consumed the stream."""
    explicit: frozenset[str] = frozenset()
    """The keys in the URI. Only these parameters can conflict with an existing publication."""

    def refuse_conflict(self, existing: "PublicationParameters", session_id: int) -> None:
        """Raise ConfigurationError if these parameters conflict with those of an existing
        publication of the same stream.
        """
        pairs: list[tuple[str, object, object]] = [
            (uri_param.MTU_LENGTH, self.mtu_length, existing.mtu_length),
            (uri_param.TERM_LENGTH, self.term_length, existing.term_length),
            (uri_param.SESSION_ID, self.session_id, session_id),
        ]
        own, other = self.initial_position, existing.initial_position
        if own is not None and other is not None:
            pairs += [
                (uri_param.INITIAL_TERM_ID, own.initial_term_id, other.initial_term_id),
                (uri_param.TERM_ID, own.term_id, other.term_id),
                (uri_param.TERM_OFFSET, own.term_offset, other.term_offset),
            ]
        for key, requested, found in pairs:
            if key in self.explicit and requested != found:
                raise ConfigurationError(f"{key}={requested}: the existing publication has {found}")

    def refuse_spies_conflict(self, existing: "PublicationParameters") -> None:
        """Raise ConfigurationError if these parameters and those of an existing network publication
        disagree on whether spies simulate a connection.

        An IPC publication has no spies, so the parameter has no effect on it.
        """
        if self.spies_simulate_connection != existing.spies_simulate_connection:
            raise ConfigurationError(
                f"{uri_param.SPIES_SIMULATE_CONNECTION}="
                f"{str(self.spies_simulate_connection).lower()}: the existing publication has "
                f"{str(existing.spies_simulate_connection).lower()}"
            )


def parse(
    uri: ChannelUri,
    defaults: PublicationDefaults,
    find_tagged: Callable[[int], TaggedPublication | None] = lambda tag: None,
) -> PublicationParameters:
    """Parse a publication's parameters. `find_tagged` looks up a publication by its entity tag.

    Raises ConfigurationError.
    """
    session_id, tagged = _session_id(uri, find_tagged)
    term_length = _term_length(uri, defaults, tagged)
    mtu_length = _mtu_length(uri, defaults, tagged)
    limit_ns = _timeout_ns(
        uri,
        uri_param.UNTETHERED_WINDOW_LIMIT_TIMEOUT,
        defaults.untethered_window_limit_timeout_ns,
    )
    linger_timeout_ns = defaults.untethered_linger_timeout_ns
    if linger_timeout_ns is None:
        linger_timeout_ns = limit_ns
    flow_control = uri.get(uri_param.FLOW_CONTROL)
    mode = uri.get(uri_param.CONTROL_MODE)
    return PublicationParameters(
        term_length=term_length,
        mtu_length=mtu_length,
        window_length=_window_length(uri, defaults, term_length, mtu_length),
        linger_ns=_timeout_ns(uri, uri_param.LINGER, defaults.linger_ns),
        is_sparse=_flag(uri, uri_param.SPARSE, defaults.is_sparse),
        signal_eos=_flag(uri, uri_param.EOS, True),
        spies_simulate_connection=_flag(
            uri, uri_param.SPIES_SIMULATE_CONNECTION, defaults.spies_simulate_connection
        ),
        max_resend=uri.int32(uri_param.MAX_RESEND, 1, RESENDS_MAX) or defaults.max_resend,
        untethered_window_limit_timeout_ns=limit_ns,
        # As in the C driver, 0 selects the default.
        untethered_linger_timeout_ns=(
            uri.duration_ns(uri_param.UNTETHERED_LINGER_TIMEOUT) or linger_timeout_ns
        ),
        untethered_resting_timeout_ns=_timeout_ns(
            uri, uri_param.UNTETHERED_RESTING_TIMEOUT, defaults.untethered_resting_timeout_ns
        ),
        session_id=session_id,
        initial_position=_initial_position(uri, term_length),
        flow_control=None if flow_control is None else flow_control_parameters.parse(flow_control),
        response_correlation_id=_response_correlation_id(uri),
        is_response=mode == ControlMode.RESPONSE.value,
        entity_tag=parse_tags(uri)[1],
        send_timestamp_offset=parse_offset(uri, uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET),
        has_retransmit_ranges=_flag(
            uri, uri_param.RETRANSMIT_RANGES, defaults.has_retransmit_ranges
        ),
        linger_max_ns=_timeout_ns(uri, uri_param.LINGER_MAX, defaults.linger_max_ns),
        explicit=frozenset(key for key, _ in uri.params),
    )


def _session_id(
    uri: ChannelUri, find_tagged: Callable[[int], TaggedPublication | None]
) -> tuple[int | None, TaggedPublication | None]:
    text = uri.get(uri_param.SESSION_ID)
    if text is None or not text.startswith(_TAG_PREFIX):
        return uri.int32(uri_param.SESSION_ID), None
    tag = uri_value.parse_int64(uri_param.SESSION_ID, text.removeprefix(_TAG_PREFIX))
    tagged = find_tagged(tag)
    if tagged is None:
        raise ConfigurationError(f"{uri_param.SESSION_ID}={text}: no publication has that tag")
    return tagged.session_id, tagged


def _term_length(
    uri: ChannelUri, defaults: PublicationDefaults, tagged: TaggedPublication | None
) -> int:
    length = uri.size(uri_param.TERM_LENGTH, TERM_LENGTH_MIN, TERM_LENGTH_MAX)
    if length is None:
        if tagged is not None:
            return tagged.term_length
        return defaults.ipc_term_length if uri.is_ipc else defaults.term_length
    if not is_power_of_two(length):
        raise ConfigurationError(
            f"{uri_param.TERM_LENGTH}={uri.get(uri_param.TERM_LENGTH)}: expected a power of two"
        )
    _require_equal_to_tagged(
        uri, uri_param.TERM_LENGTH, length, tagged.term_length if tagged else None
    )
    return length


def _mtu_length(
    uri: ChannelUri, defaults: PublicationDefaults, tagged: TaggedPublication | None
) -> int:
    length = uri.size(uri_param.MTU_LENGTH, MTU_LENGTH_MIN, MTU_LENGTH_MAX)
    text = uri.get(uri_param.MTU_LENGTH)
    if length is None:
        length = defaults.ipc_mtu_length if uri.is_ipc else defaults.mtu_length
        if tagged is not None:
            length = tagged.mtu_length
    elif length % FRAME_ALIGNMENT != 0:
        raise ConfigurationError(
            f"{uri_param.MTU_LENGTH}={text}: expected a multiple of {FRAME_ALIGNMENT}"
        )
    else:
        _require_equal_to_tagged(
            uri, uri_param.MTU_LENGTH, length, tagged.mtu_length if tagged else None
        )
    if uri.is_udp:
        configured = uri.size(uri_param.SOCKET_SNDBUF)
        sndbuf_length = configured or defaults.socket_sndbuf_length or defaults.system_sndbuf_length
        if length > sndbuf_length:
            raise ConfigurationError(
                f"{uri_param.MTU_LENGTH}={text or length}: expected at most {sndbuf_length} "
                f"bytes, the size of the socket's send buffer: raise {uri_param.SOCKET_SNDBUF} or "
                "aeron.socket.so_sndbuf"
            )
    return length


def _require_equal_to_tagged(uri: ChannelUri, key: str, requested: int, found: int | None) -> None:
    if found is not None and requested != found:
        raise ConfigurationError(
            f"{key}={uri.get(key)}: the publication selected by "
            f"{uri_param.SESSION_ID}={uri.get(uri_param.SESSION_ID)} has {format_size(found)}"
        )


def _window_length(
    uri: ChannelUri, defaults: PublicationDefaults, term_length: int, mtu_length: int
) -> int:
    half = term_length // 2
    window = uri.size(uri_param.PUBLICATION_WINDOW, min(mtu_length, half), half)
    if window is not None:
        return window
    setting = defaults.ipc_window_length if uri.is_ipc else defaults.window_length
    return min(setting, half) if setting else half


def _initial_position(uri: ChannelUri, term_length: int) -> InitialPosition | None:
    keys = (uri_param.INITIAL_TERM_ID, uri_param.TERM_ID, uri_param.TERM_OFFSET)
    given = [key for key in keys if key in uri]
    if not given:
        return None
    if len(given) < len(keys):
        missing = ", ".join(key for key in keys if key not in uri)
        raise ConfigurationError(f"{given[0]}={uri.get(given[0])}: also requires {missing}")
    initial_term_id = uri.int32(uri_param.INITIAL_TERM_ID)
    term_id = uri.int32(uri_param.TERM_ID)
    term_offset = uri.int64(uri_param.TERM_OFFSET, 0, term_length)
    assert initial_term_id is not None
    assert term_id is not None
    assert term_offset is not None
    if wrap_i32(term_id - initial_term_id) < 0:
        raise ConfigurationError(
            f"{uri_param.TERM_ID}={term_id}: expected "
            f"{uri_param.INITIAL_TERM_ID}={initial_term_id} "
            "or a later term id"
        )
    if term_offset % FRAME_ALIGNMENT != 0:
        raise ConfigurationError(
            f"{uri_param.TERM_OFFSET}={term_offset}: expected a multiple of {FRAME_ALIGNMENT}"
        )
    return InitialPosition(initial_term_id, term_id, term_offset)


def _response_correlation_id(uri: ChannelUri) -> int:
    if uri.get(uri_param.RESPONSE_CORRELATION_ID) == "prototype":
        return RESPONSE_PROTOTYPE
    try:
        value = uri.int64(uri_param.RESPONSE_CORRELATION_ID, NULL_CORRELATION_ID)
    except ConfigurationError as error:
        raise ConfigurationError(
            "invalid response-correlation-id, must be a number greater than or equal to -1, or "
            f"'prototype': {uri.get(uri_param.RESPONSE_CORRELATION_ID)}"
        ) from error
    return NULL_CORRELATION_ID if value is None else value


def _flag(uri: ChannelUri, key: str, default: bool) -> bool:
    value = uri.boolean(key)
    return default if value is None else value


def _timeout_ns(uri: ChannelUri, key: str, default: int) -> int:
    value = uri.duration_ns(key)
    return default if value is None else value


assert MTU_LENGTH_MAX % FRAME_ALIGNMENT == 0
assert TERM_LENGTH_MAX <= I32_MAX
