"""The findings about Aeron's C driver in `docs/findings` still apply, and this driver is correct.

If a case fails with the real driver, Aeron has fixed it, and the page must name the version.
"""

import socket
from contextlib import contextmanager

import pytest

from tests.peer.driver_facts import DriverFacts
from tests.peer.ports import free_port, free_ports
from tests.peer.processes import process, real_driver_process
from tests.peer.streams import STREAM_ID, until
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.driver.cnc import broadcast, cnc_file
from windtunnel.driver.command.codec import decode_response
from windtunnel.driver.command.command_type import ResponseType
from windtunnel.driver.media_driver.agent import system_counters

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

LOG_LENGTH = 3 * 65_536 + 4_096
IPC = "aeron:ipc?term-length=64k"
SETTINGS = {
    "AERON_TIMER_INTERVAL": "100ms", "AERON_IMAGE_LIVENESS_TIMEOUT": "1s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms", "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
}  # fmt: skip


@contextmanager
def our_driver_process(directory, **environment):
    with process("windtunnel.driver", AERON_DIR=str(directory), **environment):
        yield


DRIVERS = {"real": real_driver_process, "ours": our_driver_process}


@pytest.fixture(params=["real", "ours"])
def is_real(request):
    return request.param == "real"


@pytest.fixture
def rejections():
    return []


@pytest.fixture
def client(tmp_path, is_real, rejections):
    directory = tmp_path / "aeron"
    context = ClientContext(
        dir=directory, driver_timeout_ms=120_000, publication_error_handler=rejections.append
    )
    drive = DRIVERS["real" if is_real else "ours"]
    with drive(directory, **SETTINGS), Aeron(context=context) as made:
        yield made


def udp():
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"


def test_the_log_of_an_image_is_counted_twice_and_no_log_is_subtracted(client, is_real):
    def mapped():
        return client.counters.value(system_counters.BYTES_CURRENTLY_MAPPED)

    def logs():
        return [*client.context.dir.glob("*/*.logbuffer")]

    before = mapped()
    for number in range(2):
        subscription = client.add_subscription(where := udp(), STREAM_ID)
        publication = client.add_exclusive_publication(where, STREAM_ID)
        until(lambda held=subscription: held.images, "an image")
        assert len(logs()) == 2
        expected = 3 * (number + 1) if is_real else 2
        until(lambda count=expected: mapped() - before == count * LOG_LENGTH, "the counter")
        publication.close()
        subscription.close()
        until(lambda: not logs(), "the logs to go")
        remaining = expected if is_real else 0
        until(lambda count=remaining: mapped() - before == count * LOG_LENGTH, "the counter")


def test_the_real_driver_reports_another_source_of_a_rejection_over_ipc(
    client, is_real, rejections
):
    subscription = client.add_subscription(IPC, STREAM_ID)
    client.add_exclusive_publication(IPC, STREAM_ID)
    until(lambda: subscription.images, "an image")
    subscription.images[0].reject("not wanted")
    until(lambda: rejections, "the publisher to be notified")
    assert rejections[0].source_address == ("1.0.0.127" if is_real else "127.0.0.1")


def test_a_removed_spy_destination_leaves_its_image(client, is_real):
    cnc = cnc_file.open_existing(client.context.dir)
    receiver, scratch = (
        broadcast.make_receiver(cnc.to_clients),
        broadcast.make_scratch(cnc.to_clients),
    )
    gone = []

    def is_notified():
        type_id, length = broadcast.receive(cnc.to_clients, receiver, scratch)
        if type_id == ResponseType.UNAVAILABLE_IMAGE:
            gone.append(decode_response(type_id, scratch[:length]).correlation_id)
        return gone

    subscription = client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)
    publication = client.add_exclusive_publication(where := udp(), STREAM_ID)
    subscription.add_destination(spy := f"aeron-spy:{where}")
    until(lambda: subscription.images, "an image")
    (image,) = subscription.images
    subscription.remove_destination(spy)
    until(is_notified, "the notification")
    assert gone == [0 if is_real else publication.registration_id]
    counter_id = image.subscriber_position_id
    until(lambda: client.counters.read(counter_id) is None, "the position to be freed")
    publication.close()
    until(lambda: not [*client.context.dir.glob("*/*.logbuffer")], "the log to go")
    if is_real:
        assert subscription.images == (image,)
        assert not image.is_closed
    else:
        until(lambda: image.is_closed, "the image to be closed")
    cnc.close()


def test_a_removed_control_destination_is_used_every_second(client, is_real):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as publisher:
        publisher.bind(("127.0.0.1", 0))
        publisher.settimeout(10)
        control = f"control=127.0.0.1:{publisher.getsockname()[1]}"
        removed, kept = (f"aeron:udp?endpoint=127.0.0.1:{port}|{control}" for port in free_ports(2))
        subscription = client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)
        subscription.add_destination(removed)
        subscription.remove_destination(removed)
        subscription.add_destination(kept)
        # One request for a SETUP a second, after that of the destination that was removed.
        for _ in range(4):
            publisher.recv(65_536)
    errors = DriverFacts(client.context.dir).errors()
    assert ["Bad file descriptor" in text for text in errors] == ([True] if is_real else [])


def test_a_send_timestamp_is_in_every_fragment(client, is_real):
    where, message = udp(), b"x" * 3_000
    subscription = client.add_subscription(where, STREAM_ID)
    publication = client.add_publication(f"{where}|channel-snd-ts-offset=0", STREAM_ID)
    until(lambda: subscription.images and publication.is_connected, "connecting")
    assert publication.offer(message) > 0
    fragments = []

    def on_fragment(payload, header):
        fragments.append(bytes(payload))

    until(lambda: subscription.poll(on_fragment) or len(fragments) == 3, "the message")
    stamped = [fragment[:8] != b"x" * 8 for fragment in fragments]
    assert stamped == ([True, True, True] if is_real else [True, False, False])
    assert {fragment[8:].strip(b"x") for fragment in fragments} == {b""}
