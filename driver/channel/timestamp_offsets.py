"""Offsets at which a channel stores timestamps: in the payload or the reserved value."""

import itertools

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.uri import ChannelUri

TIMESTAMP_LENGTH = 8
RESERVED_OFFSET = -8
"""Offset of the reserved value, in the eight bytes before the payload."""


def parse_offset(uri: ChannelUri, key: str) -> int | None:
    """Return the offset in the payload, RESERVED_OFFSET, or None if the URI has no such key."""
    if uri.get(key) == "reserved":
        return RESERVED_OFFSET
    return uri.int32(key, 0, I32_MAX - TIMESTAMP_LENGTH)


def refuse_overlap(uri: ChannelUri, *keys: str) -> None:
    """Raise ConfigurationError if two of the timestamps overlap."""
    places = [(offset, key) for key in keys if (offset := parse_offset(uri, key)) is not None]
    places.sort()
    for (offset, key), (later, later_key) in itertools.pairwise(places):
        if later < offset + TIMESTAMP_LENGTH:
            raise ConfigurationError(
                f"{later_key}={uri.get(later_key)}: expected {TIMESTAMP_LENGTH} bytes of its own, "
                f"overlaps {key}={uri.get(key)}"
            )
