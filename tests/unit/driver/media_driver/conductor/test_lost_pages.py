"""Log buffers that lose pages during traffic, in a process that could end by SIGBUS."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peer.processes import process
from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    MS,
    TO_PEER,
    lab,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import setup
from windtunnel.driver.base import handoff
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.publication import AddPublication
from windtunnel.driver.command.subscription import AddSubscription
from windtunnel.driver.media_driver.sender import sender_state

ROOT = Path(__file__).resolve().parents[5]
HERE = SocketAddress("10.0.0.1", 20_121)
SCRIPT = """
import os, sys
from pathlib import Path
import pytest
from tests.unit.driver.client.invoked_client import world
from windtunnel.driver.files import bus_error_guard
from windtunnel.driver.cnc.error_log import read_errors

folder, guarded, kind, keep = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
if guarded == "unguarded":
    bus_error_guard.install = lambda: None
CHANNELS = {
    "ipc": ("aeron:ipc?term-length=64k", "aeron:ipc"),
    "image": ("aeron:udp?endpoint=10.0.0.1:20121|term-length=64k",
              "aeron:udp?endpoint=10.0.0.1:20121"),
}

class Stream:
    def __init__(self, made, client, channels, stream_id):
        self.made, self.read, self.errors = made, [], []
        self.gone = []
        self.publication = client.add_exclusive_publication(channels[0], stream_id)
        self.subscription = client.add_subscription(
            channels[1], stream_id, on_unavailable_image=self.gone.append)
        made.until(lambda: self.publication.is_connected)

    def work(self):
        self.publication.offer(bytes(1000))
        self.subscription.poll(lambda payload, header: self.read.append(bytes(payload)), 50)

with pytest.MonkeyPatch.context() as patch, world(folder, patch) as made:
    client = made.connect()
    other = Stream(made, client, CHANNELS["image"], 7)
    hit = Stream(made, client, CHANNELS["ipc" if kind == "ipc" else "image"], 8)
    for _ in range(20):
        made.both(1)
        other.work()
        hit.work()
    registration = hit.publication.registration_id
    if kind == "image":
        registration = hit.subscription.images[0].correlation_id
    path = next((folder / "aeron").rglob(f"{registration}.logbuffer"))
    os.truncate(path, keep)
    for _ in range(800):
        made.both(1, 4_000_000)
        other.work()
        if not hit.publication.is_closed:
            hit.work()
    cnc = made.driver.driver._cnc
    texts = [item.text for item in read_errors(cnc.error_log)]
    assert [str(path) in text and "has lost pages" in text for text in texts] == [True], texts
    assert [str(path) in str(error) for error in made.errors] == [True], made.errors
    assert len(other.read) > 400 and other.read.count(bytes(1000)) == len(other.read)
    assert not other.gone and len(hit.gone) == 1
    assert hit.publication.is_closed == (kind != "image")
    hit.publication.close()
    hit.subscription.close()
    fresh = Stream(made, client, CHANNELS["ipc"], 9)
    for _ in range(20):
        made.both(1)
        fresh.work()
    assert len(fresh.read) > 10
    made.both(150, 100_000_000)
    assert not path.exists()
    print("still serving")
"""


def run(tmp_path, *arguments):
    """Run the script; the driver and its clients are in its process."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *arguments],
        cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


def test_without_the_guard_a_truncated_log_ends_the_process(tmp_path):
    assert run(tmp_path, "unguarded", "ipc", "4096").returncode == -signal.SIGBUS


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("kind", "keep"),
    [("ipc", "0"), ("publication", "4096"), ("publication", "0"), ("image", "65536")],
)
def test_a_truncated_log_ends_its_stream_only(tmp_path, kind, keep):
    ended = run(tmp_path, "guarded", kind, keep)
    assert (ended.returncode, ended.stdout) == (0, "still serving\n"), ended.stderr


def test_a_truncated_cnc_file_ends_the_driver_with_an_error(tmp_path):
    with process("windtunnel.driver", "--dir", tmp_path / "aeron") as driver:
        assert driver.stdout.readline().startswith("driver ready")
        os.truncate(tmp_path / "aeron" / "cnc.dat", 0)
        assert driver.wait(60) == 1


def fail_to_send(driver):
    """Tell the conductor that a datagram was in a page that the system could not read."""
    record = handoff.make_record()
    record[:3] = sender_state.SEND_FAILED, 0, -errno.EFAULT
    assert handoff.put(driver.driver.agents[1].events, record)
    driver.turn()


def reports_of(driver, path):
    """Return how often each error that names the file was reported."""
    errors = read_errors(driver.driver._cnc.error_log)
    return [item.observation_count for item in errors if str(path) in item.text]


def test_the_driver_ends_an_image_with_lost_pages_itself(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        driver.add(AddSubscription, CHANNEL)
        driver.send(HERE, setup(session_id=7))
        driver.turn(3)
        assert AvailableImage in map(type, driver.take())
        (path,) = (tmp_path / "aeron" / "images").glob("*.logbuffer")
        os.truncate(path, path.stat().st_size - 4_096)
        fail_to_send(driver)
        fail_to_send(driver)
        assert reports_of(driver, path) == [1]
        # Timers, of a second each, then drain the image and notify the subscriber.
        driver.run_for(3_200 * MS)
        assert [type(item) for item in driver.take()] == [UnavailableImage]


def test_a_page_that_only_the_system_finds_lost_ends_its_stream(tmp_path):
    with lab(tmp_path / "aeron") as driver:
        driver.turn()
        driver.add(AddPublication, TO_PEER)
        path = next((tmp_path / "aeron").rglob("*.logbuffer"))
        os.truncate(path, path.stat().st_size - 4_096)
        fail_to_send(driver)
        fail_to_send(driver)
        assert reports_of(driver, path) == [1]
        # The timer then ends the publication.
        assert driver.driver.conductor.components.network.publications[0].is_revoked
