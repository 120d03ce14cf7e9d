"""An attack on a live archive: any valid encoding, and any bytes, in whole sessions.

    hostile   requests with valid and invalid values, in a session of its own          --+
    damaging  damaged messages of every kind, without a session                       --+--> archive
    checked   a recording that runs throughout, and a session that sends requests      --+

Checks after each epoch: the checked session gets responses, its recording holds every message, new
clients can connect, and `verify` finds every file of it valid. Each epoch has a new archive, since
what a hostile session records stays; the process is the same, so that leaks become visible.
"""

import contextlib
import gc
import io
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.world import resident_kib
from tests.unit.driver.archive.server.own_archive import ControlClient, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import IPC, STREAM, Reader, message
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest
from windtunnel.driver.archive.tool.program import main
from windtunnel.harness.fuzz.archive.messages import ANY, READABLE, any_request, damaged

EPOCH = 10_000
HOSTILE_SHARE = 5
"""One in this many messages is a valid request of the hostile session; each may cost a file."""
BURST = 250
"""Messages sent to the archive between two additions to the checked recording."""
CHECKED_STREAM, CHECKED_REPLAYED = STREAM + 900, STREAM + 901
CHECKED_RECORDING = 3
"""An id that no hostile request names."""
FIRST_OWN_STREAM = 3_000
"""First stream id to which no hostile request directs a replay."""
SETTLED = 12
"""Epochs after which the memory that the allocator retains no longer grows."""
GROWTH_KIB_MAX = 24 * 1024
HERE = [
    "", IPC, "aeron:ipc", "aeron:udp?endpoint=10.0.0.1:20900", "rubbish", "aeron:udp", "=|=", "\0",
    "aeron:ipc?" + "alias=" + "x" * 3000, "x" * 5000, "aeron:ipc?session-id=rubbish",
    "aeron:udp?control-mode=response|control=10.0.0.1:20901", "aeron-spy:aeron:ipc",
    "aeron:ipc?term-length=3|mtu=7|linger=-1", "aeron:ipc?rcv-wnd=9999999999999999999999",
]  # fmt: skip
"""Channels with the addresses of the simulated network."""


def post_all(own, client, contents):
    """Offer all messages without waiting in between."""
    streams = iter(range(FIRST_OWN_STREAM, 2 * FIRST_OWN_STREAM))
    for content in contents:
        client = post(own, client, content, streams)


def post(own, client, content, streams):
    """Offer one message. Returns the session to continue with.

    A client that connects with an invalid response channel is disconnected, and connects again.
    """
    # A longer message than the publication's term length permits cannot be sent.
    content = content[: client.requests.max_message_length]
    while client.requests.offer(content) <= 0:
        own.step()
        if not client.requests.is_connected:
            had_session = client.session_id != NULL_VALUE
            client = ControlClient(own, response_stream=next(streams))
            if had_session:
                client.connect()
    return client


def attack(folder: Path, count: int, seed: int, report: Callable[[str], object] = print) -> int:
    """Send `count` messages. Returns how many; raises AssertionError."""
    report(f"archive requests: count={count} seed={seed}")
    chance, sent, epoch, memory, began_s = random.Random(seed), 0, 0, 0, time.monotonic()
    while sent < count:
        place = folder / str(epoch)
        with pytest.MonkeyPatch.context() as patch, own_archive(place, patch) as own:
            sent += _epoch(own, chance, min(EPOCH, count - sent))
        _verify(place / "archive")
        shutil.rmtree(place)
        gc.collect()
        epoch += 1
        memory = resident_kib() if epoch == SETTLED else memory
        report(f"sent={sent} seconds={time.monotonic() - began_s:.0f} memory_kib={resident_kib()}")
    if epoch > SETTLED:
        grown = resident_kib() - memory
        assert grown <= GROWTH_KIB_MAX, f"memory grew by {grown} KiB"
    return sent


def _epoch(own, chance: random.Random, count: int) -> int:
    """Send bursts of messages to a new archive. Returns how many."""
    checked = own.connect_client()
    for _ in range(CHECKED_RECORDING):
        checked.stopped_recording(20)
    live = checked.live_recording(10, stream=CHECKED_STREAM)
    assert live.recording_id == CHECKED_RECORDING
    streams = iter(range(FIRST_OWN_STREAM, 2 * FIRST_OWN_STREAM))
    hostile, damaging = (
        own.connect_client(response_stream=21),
        own.connect_client(response_stream=22),
    )
    published, sent = 10, 0
    while sent < count:
        burst = min(BURST, count - sent)
        for _ in range(burst):
            if chance.randrange(HOSTILE_SHARE) == 0:
                request = any_request(chance, chance.choice(READABLE), hostile.session_id, HERE)
                hostile = post(own, hostile, encode(request), streams)
            else:
                content = encode(any_request(chance, chance.choice(ANY), -1, HERE))
                damaging = post(own, damaging, damaged(chance, content), streams)
        sent += burst
        checked.publish(live.publication, 2, first=published)
        published += 2
        assert checked.request(ArchiveIdRequest) == Ok(77)
    own.run_for(6_000_000_000)
    assert own.connect_client(response_stream=23).request(ArchiveIdRequest) == Ok(77)
    live.publication.close()
    checked.recorded(CHECKED_RECORDING, live.publication.position)
    reader = Reader(checked, stream=CHECKED_REPLAYED)
    checked.request_replay(CHECKED_RECORDING, replay_stream_id=CHECKED_REPLAYED)
    assert reader.until_end() == [message(number) for number in range(published)]
    return sent


def _verify(directory: Path) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = main(["verify", "-a", "--read-only", "--dir", str(directory)])
    assert code == 0, output.getvalue()[-3000:]
