"""Offsets of timestamps: each key, every bound, and which timestamps overlap."""

import itertools

import pytest

from tests.unit.driver.channel.machine import Machine
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import udp_channel, uri
from windtunnel.driver.channel.timestamp_offsets import RESERVED_OFFSET, parse_offset

KEYS = ("channel-snd-ts-offset", "channel-rcv-ts-offset", "media-rcv-ts-offset")


def resolve(params, prefix=""):
    channel = uri.parse(f"{prefix}aeron:udp?endpoint=localhost:24325|{params}")
    return udp_channel.resolve(channel, Machine(), unique_id=1)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("text", "offset"), [("0", 0), ("0x10", 16), ("reserved", RESERVED_OFFSET), (None, None)]
)
def test_an_offset_is_a_number_or_the_reserved_value(key, text, offset):
    params = "alias=x" if text is None else f"{key}={text}"
    assert parse_offset(resolve(params).uri, key) == offset


@pytest.mark.parametrize("prefix", ["", "aeron-spy:"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo", "expected an integer"),
        ("-1", "expected at least 0"),
        ("2147483640", "expected at most 2147483639"),
    ],
)
def test_every_channel_refuses_an_invalid_offset(prefix, key, text, reason):
    with pytest.raises(ConfigurationError, match=f"^{key}={text}: {reason}"):
        resolve(f"{key}={text}", prefix)


@pytest.mark.parametrize(("key", "other"), list(itertools.permutations(KEYS, 2)))
def test_two_timestamps_never_share_a_byte(key, other):
    for apart in (f"{key}=0|{other}=8", f"{key}=0|{other}=reserved"):
        assert resolve(apart).has_endpoint
    for place, later in ((0, 0), (0, 7), (4, 0)):
        with pytest.raises(ConfigurationError, match=r"overlaps the 8 bytes of .*-offset="):
            resolve(f"{key}={place}|{other}={later}")
    with pytest.raises(ConfigurationError, match="=reserved: overlaps the 8 bytes"):
        resolve(f"{key}=reserved|{other}=reserved")


def test_three_timestamps_have_room_beside_each_other():
    apart = "channel-snd-ts-offset=8|channel-rcv-ts-offset=reserved|media-rcv-ts-offset=0"
    assert resolve(apart).has_endpoint


def test_an_overlap_is_described_with_both_parameters():
    with pytest.raises(ConfigurationError) as failure:
        resolve("channel-snd-ts-offset=0|channel-rcv-ts-offset=4")
    assert str(failure.value) == (
        "channel-rcv-ts-offset=4: overlaps the 8 bytes of channel-snd-ts-offset=0: expected "
        "offsets that differ by at least 8"
    )
