"""The links of a stream to the subscriptions that read it."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Subscription,
    SubscriptionLinks,
)


class SearchedLinks(list):
    """The links of a subscription, which may be added and removed, but not searched."""

    def __iter__(self):
        pytest.fail("all links of a subscription were visited")


class Counters:
    """Allocates the counters of links, and records which were freed."""

    def __init__(self):
        self.count, self.freed = 0, []

    def stream(self, *_, **__):
        self.count += 1
        return self.count

    def free(self, counter_id):
        self.freed.append(counter_id)


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def notifications():
    """The notifications sent to clients."""
    return []


@pytest.fixture
def links(counters, notifications):
    return SubscriptionLinks(
        SimpleNamespace(
            counters=counters,
            positions=SimpleNamespace(add=lambda *_: 0, remove=lambda *_: None),
            clock=SimpleNamespace(now_ns=lambda: 0),
            clients=SimpleNamespace(transmit=notifications.append),
        )
    )


def subscribe(links, registration_id):
    made = Subscription(registration_id, 1, 1001, None, "aeron:ipc", None)
    links.subscriptions[registration_id] = made
    return made


def stream(registration_id):
    made = SimpleNamespace(
        registration_id=registration_id,
        session_id=5,
        stream_id=1001,
        source_identity="",
        record=None,
        log_path="",
        join_position=lambda *_: 0,
    )
    # The streams of a driver are compared and hashed by identity.
    return type("Stream", (), vars(made))()


def test_the_links_of_a_stream_are_found_without_visiting_others(links):
    reader, many = subscribe(links, 1), [stream(number) for number in range(5)]
    reader.links = SearchedLinks()
    for each in many:
        links.link(reader, each)
    assert [link.stream for link in links.readers_of(many[3])] == [many[3]]
    links.unlink_stream(many[3])
    assert links.readers_of(many[3]) == []
    assert len(reader.links) == 4


def test_a_stream_has_its_links_until_they_are_dropped_or_closed(links, counters, notifications):
    first, second, read = subscribe(links, 1), subscribe(links, 2), stream(9)
    for each in (first, second):
        links.link(each, read)
    one, two = links.readers_of(read)
    assert (one.subscription, two.subscription) == (first, second)
    links.close_position(one)
    assert links.readers_of(read) == [two]
    assert first.is_linked(read)
    notifications.clear()
    links.unlink_stream(read)
    assert len(notifications) == 2
    assert counters.freed == [one.counter_id, two.counter_id]
    assert links.readers_of(read) == first.links == second.links == []


def test_a_stream_that_is_dropped_or_a_subscription_that_ends_leaves_no_link(links, notifications):
    first, second, read, other = subscribe(links, 1), subscribe(links, 2), stream(9), stream(9)
    for each in (read, other):
        links.link(first, each)
        links.link(second, each)
    notifications.clear()
    assert links.unlink_subscription(first) == [read, other]
    assert [link.subscription for link in links.readers_of(other)] == [second]
    links.drop_links(other)
    assert links.readers_of(other) == []
    assert len(links.readers_of(read)) == 1
    assert notifications == []
    links.drop_links(read)
    assert not links._links_by_stream
