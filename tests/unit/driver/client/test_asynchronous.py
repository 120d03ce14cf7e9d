"""The asyncio API: offers that wait, messages as an iterator, closed streams."""

import asyncio

import pytest

from tests.unit.driver.client.own_stream import SESSION_ID, STREAM_ID, TERM_LENGTH, OwnStream
from windtunnel.driver.client.asynchronous import (
    AsyncPublication,
    AsyncSubscription,
    ReceivedMessage,
)
from windtunnel.driver.client.errors import ClientError, ClosedError
from windtunnel.driver.client.subscription import Subscription


class StubConductor:
    """Stub of the client's conductor for a subscription."""

    def release_subscription(self, subscription):
        subscription.is_closed = True
        subscription.images = ()


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


@pytest.fixture
def subscription(stream):
    made = Subscription(StubConductor(), channel="own", stream_id=STREAM_ID, registration_id=9)
    made.add_image(stream.image)
    return made


async def test_an_offer_waits_while_back_pressured(stream):
    stream.limit_to(0)
    offer = asyncio.create_task(AsyncPublication(stream.publication).offer(b"patient"))
    await asyncio.sleep(0.005)
    assert not offer.done()
    stream.limit_to(1 << 20)
    assert await offer == 64


async def test_an_offer_waits_until_there_is_a_subscriber(stream):
    stream.limit_to(0)
    stream.connect(False)
    publication = AsyncPublication(stream.publication)
    waiting = [asyncio.create_task(publication.connected())]
    waiting.append(asyncio.create_task(publication.offer(b"1")))
    await asyncio.sleep(0.005)
    assert not any(task.done() for task in waiting)
    stream.connect(True)
    stream.limit_to(1 << 20)
    assert await asyncio.gather(*waiting) == [None, 64]


async def test_waiting_ends_when_the_publication_is_closed(stream):
    stream.limit_to(0)
    stream.connect(False)
    publication = AsyncPublication(stream.publication)
    waiting = [asyncio.create_task(publication.offer(b"1"))]
    waiting.append(asyncio.create_task(publication.connected()))
    await asyncio.sleep(0.002)
    stream.publication.close()
    for task in waiting:
        with pytest.raises(ClosedError, match="closed by its owner"):
            await task


async def test_a_message_that_can_never_be_written_is_an_error(stream):
    longest = TERM_LENGTH // 8
    with pytest.raises(
        ClientError, match=f"message of {longest + 1} bytes, expected at most {longest}"
    ):
        await AsyncPublication(stream.publication).offer(bytes(longest + 1))


async def test_offers_continue_in_the_next_term(stream):
    publication = AsyncPublication(stream.publication)
    positions = [await publication.offer(bytes(8_000)) for _ in range(10)]
    assert positions == sorted(positions)
    assert positions[-1] > TERM_LENGTH


async def test_whole_messages_are_delivered_until_the_subscription_is_closed(stream, subscription):
    long = bytes(range(256)) * 20
    stream.publication.offer(b"first", reserved_value=5)
    end = stream.write(long)
    seen = []
    async for message in AsyncSubscription(subscription):
        seen.append(message)
        if len(seen) == 2:
            subscription.close()
    assert seen == [
        ReceivedMessage(b"first", SESSION_ID, 64, 5),
        ReceivedMessage(long, SESSION_ID, end, 0),
    ]


async def test_a_silent_stream_lets_other_tasks_run_and_delivers_later_messages(
    stream, subscription
):
    async def first():
        async for message in AsyncSubscription(subscription):
            return message.payload

    reader = asyncio.create_task(first())
    await asyncio.sleep(0.005)
    assert not reader.done()
    stream.write(b"late")
    assert await reader == b"late"


async def test_an_iteration_ends_when_the_client_is_closed_meanwhile(stream, subscription):
    async def drain():
        return [message async for message in AsyncSubscription(subscription)]

    reader = asyncio.create_task(drain())
    await asyncio.sleep(0.002)
    subscription.is_closed = True
    assert await reader == []


async def take(messages, count):
    """Return the payloads of `count` messages, then end the iteration."""
    taken = []
    async for message in messages:
        taken.append(message.payload)
        if len(taken) == count:
            break
    return taken


async def test_messages_left_by_an_iteration_are_delivered_to_the_next_one(stream, subscription):
    stream.write(b"1", b"2", b"3")
    messages = AsyncSubscription(subscription)
    assert await take(messages, 1) == [b"1"]
    assert await asyncio.wait_for(take(messages, 2), 30) == [b"2", b"3"]


async def test_messages_left_by_an_iteration_outlive_the_subscription(stream, subscription):
    stream.write(b"1", b"2", b"3")
    messages = AsyncSubscription(subscription)
    assert await take(messages, 1) == [b"1"]
    subscription.close()
    assert await take(messages, 3) == [b"2", b"3"]
    assert await take(messages, 1) == []


async def test_messages_left_by_an_iteration_are_delivered_before_new_ones(stream, subscription):
    stream.write(b"1", b"2")
    messages = AsyncSubscription(subscription)
    assert await take(messages, 1) == [b"1"]
    stream.write(b"3")
    assert await take(messages, 2) == [b"2", b"3"]
