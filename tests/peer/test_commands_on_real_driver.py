"""Commands and responses exchanged with a real C driver through shared memory."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peer.raw_client import RawClient
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.cnc import cnc_file, counters
from windtunnel.driver.cnc.counters_manager import append_label
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import (
    AddCounter,
    CounterReady,
    RemoveCounter,
    UnavailableCounter,
)
from windtunnel.driver.command.publication import AddExclusivePublication, ExclusivePublicationReady
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)

pyaeron = pytest.importorskip("pyaeron")
pytestmark = pytest.mark.peer

ANSWER_TIMEOUT_S = 20.0


class Client(RawClient):
    """A minimal client."""

    def __init__(self, directory: Path) -> None:
        clock = SystemClock()
        super().__init__(cnc_file.connect(directory, clock, lambda ns: time.sleep(ns / 1e9)))
        self.client_id = self.next_id()

    def next_response(self) -> Response:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            response = self.receive()
            if response is not None:
                return response
            time.sleep(0.002)
        raise AssertionError(f"no response within {ANSWER_TIMEOUT_S} s")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with pyaeron.MediaDriver(dir=str(tmp_path / "aeron")) as driver:
        yield Client(Path(driver.dir))


def test_a_client_registers_and_closes(client: Client) -> None:
    assert client.client_id == 1
    client.send(AddSubscription(client.client_id, client.next_id(), 10, "aeron:ipc"))
    heartbeat = client.next_response()
    assert isinstance(heartbeat, CounterReady)
    assert heartbeat.correlation_id == client.client_id
    assert client.next_response() == SubscriptionReady(2, -1)
    append_label(client.cnc.counters_metadata, heartbeat.counter_id, " name=windtunnel")
    label = client.reader.label(heartbeat.counter_id)
    assert label == "client-heartbeat: id=1 name=windtunnel"
    assert client.reader.find(11, client.client_id) == heartbeat.counter_id
    counters.set_release(client.cnc.counters_values, heartbeat.counter_id, SystemClock().now_ms())
    client.send(RemoveSubscription(client.client_id, client.next_id(), 2))
    assert client.next_response() == OperationSuccess(3)
    client.send(ClientClose(client.client_id))
    assert client.next_response() == UnavailableCounter(client.client_id, heartbeat.counter_id)
    assert not client.reader.is_active(heartbeat.counter_id, client.client_id)


def test_a_publication_is_added_and_an_invalid_one_rejected(client: Client) -> None:
    channel = "aeron:udp?endpoint=127.0.0.1:24590|term-length=64k"
    client.send(AddExclusivePublication(client.client_id, client.next_id(), 10, channel))
    assert isinstance(client.next_response(), CounterReady)
    ready = client.next_response()
    assert isinstance(ready, ExclusivePublicationReady)
    assert Path(ready.log_file_name).is_file()
    limit = client.reader.read(ready.limit_counter_id)
    assert limit is not None
    assert limit.label == f"pub-lmt: 2 {ready.session_id} 10 {channel}"
    client.send(AddExclusivePublication(client.client_id, client.next_id(), 10, "aeron:none"))
    refused = client.next_response()
    assert isinstance(refused, ErrorResponse)
    assert refused.correlation_id == 3
    assert ErrorCode.of(refused.error_code) is not ErrorCode.UNKNOWN_CODE_VALUE


def test_a_counter_is_added_and_removed(client: Client) -> None:
    client.send(AddCounter(client.client_id, client.next_id(), 1234, b"odd", "a label"))
    assert isinstance(client.next_response(), CounterReady)
    ready = client.next_response()
    assert isinstance(ready, CounterReady)
    counter = client.reader.read(ready.counter_id)
    assert counter is not None
    assert (counter.type_id, counter.label, counter.owner_id) == (1234, "a label", 1)
    assert counter.key.rstrip(b"\0") == b"odd"
    client.send(RemoveCounter(client.client_id, client.next_id(), 2))
    assert client.next_response() == OperationSuccess(3)
    assert client.next_response() == UnavailableCounter(2, ready.counter_id)


def test_an_unknown_command_is_logged(client: Client) -> None:
    client.send_bytes(0x55, bytes(16))
    client.send_bytes(0x01, bytes(18))
    client.send(AddSubscription(client.client_id, client.next_id(), 10, "aeron:ipc"))
    assert isinstance(client.next_response(), CounterReady)
    texts = [error.text for error in read_errors(client.cnc.error_log)]
    assert [text.splitlines()[0] for text in texts] == [
        "(-6) unknown command type id",
        "(-7) malformed command",
    ]
