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
        self.taken, self.refusals, self.offers = [], [], 0

    def offer(self, content):
        self.offers += 1
        if self.refusals:
            return self.refusals.pop(0)
        self.taken.append(decode(content).control_session_id)
        return 64 * len(self.taken)


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


def test_what_cannot_be_sent_now_is_sent_before_what_comes_later(sender, publication):
    publication.refusals = [result.BACK_PRESSURED] * ATTEMPTS
    assert not sender.send(ping(1))
    assert not sender.send(ping(2))
    assert publication.taken == []
    assert sender.has_waiting
    assert sender.send_waiting()
    assert sender.send_waiting()
    assert not sender.send_waiting()
    assert sender.send(ping(3))
    assert publication.taken == [1, 2, 3]


def test_an_attempt_is_repeated_while_that_may_help(sender, publication):
    publication.refusals = [result.ADMIN_ACTION, result.BACK_PRESSURED]
    assert sender.send(ping(1))
    assert publication.offers == ATTEMPTS
    publication.refusals = [result.BACK_PRESSURED] * ATTEMPTS
    assert not sender.try_send(ping(2))
    assert not sender.has_waiting


@pytest.mark.parametrize(
    "answer", [result.NOT_CONNECTED, result.CLOSED, result.MAX_POSITION_EXCEEDED]
)
def test_who_is_gone_is_not_tried_again(sender, publication, answer):
    publication.refusals = [answer]
    assert not sender.try_send(ping(1))
    assert sender.is_gone
    assert publication.offers == 1


def test_what_is_too_long_is_told_and_dropped(sender, publication, errors):
    publication.refusals = [result.ERROR]
    assert sender.send(ping(1))
    assert not sender.has_waiting
    assert errors == ["cannot send a response of 16 bytes: the maximum message length is 100"]
