"""Messages are sent in order, and queued under back pressure."""

import pytest

from windtunnel.driver.archive.control.response_sender import ATTEMPTS, ResponseSender
from windtunnel.driver.archive.protocol.codec import decode
from windtunnel.driver.archive.protocol.responses import Ping
from windtunnel.driver.logbuffer import publication_result as result


class Publication:
    """Returns scripted results, and otherwise accepts messages."""

    max_message_length = 100

    def __init__(self):
        self.accepted, self.refusals, self.offers = [], [], 0

    def offer(self, content):
        self.offers += 1
        if self.refusals:
            return self.refusals.pop(0)
        self.accepted.append(decode(content).control_session_id)
        return 64 * len(self.accepted)


@pytest.fixture
def publication():
    return Publication()


@pytest.fixture
def errors():
    return []


@pytest.fixture
def sender(publication, errors):
    return ResponseSender(publication, errors.append)


def ping(number):
    return Ping(control_session_id=number)


def test_queued_messages_are_sent_before_later_ones(sender, publication):
    publication.refusals = [result.BACK_PRESSURED] * ATTEMPTS
    assert not sender.send(ping(1))
    assert not sender.send(ping(2))
    assert publication.accepted == []
    assert sender.has_waiting
    assert sender.send_waiting()
    assert sender.send_waiting()
    assert not sender.send_waiting()
    assert sender.send(ping(3))
    assert publication.accepted == [1, 2, 3]


def test_an_offer_is_retried_under_back_pressure(sender, publication):
    publication.refusals = [result.ADMIN_ACTION, result.BACK_PRESSURED]
    assert sender.send(ping(1))
    assert publication.offers == ATTEMPTS
    publication.refusals = [result.BACK_PRESSURED] * ATTEMPTS
    assert not sender.try_send(ping(2))
    assert not sender.has_waiting


@pytest.mark.parametrize(
    "offer_result", [result.NOT_CONNECTED, result.CLOSED, result.MAX_POSITION_EXCEEDED]
)
def test_an_offer_to_a_closed_publication_is_not_retried(sender, publication, offer_result):
    publication.refusals = [offer_result]
    assert not sender.try_send(ping(1))
    assert sender.is_gone
    assert publication.offers == 1


def test_a_message_that_is_too_long_is_logged_and_dropped(sender, publication, errors):
    publication.refusals = [result.ERROR]
    assert sender.send(ping(1))
    assert not sender.has_waiting
    assert errors == ["cannot send a response of 16 bytes: the maximum message length is 100"]
