"""The messages of each image are a part, whichever client the image belongs to."""

import io
from dataclasses import dataclass, field

from windtunnel.driver.wire.frame_type import BEGIN, END
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.rejoining import Parts
from windtunnel.harness.workload.subscriber import Application

WHOLE = BEGIN | END


@dataclass
class Image:
    """An image with a given amount to read."""

    correlation_id: int
    session_id: int
    end: int
    join_position: int = 0
    position: int = 0
    is_end_of_stream: bool = False
    is_closed: bool = False


@dataclass
class Subscription:
    images: list[Image] = field(default_factory=list)


class Reader:
    def __init__(self, ends=None):
        self._ends = ends or {}

    def leave(self, image):
        return self._ends.get(image.correlation_id, -1)

    def poll(self, image):
        count, image.position = image.end - image.position, image.end
        return count


def reading(sessions=1, ends=None):
    facts = SubscriberFacts(0, 1001, 0, 0, False, 0, 0, 0, 0, None)
    ticks = iter(range(1, 100))
    return facts, Parts(Reader(ends), Reader(), facts, sessions, lambda: next(ticks))


def test_an_image_that_is_lost_and_replaced_makes_two_parts():
    facts, parts = reading()
    own, tapped = Subscription([Image(1, 7, end=100)]), Subscription([Image(1, 7, end=100)])
    assert parts.read(own, tapped) == 200
    own.images[0].is_closed = True
    assert parts.read(own, tapped) == 0
    assert not parts.is_over
    again = Image(2, 7, end=300, join_position=160, position=160, is_end_of_stream=True)
    own.images[:] = tapped.images[:] = [again]
    parts.read(own, tapped)
    assert parts.is_over
    found = [(each.join_position, each.end_position, each.eos_seen) for each in facts.parts]
    assert found == [(0, 100, False), (160, 300, True)]
    assert (facts.join_position, facts.end_position, facts.eos_seen) == (160, 300, True)


def test_images_of_a_closed_client_end_and_their_ids_may_be_reused():
    facts, parts = reading()
    own = Subscription([Image(1, 7, end=50)])
    parts.read(own, Subscription())
    parts.leave()
    assert facts.parts[0].end_position == 50
    assert facts.parts[0].left_ns > facts.parts[0].joined_ns > 0
    other = Image(1, 7, end=90, join_position=60, position=60, is_end_of_stream=True)
    parts.read(Subscription([other]), Subscription([other]))
    assert [each.join_position for each in facts.parts] == [0, 60]
    assert parts.is_over


def test_as_many_sessions_must_end_as_there_are_publications_for_both_readers():
    _, parts = reading(sessions=2)
    first = Image(1, 7, end=10, is_end_of_stream=True)
    second = Image(2, 8, end=10, is_end_of_stream=True)
    parts.read(Subscription([first]), Subscription([first]))
    assert not parts.is_over
    parts.read(Subscription([second]), Subscription())
    assert not parts.is_over
    parts.read(Subscription(), Subscription([second]))
    assert parts.is_over


def test_messages_of_the_last_poll_of_a_closed_image_belong_to_its_part():
    """The driver closed the image during a poll: its position stays where the poll began."""
    facts, parts = reading(ends={1: 164})
    parts.read(Subscription([Image(1, 7, end=100, is_closed=True)]), Subscription())
    assert facts.parts[0].end_position == 164


@dataclass
class Header:
    """The header of a fragment: its end position, and its BEGIN and END flags."""

    position: int
    flags: int
    session_id: int = 7

    def copied(self):
        return self

    def completed(self, first):
        return self


class Fragments:
    """An image that delivers frames of 64 bytes at each poll."""

    def __init__(self, correlation_id, *headers):
        self.correlation_id, self.session_id = correlation_id, 7
        self.join_position = self.position = 0
        self._headers = headers

    def poll(self, handler, limit):
        for header in self._headers:
            handler(memoryview(b"x" * 32), header)
        return len(self._headers)


def test_a_message_is_not_assembled_from_fragments_of_two_images(tmp_path):
    files = [(tmp_path / name).open("wb") for name in ("messages", "index")]
    application = Application(*files, Progress(1), times=io.BytesIO(), flip_byte=False)
    before = Fragments(1, Header(64, WHOLE), Header(128, BEGIN))
    application.poll(before)
    assert application.leave(before) == 64
    after = Fragments(2, Header(192, END), Header(256, WHOLE))
    application.poll(after)
    assert application.message_count == 2
    assert application.leave(after) == 256
    for each in files:
        each.close()
