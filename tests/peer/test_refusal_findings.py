"""Two defects of the real driver when it refuses a command: see docs/findings/port-of-a-refused-
subscription.md and docs/findings/refused-removal-by-id.md.
"""

import pytest

from tests.peer.driver_facts import ERRORS, DriverFacts
from tests.peer.ports import free_port
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_fan_out_beside_real_aeron import our_driver, real_driver
from windtunnel.driver.client import Aeron, ClientContext, RegistrationError
from windtunnel.driver.client.errors import CommandTimeoutError

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer


def hasty_client(directory):
    return Aeron(context=ClientContext(dir=directory, driver_timeout_ms=3_000))


@pytest.mark.parametrize(
    ("driver", "is_real"), [(real_driver, True), (our_driver, False)], ids=["real", "ours"]
)
class TestRefusals:
    def test_a_subscription_is_refused_for_its_window(self, tmp_path, driver, is_real):
        channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        with driver(tmp_path) as directory, Aeron(directory) as client:
            with pytest.raises(RegistrationError, match="rcv-wnd"):
                client.add_subscription(f"{channel}|rcv-wnd=1g", STREAM_ID)
            if is_real:
                with pytest.raises(RegistrationError, match="Address already in use"):
                    client.add_subscription(channel, STREAM_ID)
            else:
                assert client.add_subscription(channel, STREAM_ID).channel_status == 1

    def test_a_destination_is_removed_where_there_is_none(self, tmp_path, driver, is_real):
        with driver(tmp_path) as directory, hasty_client(directory) as client:
            publication = client.add_publication("aeron:ipc", STREAM_ID)
            refusal = CommandTimeoutError if is_real else RegistrationError
            with pytest.raises(refusal):
                publication.remove_destination_by_id(publication.registration_id)
            facts = DriverFacts(directory)
            until(lambda: facts.total(ERRORS) == (0 if is_real else 1), "the error")
