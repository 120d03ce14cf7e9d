"""Arbitrary writes of a client into shared files do not stop the driver."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    MS,
    SECOND,
    STREAM,
    TO_PEER,
    Lab,
    lab,
)
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.codec import COMMANDS
from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.subscription import AddSubscription, SubscriptionReady
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

CHANNELS = [
    CHANNEL,
    TO_PEER,
    "aeron:udp",
    "aeron:ipc",
    "aeron:udp?endpoint=",
    "aeron:udp?endpoint=:",
    "aeron:udp?endpoint=10.0.0.1:99999",
    "aeron:udp?endpoint=[::1]:20121",
    "aeron:udp?x=y|x=z",
    "aeron:udp?endpoint=224.20.30.39:20121|interface=10.0.0.1/24",
    TO_PEER + "|session-id=x",
    "aeron:udp?control=10.0.0.1:5|control-mode=dynamic",
    TO_PEER + "|init-term-id=1|term-id=9|term-offset=7",
    TO_PEER + "|init-term-id=-5|term-id=-4|term-offset=65536",
    TO_PEER + "|mtu=65504|so-sndbuf=1",
    TO_PEER + "|tags=1,2",
    "aeron:udp?tags=1",
    "aeron:udp?endpoint=10.0.0.1:0",
    "\0" * 9,
    "aeron:udp?endpoint=10.0.0.1:20121|rcv-wnd=64|nak-delay=1h",
    TO_PEER + "|linger=18446744073709551616",
    TO_PEER + "|fc=tagged,g:5|gtag=1",
    TO_PEER + "|pub-wnd=9g",
    TO_PEER + "|session-id=tag:7",
    CHANNEL + "|reliable=false|rejoin=false|cc=cubic",
    "aeron:udp?endpoint=[10.0.0.1]:5",
    "é" * 50,
    TO_PEER + "|response-correlation-id=3|control-mode=response|control=10.0.0.1:77",
]
WORDS = st.sampled_from([0, 1, 2, 3, -1, 5, 2**31 - 1, -(2**31)])
COMMAND = st.tuples(
    st.sampled_from(sorted(int(code) for code in COMMANDS)),
    WORDS,
    st.integers(1, 40),
    WORDS,
    st.sampled_from(CHANNELS),
    st.binary(max_size=12),
)


def encode(type_id, client_id, correlation_id, word, channel, tail):
    """Return a command of which most bytes are valid."""
    text = channel.encode()
    prefixed = struct.pack("<i", len(text)) + text
    head = struct.pack("<qq", client_id, correlation_id)
    adds = (CommandType.ADD_PUBLICATION, CommandType.ADD_EXCLUSIVE_PUBLICATION)
    if type_id in adds:
        return head + struct.pack("<i", STREAM + word % 3) + prefixed
    if type_id == CommandType.ADD_SUBSCRIPTION:
        return head + struct.pack("<qi", -1, STREAM + word % 3) + prefixed
    return head + struct.pack("<q", word) + tail


@settings(max_examples=60)
@given(st.lists(COMMAND, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_no_sequence_of_commands_ends_the_driver(tmp_path_factory, commands, rng):
    with lab(tmp_path_factory.mktemp("fuzz") / "aeron") as driver:
        for command in commands:
            content = encode(*command)
            if rng.random() < 0.2:
                content = content[: rng.randrange(len(content) + 1)]
            driver.post(command[0], content)
            driver.turn(rng.randrange(3), 20 * MS)
        driver.turn(2 * len(commands), 100 * MS)
        driver.take()
        client = driver.next_id() + 1_000_000
        responses = driver.request(
            AddSubscription(client, 7_000_000, 77, "aeron:udp?endpoint=10.0.0.1:9")
        )
        assert isinstance(responses[-1], SubscriptionReady)
        driver.run_for(15 * SECOND, 500 * MS)
        assert [name for name in driver.logs() if name.startswith("images")] == []
        assert not [item for item in read_errors(driver.cnc.error_log) if "Traceback" in item.text]


def overwrite_words(rng, target, begin, end):
    """Overwrite some aligned words of a shared file."""
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(begin, end - 8) & ~rng.choice([0, 3, 7])
        value = rng.choice([rng.getrandbits(64), 0, 2**64 - 1, 32, 1 << 62, 1 << 63, 31])
        target[at : at + 8] = bytearray(struct.pack("<Q", value))


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("seed", range(12))
def test_no_overwriting_of_logs_or_positions_ends_the_driver(tmp_path, seed):
    rng = random.Random(seed)
    driver: Lab
    with lab(tmp_path / "aeron") as driver:
        client = driver.next_id()
        driver.request(AddSubscription(client, driver.next_id(), STREAM, CHANNEL))
        driver.post(CommandType.ADD_PUBLICATION, encode(1, client, 900, 0, CHANNEL, b""))
        driver.turn(6)
        maps = [LogBuffer.map(tmp_path / "aeron" / name) for name in driver.logs()]
        assert len(maps) == 2
        position = driver.named("sub-pos").counter_id
        for _ in range(60):
            for mapped in maps:
                overwrite_words(rng, mapped.log, mapped.meta_at, mapped.meta_at + 512)
                overwrite_words(rng, mapped.log, 0, mapped.meta_at)
            driver.set_value(position, rng.choice([7, -1, 2**62 + 5, rng.getrandbits(62), 65_567]))
            driver.turn(4, 30 * MS)
            driver.keep_alive(client)
        responses = driver.request(
            AddSubscription(client, 7_000_000, 77, "aeron:udp?endpoint=10.0.0.1:9")
        )
        assert isinstance(responses[-1], SubscriptionReady)
        for mapped in maps:
            mapped.close()
