"""Responses of the C and Java drivers: decoded, and encoded into the same bytes."""

from pathlib import Path

import pytest

from tests.golden.reader import load_array
from windtunnel.driver.cnc import broadcast, cnc_file
from windtunnel.driver.command.client import ClientTimeout
from windtunnel.driver.command.codec import Response, decode_response
from windtunnel.driver.command.counter import CounterReady, StaticCounter, UnavailableCounter
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.publication import (
    ExclusivePublicationReady,
    NextAvailableSessionId,
    PublicationReady,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess, PublicationError
from windtunnel.driver.command.subscription import SubscriptionReady

STREAMS = [("one-message", 404496857), ("clean", 1234567), ("loss-unreliable", 78)]
SUBSCRIBER_POSITION_ID = {"java-cubic-loss": 58}


def golden_responses(name: str, directory: Path) -> list[tuple[Response, bytes]]:
    """All responses in a set's broadcast, with their payloads."""
    load_array(f"cnc-{name}", "cnc.dat").tofile(directory / cnc_file.FILE_NAME)
    area = cnc_file.open_existing(directory).to_clients.copy()
    receiver, scratch = broadcast.make_receiver(area), broadcast.make_scratch(area)
    receiver[0].next = 0
    found = []
    while True:
        type_id, length = broadcast.receive(area, receiver, scratch)
        if type_id == broadcast.NO_MESSAGE:
            return found
        payload = scratch[:length].tobytes()
        found.append((decode_response(type_id, payload), payload))


def without_gap(image: AvailableImage, payload: bytes) -> bytes:
    """The payload with zeros in the gap before its last field, which the C driver does not set."""
    end = 32 + len(image.log_file_name)
    return payload[:end] + bytes(-end % 4) + payload[end + -end % 4 :]


@pytest.mark.parametrize(
    ("name", "session_id"), [*STREAMS, ("java-cubic-loss", -80)], ids=lambda value: str(value)
)
def test_a_stream_starts_with_these_five_responses(
    name: str, session_id: int, tmp_path: Path
) -> None:
    responses = [response for response, _ in golden_responses(name, tmp_path)]
    image = responses[-1]
    publication = responses[-2]
    assert responses[:3] == [CounterReady(1, 48), SubscriptionReady(2, 46), CounterReady(3, 57)]
    assert isinstance(publication, ExclusivePublicationReady)
    assert isinstance(image, AvailableImage)
    assert publication.registration_id == publication.correlation_id == 4
    assert publication.session_id == image.session_id == session_id
    assert publication.stream_id == image.stream_id == 1001
    assert publication.log_file_name.endswith("/publications/4.logbuffer")
    assert (image.correlation_id, image.subscription_registration_id) == (5, 2)
    assert image.subscriber_position_id == SUBSCRIBER_POSITION_ID.get(name, 61)
    assert image.log_file_name.endswith("/images/5.logbuffer")
    assert image.source_identity.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "name", ["one-message", "clean", "loss-unreliable", "java-cubic-loss", "commands"]
)
def test_encoding_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    responses = golden_responses(name, tmp_path)
    assert len(responses) >= 5
    for response, payload in responses:
        if isinstance(response, AvailableImage):
            payload = without_gap(response, payload)
        assert response.encode() == payload


def test_every_kind_of_response_is_decoded(tmp_path: Path) -> None:
    responses = [response for response, _ in golden_responses("commands", tmp_path)]
    session = responses[2].session_id
    log = "/dev/shm/golden-driver/"
    assert responses[:7] == [
        CounterReady(1, 48),
        SubscriptionReady(2, 46),
        ExclusivePublicationReady(3, 3, session, 1001, 52, 49, log + "publications/3.logbuffer"),
        AvailableImage(
            11, session, 1001, 2, 60, log + "images/11.logbuffer", responses[3].source_identity
        ),
        PublicationReady(4, 4, session + 1, 1001, 62, -1, log + "publications/4.logbuffer"),
        SubscriptionReady(5, -1),
        AvailableImage(4, session + 1, 1001, 5, 63, log + "publications/4.logbuffer", "aeron:ipc"),
    ]
    refused = responses[7]
    assert isinstance(refused, ErrorResponse)
    assert (refused.correlation_id, refused.error_code) == (6, 11)
    assert refused.message.startswith("(22) Invalid argument\n")
    assert responses[8:12] == [
        CounterReady(7, 64),
        StaticCounter(8, 65),
        NextAvailableSessionId(9, session + 2),
        PublicationReady(10, 10, session + 3, 7, 70, 66, log + "publications/10.logbuffer"),
    ]
    assert responses[12:] == [
        OperationSuccess(12),
        OperationSuccess(14),
        OperationSuccess(15),
        SubscriptionReady(16, 75),
        OperationSuccess(17),
        OperationSuccess(18),
        OperationSuccess(19),
        UnavailableCounter(7, 64),
        ClientTimeout(1),
        UnavailableCounter(1, 48),
        # The C driver writes the bytes of its loopback address in reverse order for IPC.
        PublicationError(4, -1, session + 1, 1001, -1, -1, "1.0.0.127", 0, 13, "no"),
        OperationSuccess(20),
    ]
