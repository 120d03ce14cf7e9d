"""The stored form of a client's channel, and the key that identifies a recorded stream.

    aeron:udp?term-length=64k|endpoint=h:1|alias=a  ->  aeron:udp?endpoint=h:1|alias=a
    stream 5 of it                                  ->  5:udp?endpoint=h:1

Parameters are stored in Aeron's order. Sizes and durations are written in their shortest exact
form. Source: archive-protocol 3.1, 5.8.
"""

from collections.abc import Callable

from windtunnel.driver.channel import uri_param, uri_value
from windtunnel.driver.channel.uri import ChannelUri

_SIZES = frozenset(
    (
        uri_param.SOCKET_SNDBUF, uri_param.SOCKET_RCVBUF, uri_param.RECEIVER_WINDOW,
        uri_param.TERM_LENGTH, uri_param.MTU_LENGTH,
    )
)  # fmt: skip
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
    not added. Raises ConfigurationError if a retained size cannot be parsed.
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


def _format_given(key: str, value: str) -> str:
    read: Callable[[str, str], int] = uri_value.parse_size
    return uri_value.format_size(read(key, value)) if key in _SIZES else value


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
