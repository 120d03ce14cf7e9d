"""Images at a negative position: see docs/findings/image-at-a-negative-position.md."""

import time
from contextlib import contextmanager

import pytest

from tests.peer.ports import free_port
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_fan_out_beside_real_aeron import real_driver
from windtunnel.driver.client import Aeron
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.media_driver.context import SHARED, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

LAST_TERM = "term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65280"
END = 1 << 47
"""2^31 terms of 64 KiB."""
QUIET_S = 1.5
"""Longer than the interval in which SETUPs are elicited."""


@contextmanager
def our_driver(folder):
    context = Context(
        dir=folder / "ours", threading_mode=SHARED, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us", image_liveness_timeout_ns=1_000_000_000,
    )  # fmt: skip
    with MediaDriver(context):
        yield context.dir


@pytest.mark.parametrize(
    ("driver", "later"), [(real_driver, [-END]), (our_driver, [])], ids=["real", "ours"]
)
def test_the_images_of_a_stream_at_its_end(tmp_path, monkeypatch, driver, later):
    monkeypatch.setenv("AERON_IMAGE_LIVENESS_TIMEOUT", "1s")
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    joined, left = [], []
    with driver(tmp_path) as directory, Aeron(directory) as client:
        subscription = client.add_subscription(
            channel, STREAM_ID,
            on_available_image=lambda image: joined.append(image.join_position),
            on_unavailable_image=lambda image: left.append(image.position),
        )  # fmt: skip
        publication = client.add_publication(f"{channel}|{LAST_TERM}", STREAM_ID)
        until(lambda: publication.is_connected and subscription.images, "connecting")
        until(lambda: publication.offer(bytes(300)) == result.MAX_POSITION_EXCEEDED, "the end")

        def has_left():
            subscription.poll(lambda payload, header: None)
            return left

        until(has_left, "the end of the image")
        end_s = time.monotonic() + QUIET_S
        while time.monotonic() < end_s and len(joined) < 2:
            subscription.poll(lambda payload, header: None)
            time.sleep(0.01)
    assert left[0] == END
    assert joined == [END - 256, *later]
