"""What is kept of a channel that a client names, and what tells two recorded channels apart.

    aeron:udp?term-length=64k|endpoint=h:1|alias=a  ->  aeron:udp?endpoint=h:1|alias=a
    stream 5 of it                                  ->  5:udp?endpoint=h:1

The parameters that are kept, in Aeron's order; sizes and durations are written the shortest exact
way. Source: archive-protocol 3.1, 5.8.
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
    """The channel with what is kept of it, and what the archive adds; no longer a spy's.

    Names of what is added have underscores in place of dashes; None is not added. Raises
    ConfigurationError where a size that is kept is none.
    """
    values: dict[str, str] = {
        key: _written(key, value) for key, value in channel.params if key in RETAINED
    }
    for name, value in added.items():
        if value is not None:
            key = name.replace("_", "-")
            values[key] = _added(key, value)
    params = tuple((key, values[key]) for key in _ORDER if key in values)
    assert len(params) == len(values), f"no place is known for all of {added}"
    return ChannelUri(channel.media, params)


def _written(key: str, value: str) -> str:
    read: Callable[[str, str], int] = uri_value.parse_size
    return uri_value.format_size(read(key, value)) if key in _SIZES else value


def _added(key: str, value: str | int | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and key == uri_param.LINGER:
        return uri_value.format_duration_ns(value)
    # A channel that is nearly as long as may be must not outgrow that by how a number is written.
    return uri_value.format_size(value) if isinstance(value, int) and key in _SIZES else str(value)


def text(channel: ChannelUri) -> str:
    """As it is stored: without a `?` behind which nothing comes."""
    return str(channel) if channel.params else f"aeron:{channel.media}"


def stream_key(stream_id: int, channel: ChannelUri) -> str:
    """Equal for what a recording must not subscribe to twice."""
    parts = [f"{key}={value}" for key in KEYS if (value := channel.get(key)) is not None]
    return f"{stream_id}:{channel.media}?" + "|".join(parts)
