"""kill -9 of clients at every point of their lives, and of a driver, whose directory is reused."""

import signal
from contextlib import ExitStack, contextmanager

import pytest

from tests.fuzz.doomed_client import STEPS
from tests.peer.ports import free_port
from tests.peer.processes import process
from tests.peer.streams import until
from windtunnel.driver.client import Aeron, ClientContext, DriverTimeoutError
from windtunnel.driver.kernels.jit import JIT_DISABLED

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it"),
]

HASTE = {
    # Longer than a client may be silent, for which all have the default: none dies by being late.
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "11s",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_DRIVER_TIMEOUT": "2000",
    "AERON_THREADING_MODE": "SHARED",
}
DEATHS = (0, 2, 4, 7, 9, 10, 11, 12, 13, 14, STEPS)
"""After how many steps each of the doomed dies."""


@contextmanager
def driver_process(directory):
    """Our driver in a process of its own, ready for clients."""
    with process("driver", "--dir", directory, **HASTE) as child:
        assert child.stdout.readline().startswith("driver ready")
        yield child


class Witness:
    """A client with a stream of its own, which must not be affected by others that die."""

    def __init__(self, aeron):
        where = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        self.read, self.written = [], 0
        self.subscription = aeron.add_subscription(where, 99)
        self.publication = aeron.add_publication(where + "|term-length=64k", 99)
        until(lambda: self.publication.is_connected, "the witness's stream")

    def work(self):
        """Write and read a few messages."""
        if self.publication.offer(b"%d" % self.written) > 0:
            self.written += 1
        self.subscription.poll(lambda payload, header: self.read.append(int(bytes(payload))))

    def is_right(self):
        """Whether everything read equals what was written, from the first message on."""
        return self.read == list(range(len(self.read))) and len(self.read) > 0


def test_whatever_a_killed_client_held_is_gone_and_nobody_else_is_harmed(tmp_path):
    directory = tmp_path / "aeron"
    context = ClientContext(dir=directory, driver_timeout_ms=60_000)
    with driver_process(directory) as driver, Aeron(context=context) as aeron, ExitStack() as stack:
        witness = Witness(aeron)
        # The witness's heartbeat counter comes with its first command, so all of its own are here.
        known = {item.counter_id for item in aeron.counters}
        logs = set(directory.rglob("*.logbuffer"))
        doomed = [
            stack.enter_context(process("tests.fuzz.doomed_client", directory, count))
            for count in DEATHS
        ]
        dead = [child.stdout.readline().split() for child in doomed]
        assert [words[:1] for words in dead] == [["dying"]] * len(doomed)
        assert [child.wait(60) for child in doomed] == [-signal.SIGKILL] * len(doomed)

        def is_clean():
            witness.work()
            left = {item.counter_id for item in aeron.counters} - known
            return not left and set(directory.rglob("*.logbuffer")) == logs

        until(is_clean, "everything of the dead to go")
        assert driver.poll() is None
        end = witness.written
        until(lambda: witness.work() or len(witness.read) > end, "the witness to read on")
        assert witness.is_right()
        assert not aeron.is_closed
        assert aeron.add_publication("aeron:ipc", 5).session_id


def test_a_killed_driver_is_reported_and_the_next_one_takes_its_directory(tmp_path):
    directory, errors = tmp_path / "aeron", []
    context = ClientContext(
        dir=directory, driver_timeout_ms=10_000, keepalive_interval_ns=50_000_000,
        error_handler=errors.append,
    )  # fmt: skip
    with driver_process(directory) as driver, Aeron(context=context) as client:
        witness = Witness(client)
        until(lambda: witness.work() or witness.read, "a first message")
        driver.kill()
        driver.wait()
        until(lambda: errors, "noticing")
        assert [type(error) for error in errors] == [DriverTimeoutError]
        assert client.is_closed
        witness.subscription.poll(lambda payload, header: None)
        left = sorted(path.name for path in directory.rglob("*.logbuffer"))
        assert left
    with driver_process(directory), Aeron(directory) as again:
        assert list(directory.rglob("*.logbuffer")) == []
        fresh = Witness(again)
        until(lambda: fresh.work() or len(fresh.read) > 20, "messages through the next driver")
        assert fresh.is_right()
