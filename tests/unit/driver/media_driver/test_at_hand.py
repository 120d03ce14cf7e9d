"""The driver's agents read no kernel from the disk while they work on their first streams."""

import subprocess
import sys

import pytest

from driver.base import jit
from driver.media_driver import at_hand

FIRST_STREAMS = """
import sys, threading, time
from pathlib import Path
from numba.core.dispatcher import Dispatcher

read = []
compile_or_load = Dispatcher.compile

def told(dispatcher, signature):
    read.append((threading.current_thread().name, dispatcher.py_func.__name__))
    return compile_or_load(dispatcher, signature)

Dispatcher.compile = told
from driver.client.aeron import Aeron
from driver.client.context import ClientContext
from driver.media_driver.context import Context
from driver.media_driver.media_driver import MediaDriver

MODE, FOLDER = sys.argv[1:]
PATIENCE_S = 600
# Compiling takes long where everybody compiles; nobody gives anybody up meanwhile.
context = Context(dir=Path(FOLDER), threading_mode=MODE, term_buffer_length=65_536,
                  publication_linger_timeout_ns=1_000_000,
                  client_liveness_timeout_ns=PATIENCE_S * 10**9,
                  publication_unblock_timeout_ns=2 * PATIENCE_S * 10**9)
client = ClientContext(dir=context.dir, driver_timeout_ms=PATIENCE_S * 1_000)
deadline_s = time.monotonic() + PATIENCE_S

def until(condition):
    while not condition():
        if driver.failure or aeron.is_closed or time.monotonic() > deadline_s:
            raise SystemExit(f"driver: {driver.failure}; client: {aeron.failure}")
        time.sleep(0.001)

with MediaDriver(context) as driver, Aeron(context=client) as aeron:
    for channel in ("aeron:udp?endpoint=127.0.0.1:0", "aeron:ipc"):
        subscription = aeron.add_subscription(channel, 1)
        until(subscription.try_resolve_channel_endpoint_port)
        resolved = subscription.try_resolve_channel_endpoint_port()
        publication = aeron.add_exclusive_publication(resolved, 1)
        until(lambda: subscription.images and publication.offer(b"word") > 0)
        image = subscription.images[0]
        until(lambda: image.poll(lambda payload, header: None))
        publication.close()
        until(lambda: image.is_end_of_stream)
    until(lambda: not any((context.dir / "publications").iterdir()))
agents = [name for thread, name in read if thread.startswith(("windtunnel-shared",
          "windtunnel-conductor", "windtunnel-sender", "windtunnel-receiver"))]
print("read", len(read), "by agents", *agents)
"""


def first_streams(folder, mode):
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_STREAMS, mode, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split(" by agents")


@pytest.mark.timeout(1300)
@pytest.mark.skipif(jit.JIT_DISABLED, reason="without machine code there is none to read")
@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_the_first_streams_find_their_kernels_in_memory(tmp_path, mode):
    first_streams(tmp_path / "compiles", mode)
    read, by_agents = first_streams(tmp_path / "finds", mode)
    assert int(read.split()[1]) > len(at_hand.KERNELS)
    assert by_agents.split() == []
