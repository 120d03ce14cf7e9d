"""Messages have numbers, and an exchange detects each difference."""

import pytest

from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, message, offer
from windtunnel.harness.workload.stop import SubjectError


class Publication:
    """A publication that passes messages to subscriptions, and refuses each one once."""

    stream_id, channel = 1001, "aeron:ipc"

    def __init__(self, *queues):
        self.queues, self.refused, self.code = queues, False, result.BACK_PRESSURED

    def offer(self, content):
        self.refused = not self.refused
        if self.refused:
            return self.code
        for each in self.queues:
            each.append(content)
        return 32


class Queue(list):
    """A subscription that delivers whole messages."""

    def poll(self, handler, limit):
        while self:
            # An unfragmented message.
            handler(memoryview(self.pop(0)), type("Header", (), {"flags": 0xC0})())


def run(routine):
    for wait in routine:
        for _ in range(50):
            if wait.condition():
                break
        else:
            raise SubjectError(f"expected {wait.what}")


def test_messages_differ_in_each_word():
    one, two = message(1, 100), message(2, 100)
    assert len(one) == len(two) == 100
    assert all(one[at : at + 8] != two[at : at + 8] for at in range(0, 100, 8))


def test_each_reader_gets_all_messages():
    queues = Queue(), Queue()
    readers = [Reader(each) for each in queues]
    run(exchange(Publication(*queues), readers, 5, 40))
    assert [each.messages for each in readers] == [[], []]


def test_a_message_that_a_reader_misses_is_reported():
    queues = Queue(), Queue()
    with pytest.raises(SubjectError, match="found fewer at one of the readers"):
        run(exchange(Publication(queues[0]), [Reader(each) for each in queues], 5, 40))


def test_another_message_is_reported():
    queue = Queue([message(9, 40)])
    with pytest.raises(SubjectError, match="found 6, and another message 0"):
        run(exchange(Publication(queue), [Reader(queue)], 5, 40))


def test_an_offer_that_cannot_succeed_is_reported():
    publication = Publication()
    assert offer(publication, b"a") == 0
    publication.code, publication.refused = result.MAX_POSITION_EXCEEDED, False
    with pytest.raises(SubjectError, match="an offer of 1 bytes returned -5"):
        offer(publication, b"a")
