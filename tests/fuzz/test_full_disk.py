"""A driver whose directory lies on a file system that becomes full while streams run."""

import socket
from contextlib import closing

import pytest

from tests.naive import wire
from tests.peer.ports import free_port
from tests.peer.processes import process
from tests.peer.small_disk import fill, small_disk
from tests.peer.streams import until
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.kernels.jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it")

DISK_LENGTH = 64 << 20
"""Length of the disk in bytes: enough for cnc.dat and the logs of the streams."""
TERM_LENGTH = 64 << 10
FORGED_TERM_LENGTH, HUGE_TERM_LENGTH = 1 << 20, 16 << 20
MESSAGE_LENGTH, FRAME_LENGTH = 1_000, 1_024
TURN = 4 * TERM_LENGTH // FRAME_LENGTH
"""Number of messages after which all pages of a log are written."""
FORGED, HUGE = 7, 8
"""Session ids of forged streams."""


class Stream:
    """A stream through the driver, whose messages are numbered."""

    def __init__(self, aeron, channel, stream_id):
        self.read, self.written = [], 0
        self.subscription = aeron.add_subscription(channel, stream_id)
        self.publication = aeron.add_exclusive_publication(f"{channel}|term-length=64k", stream_id)
        until(lambda: self.publication.is_connected, "the stream's connection")

    def work(self):
        """Write and read a few messages."""
        if not self.publication.is_closed:
            content = b"%d" % self.written
            self.written += self.publication.offer(content.ljust(MESSAGE_LENGTH)) > 0
        self.subscription.poll(lambda payload, header: self.read.append(int(bytes(payload))), 50)

    def is_right(self):
        """Whether the messages that were read are the first ones that were written."""
        return self.read == list(range(len(self.read)))


class Forger:
    """Sends the frames of sessions that no driver publishes."""

    def __init__(self, port, stream_id):
        self._to, self._stream_id = ("127.0.0.1", port), stream_id
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._offset = 0

    def setup(self, session_id, term_length):
        """Send a SETUP."""
        fields = (0, session_id, self._stream_id, 1, 1, term_length, 1_408, 0)
        self._socket.sendto(wire.pack("setup", 40, 0, 0, wire.SETUP, *fields), self._to)

    def data(self):
        """Send the next frame of the session FORGED."""
        fields = (self._offset, FORGED, self._stream_id, 1, 0)
        frame = wire.pack("data", FRAME_LENGTH, 0, 0xC0, wire.DATA, *fields)
        self._socket.sendto(frame.ljust(FRAME_LENGTH, b"x"), self._to)
        self._offset += FRAME_LENGTH

    def close(self):
        self._socket.close()


@pytest.fixture
def disk(tmp_path):
    """A file system for the driver's directory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, DISK_LENGTH) as mounted:
        yield mounted


def test_a_full_disk_ends_only_streams_that_need_new_pages(disk, tmp_path):
    directory, errors = disk / "aeron", []
    context = ClientContext(dir=directory, driver_timeout_ms=60_000, error_handler=errors.append)
    with process("driver", "--dir", directory, AERON_THREADING_MODE="SHARED") as driver:
        assert driver.stdout.readline().startswith("driver ready")
        with Aeron(context=context) as aeron:
            check(driver, aeron, directory, disk)
        assert driver.poll() is None
    assert [str(error) for error in errors if "has lost pages" not in str(error)] == []


class Attack:
    """Streams whose logs need new pages, one of a local client and one from the network."""

    def __init__(self, aeron, directory):
        self._log = cnc_file.open_existing(directory).error_log
        port = free_port()
        self.channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
        self._subscription, self._forger = (
            aeron.add_subscription(self.channel, 12),
            Forger(port, 12),
        )
        self._forged = []
        self._local = Stream(aeron, f"aeron:udp?endpoint=127.0.0.1:{free_port()}", 11)
        self._local.work()
        until(self._has_image, "the image of the forged session")
        self._forger.data()
        until(self._poll, "its first message")
        self._forger.setup(HUGE, HUGE_TERM_LENGTH)
        until(lambda: self._is_logged("insufficient usable storage"), "the refusal of a long term")
        ids = (self._local.publication.registration_id, self._subscription.images[0].correlation_id)
        self.logs = [path for each in ids for path in directory.rglob(f"{each}.logbuffer")]
        assert len(self.logs) == len(ids)

    def _has_image(self):
        self._forger.setup(FORGED, FORGED_TERM_LENGTH)
        return bool(self._subscription.images)

    def _poll(self):
        self._subscription.poll(lambda payload, header: self._forged.append(bytes(payload)), 50)
        return bool(self._forged)

    def _is_logged(self, text):
        return any(text in error.text for error in read_errors(self._log))

    def work(self):
        """Write and read both streams. Returns whether the error log names both logs."""
        self._local.work()
        self._forger.data()
        self._poll()
        return all(self._is_logged(f"{path} has lost pages") for path in self.logs)

    def is_right(self):
        """Whether each message that was read is complete."""
        expected = b"x" * (FRAME_LENGTH - 32)
        return self._local.is_right() and set(self._forged) == {expected}

    def close(self):
        self._forger.close()


def check(driver, aeron, directory, disk):
    """Fill the disk while streams run, and check which of them end."""
    checked = Stream(aeron, f"aeron:udp?endpoint=127.0.0.1:{free_port()}", 10)

    def has_read(count):
        checked.work()
        return len(checked.read) > count

    # All pages of the checked stream's logs are written, few of the others.
    until(lambda: has_read(TURN), "a turn of the terms")
    with closing(Attack(aeron, directory)) as attack:
        filler = fill(disk)

        def is_over():
            checked.work()
            assert driver.poll() is None
            return attack.work()

        until(is_over, "the errors of both streams")
        before = len(checked.read)
        until(lambda: has_read(before + TURN), "the other stream to go on")
        assert attack.is_right()
        assert checked.is_right()
        assert not aeron.is_closed
        until(lambda: has_read(0) and not any(path.exists() for path in attack.logs), "removal")
        filler.unlink()
        fresh = Stream(aeron, attack.channel, 13)
        until(lambda: fresh.work() or len(fresh.read) > TURN, "a new stream")
        assert fresh.is_right()
