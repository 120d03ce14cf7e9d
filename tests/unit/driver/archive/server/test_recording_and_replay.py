"""An archive from start to end: connect, record, list, replay."""

from tests.unit.driver.archive.server.own_archive import Ok
from tests.unit.driver.archive.server.own_stream import IPC, STREAM
from windtunnel.driver.archive.protocol.codes import BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingsRequest,
    ReplayRequest,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.client.image.assembler import FragmentAssembler

MESSAGES = [bytes([number % 251]) * 1000 for number in range(300)]


def test_published_messages_are_recorded_listed_and_replayed(env, client):
    started = client.request(
        StartRecordingRequest2, stream_id=STREAM, source_location=SourceLocation.LOCAL,
        auto_stop=BooleanType.FALSE, channel=IPC,
    )  # fmt: skip
    subscription_id = started.relevant_id
    assert not list(env.directory.glob("*.rec"))
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    env.until(client.signals)
    assert client.signals() == [("START", 0, 0)]
    assert (env.directory / "0-0.rec").stat().st_size == 131_072
    for message in MESSAGES:
        env.until(lambda message=message: publication.offer(message) > 0)
    end = publication.position
    counter = next(each for each in client.aeron.counters if each.type_id == 100)
    env.until(lambda: client.aeron.counters.value(counter.counter_id) == end)
    stopped = client.request(StopRecordingSubscriptionRequest, subscription_id=subscription_id)
    assert stopped == Ok(0)
    env.until(lambda: ("STOP", 0, end) in client.signals())
    correlation_id = client.send(ListRecordingsRequest, from_recording_id=0, record_count=10)
    env.until(lambda: client.response_to(correlation_id))
    found = [each for each in client.received if isinstance(each, RecordingDescriptor)]
    assert [(each.recording_id, each.stop_position) for each in found] == [(0, end)]
    seen = []
    assembler = FragmentAssembler(lambda payload, header: seen.append(bytes(payload)))
    replayed = client.aeron.add_subscription(IPC, 5)
    response = client.request(
        ReplayRequest, recording_id=0, position=-1, length=-1, replay_stream_id=5,
        file_io_max_length=-1, replay_token=-1, replay_channel=IPC,
    )  # fmt: skip
    assert response.error_message == ""

    def done():
        replayed.poll(assembler, 50)
        return len(seen) == len(MESSAGES)

    env.until(done)
    assert seen == MESSAGES
    (image,) = replayed.images
    assert image.session_id & 0xFFFFFFFF == response.relevant_id & 0xFFFFFFFF
    env.until(lambda: image.is_end_of_stream)
    assert env.errors == []
