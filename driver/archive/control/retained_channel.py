"""The stored form of a client's channel, and the key that identifies a recorded stream.

    aeron:udp?term-length=64k|endpoint=h:1|alias=a  ->  aeron:udp?endpoint=h:1|alias=a
    stream 5 of it                                  ->  5:udp?endpoint=h:1

Parameters are stored in Aeron's order. Sizes and durations are written in their shortest exact
form, booleans as true or false, integers in decimal. Values are parsed as Aeron's archive does,
which differs from the media driver: a boolean is true or TRUE, and false otherwise.
Source: archive-protocol 3.1, 5.8, Aeron 1.53.
"""

import re

from windtunnel.driver.base.arith import I32_MAX, I32_MIN, I64_MAX, I64_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param, uri_value
from windtunnel.driver.channel.udp_channel import ControlMode
from windtunnel.driver.channel.uri import ChannelUri

_SIZES = frozenset(
    (
        uri_param.SOCKET_SNDBUF, uri_param.SOCKET_RCVBUF, uri_param.RECEIVER_WINDOW,
        uri_param.TERM_LENGTH, uri_param.MTU_LENGTH,
    )
)  # fmt: skip
_BOOLEANS = frozenset((uri_param.TETHER, uri_param.GROUP, uri_param.REJOIN))
_INTEGERS = {
    uri_param.SESSION_ID: (I32_MIN, I32_MAX),
    uri_param.STREAM_ID: (I32_MIN, I32_MAX),
    uri_param.TTL: (0, 255),
    uri_param.GROUP_TAG: (I64_MIN, I64_MAX),
    uri_param.RESPONSE_CORRELATION_ID: (-1, I64_MAX),
    uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET: (I32_MIN, I32_MAX),
    uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET: (I32_MIN, I32_MAX),
    uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET: (I32_MIN, I32_MAX),
}
"""Parameters with integers, and the least and greatest value."""
_NAMED_VALUES = {
    uri_param.RESPONSE_CORRELATION_ID: "prototype",
    uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET: "reserved",
    uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET: "reserved",
    uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET: "reserved",
}
"""The text that a parameter may have instead of an integer."""
_CONTROL_MODES = [mode.value for mode in ControlMode if mode is not ControlMode.NONE]
_DECIMAL = re.compile(r"[+-]?[0-9]{1,4000}", re.ASCII)
_TAGGED = re.compile(r"tag:-?[0-9]{1,19}", re.ASCII)
RETAINED = (
    uri_param.TAGS, uri_param.ENDPOINT, uri_param.INTERFACE, uri_param.CONTROL,
    uri_param.CONTROL_MODE, uri_param.SESSION_ID, uri_param.TTL, uri_param.ALIAS,
    uri_param.CONGESTION_CONTROL, uri_param.FLOW_CONTROL, uri_param.GROUP_TAG, uri_param.TETHER,
    uri_param.GROUP, uri_param.REJOIN, uri_param.SOCKET_SNDBUF, uri_param.SOCKET_RCVBUF,
    uri_param.RECEIVER_WINDOW, uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET,
    uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET, uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET,
    uri_param.RESPONSE_ENDPOINT, uri_param.RESPONSE_CORRELATION_ID, uri_param.STREAM_ID,
)  # fmt: skip
_ORDER = (
    *RETAINED[:5], uri_param.MTU_LENGTH, uri_param.TERM_LENGTH, uri_param.INITIAL_TERM_ID,
    uri_param.TERM_ID, uri_param.TERM_OFFSET, *RETAINED[5:7], uri_param.LINGER, *RETAINED[7:11],
    uri_param.SPARSE, uri_param.EOS, *RETAINED[11:],
)  # fmt: skip
KEYS = (
    uri_param.ENDPOINT, uri_param.INTERFACE, uri_param.CONTROL, uri_param.SESSION_ID,
    uri_param.TAGS,
)  # fmt: skip


def retained(channel: ChannelUri, **added: str | int | bool | None) -> ChannelUri:
    """Return the form of a channel that the archive stores. This form has no spy prefix, and
    contains only the parameters in RETAINED and in `added`.

    The names of `added` parameters contain underscores instead of dashes, and values of None are
    not added. Raises ConfigurationError if a retained value cannot be parsed.
    """
    values: dict[str, str] = {
        key: _format_given(key, value) for key, value in channel.params if key in RETAINED
    }
    for name, value in added.items():
        if value is not None:
            key = name.replace("_", "-")
            values[key] = _format_added(key, value)
    params = tuple((key, values[key]) for key in _ORDER if key in values)
    assert len(params) == len(values), f"_ORDER lacks a parameter of {added}"
    return ChannelUri(channel.media, params)


def boolean(channel: ChannelUri, key: str) -> bool | None:
    """Return the value of a boolean parameter, or None if the key is absent."""
    value = channel.get(key)
    return None if value is None else _parse_boolean(value)


def _parse_boolean(value: str) -> bool:
    return value.lower() == "true"


def _format_given(key: str, value: str) -> str:
    if key in _SIZES:
        return uri_value.format_size(uri_value.parse_size(key, value))
    if key in _BOOLEANS:
        return _format_added(key, _parse_boolean(value))
    if key in _INTEGERS:
        return _format_integer(key, value)
    if key == uri_param.CONTROL_MODE and value not in _CONTROL_MODES:
        raise ConfigurationError(f"{key}={value}: expected {', '.join(_CONTROL_MODES)}")
    return value


def _format_integer(key: str, value: str) -> str:
    named = _NAMED_VALUES.get(key)
    is_tagged = key == uri_param.SESSION_ID and _TAGGED.fullmatch(value) is not None
    if value == named or is_tagged:
        return value
    if _DECIMAL.fullmatch(value) is None:
        other = "" if named is None else f" or {named}"
        raise ConfigurationError(f"{key}={value}: expected a decimal integer{other}")
    return str(uri_value.check_range(key, value, int(value), *_INTEGERS[key]))


def _format_added(key: str, value: str | int | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and key == uri_param.LINGER:
        return uri_value.format_duration_ns(value)
    # The shortest form keeps a channel of nearly the maximum length below that maximum.
    return uri_value.format_size(value) if isinstance(value, int) and key in _SIZES else str(value)


def text(channel: ChannelUri) -> str:
    """Return the text of a stored channel, without a `?` if it has no parameters."""
    return str(channel) if channel.params else f"aeron:{channel.media}"


def stream_key(stream_id: int, channel: ChannelUri) -> str:
    """Return a key for a stream. An archive must not record two streams with equal keys at the same
    time.
    """
    parts = [f"{key}={value}" for key in KEYS if (value := channel.get(key)) is not None]
    return f"{stream_id}:{channel.media}?" + "|".join(parts)
