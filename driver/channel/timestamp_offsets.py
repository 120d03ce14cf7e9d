"""Offsets at which a channel stores timestamps in the payload or in the reserved value."""

import itertools

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.uri import ChannelUri

TIMESTAMP_LENGTH = 8
RESERVED_OFFSET = -8
"""Offset of the reserved value, the eight bytes before the payload."""

_KEYS = (
    uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET,
    uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET,
    uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET,
)


def parse_offset(uri: ChannelUri, key: str) -> int | None:
    """Return the payload offset for a timestamp, RESERVED_OFFSET for the reserved value, or None if
    the URI does not have the key.
    """
    if uri.get(key) == "reserved":
        return RESERVED_OFFSET
    return uri.int32(key, 0, I32_MAX - TIMESTAMP_LENGTH)


def check_offsets(uri: ChannelUri) -> None:
    """Raise ConfigurationError if an offset is invalid or two timestamps overlap.

    Sender and receiver store their timestamps in the same message, so a publication's channel may
    not have an invalid offset of a receiver either, and vice versa.
    """
    places = [(offset, key) for key in _KEYS if (offset := parse_offset(uri, key)) is not None]
    places.sort()
    for (offset, key), (later, later_key) in itertools.pairwise(places):
        if later < offset + TIMESTAMP_LENGTH:
            raise ConfigurationError(
                f"{later_key}={uri.get(later_key)}: overlaps the "
                f"{TIMESTAMP_LENGTH} bytes of {key}={uri.get(key)}: expected offsets that differ "
                f"by at least {TIMESTAMP_LENGTH}"
            )
