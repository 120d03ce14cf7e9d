"""A client that takes a number of steps and then kills itself, whatever resources it has by then.

python -m tests.fuzz.killed_client DIRECTORY STEPS
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from tests.peer.ports import free_ports
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.command.publication import AddPublication

STREAM, COUNTER_TYPE = 7, 1102
STEPS = 16


def udp(port, more=""):
    """Return a channel on this machine."""
    return f"aeron:udp?endpoint=127.0.0.1:{port}{more}"


def steps(aeron, directory):
    """Acquire every kind of resource that a client can hold, one after another."""
    small = "|term-length=64k"
    port, control, data, spare = free_ports(4)
    yield aeron.add_counter(COUNTER_TYPE, b"key", "doomed")
    yield aeron.add_subscription(udp(port), STREAM)
    shared = aeron.add_publication(udp(port, small), STREAM)
    yield shared
    yield aeron.add_exclusive_publication(udp(port, small), STREAM)
    yield aeron.add_subscription("aeron:ipc", STREAM)
    local = aeron.add_publication("aeron:ipc?term-length=64k", STREAM)
    yield local
    yield aeron.add_subscription("aeron-spy:" + udp(port), STREAM)
    many = aeron.add_publication(
        f"aeron:udp?control=127.0.0.1:{control}|control-mode=manual|fc=min{small}", STREAM + 1
    )
    yield many.add_destination(udp(data))
    sources = aeron.add_subscription("aeron:udp?control-mode=manual", STREAM + 1)
    yield sources.add_destination(udp(data))
    while not (shared.is_connected and local.is_connected and many.is_connected):
        pass
    for publication in (shared, local, many):
        while publication.offer(b"the last words") <= 0:
            pass
    yield None
    yield aeron.async_add_publication(udp(spare, small), STREAM)
    # Claims that are never committed: in a shared log, an IPC log, and the command ring.
    yield shared.try_claim(100)
    yield local.try_claim(100)
    cnc = open_existing(directory, writable=True)
    content = np.frombuffer(AddPublication(1, 2, 3, udp(port)).encode(), np.uint8).copy()
    yield ring_buffer.claim(cnc.to_driver, AddPublication.TYPE_ID, content.size)
    yield ring_buffer.write(cnc.to_driver, AddPublication.TYPE_ID, content, 0, content.size)
    aeron.close()
    yield None


def main() -> None:
    """Take the steps, print the client id, and kill this process."""
    directory, count = Path(sys.argv[1]), int(sys.argv[2])
    # One client leaves a claim in the command ring, which the driver skips only after its unblock
    # timeout, so the others must wait longer than that.
    aeron = Aeron(context=ClientContext(dir=directory, driver_timeout_ms=60_000))
    taken = steps(aeron, directory)
    for _ in range(count):
        next(taken)
    print("dying", aeron.client_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
