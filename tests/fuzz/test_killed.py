"""SIGKILL of clients after each of their steps, and of a driver, whose directory is reused."""

import signal
from contextlib import ExitStack, contextmanager

import pytest

from tests.fuzz.killed_client import STEPS
from tests.peer.ports import free_port
from tests.peer.processes import process
from tests.peer.streams import until
from windtunnel.driver.client import Aeron, ClientContext, DriverTimeoutError
from windtunnel.driver.kernels.jit import JIT_DISABLED

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it"),
]

SHORT_TIMEOUTS = {
    # Longer than the clients' liveness timeout, so that no client is closed because it is late.
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "11s",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_DRIVER_TIMEOUT": "2000",
    "AERON_THREADING_MODE": "SHARED",
}
DEATHS = (0, 2, 4, 7, 9, 10, 11, 12, 13, 14, STEPS)
"""Number of steps after which each client kills itself."""


@contextmanager
def driver_process(directory):
    """Start our driver in a separate process, ready for clients."""
    with process("driver", "--dir", directory, **SHORT_TIMEOUTS) as child:
        assert child.stdout.readline().startswith("driver ready")
        yield child


class CheckedClient:
    """A client with a stream of its own, which must not be affected by others that die."""

    def __init__(self, aeron):
        where = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        self.read, self.written = [], 0
        self.subscription = aeron.add_subscription(where, 99)
        self.publication = aeron.add_publication(where + "|term-length=64k", 99)
        until(lambda: self.publication.is_connected, "the checked client's stream")

    def work(self):
        """Write and read a few messages."""
        if self.publication.offer(b"%d" % self.written) > 0:
            self.written += 1
        self.subscription.poll(lambda payload, header: self.read.append(int(bytes(payload))))

    def is_right(self):
        """Return whether the messages that were read are the first ones that were written."""
        return self.read == list(range(len(self.read))) and len(self.read) > 0


def test_resources_of_killed_clients_are_released_and_other_clients_are_unaffected(tmp_path):
    directory = tmp_path / "aeron"
    context = ClientContext(dir=directory, driver_timeout_ms=60_000)
    with driver_process(directory) as driver, Aeron(context=context) as aeron, ExitStack() as stack:
        checked = CheckedClient(aeron)
        # Its heartbeat counter was allocated at its first command, so all of its counters exist.
        known = {item.counter_id for item in aeron.counters}
        logs = set(directory.rglob("*.logbuffer"))
        killed = [
            stack.enter_context(process("tests.fuzz.killed_client", directory, count))
            for count in DEATHS
        ]
        printed = [child.stdout.readline().split() for child in killed]
        assert [words[:1] for words in printed] == [["dying"]] * len(killed)
        assert [child.wait(60) for child in killed] == [-signal.SIGKILL] * len(killed)

        def is_clean():
            checked.work()
            left = {item.counter_id for item in aeron.counters} - known
            return not left and set(directory.rglob("*.logbuffer")) == logs

        until(is_clean, "the removal of the killed clients' resources")
        assert driver.poll() is None
        end = checked.written
        until(lambda: checked.work() or len(checked.read) > end, "the checked client to read on")
        assert checked.is_right()
        assert not aeron.is_closed
        assert aeron.add_publication("aeron:ipc", 5).session_id


def test_a_killed_driver_is_reported_and_the_next_one_reuses_its_directory(tmp_path):
    directory, errors = tmp_path / "aeron", []
    context = ClientContext(
        dir=directory, driver_timeout_ms=10_000, keepalive_interval_ns=50_000_000,
        error_handler=errors.append,
    )  # fmt: skip
    with driver_process(directory) as driver, Aeron(context=context) as client:
        checked = CheckedClient(client)
        until(lambda: checked.work() or checked.read, "the first message")
        driver.kill()
        driver.wait()
        until(lambda: errors, "the client to detect the driver's death")
        assert [type(error) for error in errors] == [DriverTimeoutError]
        assert client.is_closed
        checked.subscription.poll(lambda payload, header: None)
        left = sorted(path.name for path in directory.rglob("*.logbuffer"))
        assert left
    with driver_process(directory), Aeron(directory) as again:
        assert list(directory.rglob("*.logbuffer")) == []
        fresh = CheckedClient(again)
        until(lambda: fresh.work() or len(fresh.read) > 20, "messages through the next driver")
        assert fresh.is_right()
