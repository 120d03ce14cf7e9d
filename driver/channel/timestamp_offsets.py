"""Offsets at which a channel stores timestamps in the payload or in the reserved value."""

import itertools

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.uri import ChannelUri

TIMESTAMP_LENGTH = 8
RESERVED_OFFSET = -8
"""Offset of the reserved value, the eight bytes before the payload."""


def parse_offset(uri: ChannelUri, key: str) -> int | None:
    """Return the payload offset for a timestamp, RESERVED_OFFSET for the reserved value, or None if
    the URI does not have the key.
    """
    if uri.get(key) == "reserved":
        return RESERVED_OFFSET
    return uri.int32(key, 0, I32_MAX - TIMESTAMP_LENGTH)


def refuse_overlap(uri: ChannelUri, *keys: str) -> None:
    """Raise ConfigurationError if two timestamps would be stored in overlapping bytes."""
    places = [(offset, key) for key in keys if (offset := parse_offset(uri, key)) is not None]
    places.sort()
    for (offset, key), (later, later_key) in itertools.pairwise(places):
        if later < offset + TIMESTAMP_LENGTH:
            raise ConfigurationError(
                f"{later_key}={uri.get(later_key)}: overlaps the "
                f"{TIMESTAMP_LENGTH} bytes of {key}={uri.get(key)}"
            )
