"""A driver that is killed while a client uses it, and a client that is killed."""

import pytest

from tests.peer.killed_client import COUNTER_TYPE
from tests.peer.processes import process, real_driver_process
from tests.peer.streams import channel, until
from windtunnel.driver.client import Aeron, ClientContext, DriverTimeoutError
from windtunnel.driver.logbuffer import publication_result as result

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

STREAM_ID = 1001
HASTE = {
    "AERON_TIMER_INTERVAL": "200ms",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "4s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "1s",
}


def test_a_killed_driver_is_reported_and_a_new_one_can_be_used(tmp_path):
    directory, errors = tmp_path / "aeron", []
    context = ClientContext(
        dir=directory, driver_timeout_ms=4_000, keepalive_interval_ns=50_000_000,
        error_handler=errors.append,
    )  # fmt: skip
    where = channel()
    with real_driver_process(directory) as driver, Aeron(context=context) as client:
        subscription = client.add_subscription(where, STREAM_ID)
        publication = client.add_exclusive_publication(where, STREAM_ID)
        until(lambda: publication.is_connected and subscription.images, "connecting")
        image = subscription.images[0]
        driver.kill()
        until(lambda: errors, "the client to detect it")
        assert client.is_closed
        assert [type(error) for error in errors] == [DriverTimeoutError]
        assert "heartbeat" in client.failure
        assert publication.offer(b"1") == result.CLOSED
        assert image.is_closed
        assert subscription.poll(lambda payload, header: None) == 0
        with pytest.raises(DriverTimeoutError):
            client.add_subscription(where, STREAM_ID)
    with real_driver_process(directory), Aeron(context=context) as again:
        assert again.add_publication(where, STREAM_ID).session_id


@pytest.mark.full
def test_the_driver_frees_all_resources_of_a_killed_client(tmp_path):
    directory = tmp_path / "aeron"
    with (
        real_driver_process(directory, **HASTE),
        Aeron(directory) as observer,
        process("tests.peer.killed_client", directory, channel()) as killed,
    ):
        words = killed.stdout.readline().split()
        assert words[0] == "ready"
        killed_id = int(words[1])

        def left_behind():
            return [item for item in observer.counters if item.owner_id == killed_id]

        assert {COUNTER_TYPE, 11} <= {item.type_id for item in left_behind()}
        killed.kill()
        until(lambda: not left_behind(), "its counters to be freed")
        until(lambda: not list(directory.rglob("*.logbuffer")), "its logs to be deleted")
        assert not observer.is_closed
