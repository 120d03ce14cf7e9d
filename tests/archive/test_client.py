"""Every call of the archive client, blocking and asyncio, and unsolicited messages."""

import asyncio

import pytest

from tests.archive.archives import SEGMENT, until
from tests.archive.conversation import ANY_PORT, LOCAL
from tests.archive.streams import FRAME, IPC, Reader, message, new_stream_id, positioned
from tests.peer.ports import free_port
from windtunnel.driver.archive.client import (
    AeronArchive,
    ArchiveClosedError,
    ArchiveContext,
    ArchiveError,
    AsyncAeronArchive,
    RecordingEventHandlers,
    RecordingEvents,
    ReplayParams,
    ReplicationParams,
    recording_counters,
    segment_base_position,
    session_id_of,
)
from windtunnel.driver.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from windtunnel.driver.channel.uri import InvalidChannelError

UNKNOWN = 1_000_100


class Client(AeronArchive):
    """A client that keeps all signals that it received."""

    @classmethod
    def of(cls, archive, **settings):
        signals = []
        settings = {
            "control_request_channel": LOCAL, "control_response_channel": LOCAL,
            "on_recording_signal": signals.append,
        } | settings  # fmt: skip
        made = cls.connect(archive.aeron, ArchiveContext(**settings))
        made.signals = signals
        return made

    def until_signal(self, signal, recording_id):
        def is_there():
            self.poll_for_recording_signals()
            return any(
                (each.signal, each.recording_id) == (signal, recording_id) for each in self.signals
            )

        until(is_there, f"{signal.name} of {recording_id}")


@pytest.fixture(params=["ipc", "udp", "response"])
def any_client(request, archive):
    """A client with each kind of control channel."""
    channels = {
        "ipc": (LOCAL, LOCAL),
        "udp": (archive.control_channel, ANY_PORT),
        "response": (
            archive.control_channel,
            f"aeron:udp?control-mode=response|control=127.0.0.1:{free_port()}",
        ),
    }
    request_channel, response_channel = channels[request.param]
    with Client.of(
        archive, control_request_channel=request_channel, control_response_channel=response_channel
    ) as made:
        yield made


@pytest.fixture
def client(archive):
    with Client.of(archive) as made:
        yield made


def write(publication, count, first=0):
    """Publish messages. Returns them."""
    sent = [message(number) for number in range(first, first + count)]
    for each in sent:
        until(lambda each=each: publication.offer(each) > 0, "publishing")
    return sent


def recorded(client, count, channel=IPC):
    """Return a live recording: its id, its publication, the messages sent."""
    publication = client.add_recorded_exclusive_publication(channel, new_stream_id())
    session_id, stream_id = publication.session_id, publication.stream_id
    find = (0, "aeron:ipc", stream_id, session_id)
    until(lambda: client.find_last_matching_recording(*find) >= 0, "the recording")
    recording_id = client.find_last_matching_recording(*find)
    sent = write(publication, count)
    reached = publication.position
    until(lambda: client.recording_position(recording_id) == reached, "the recorded position")
    return recording_id, publication, sent


def read_all(subscription):
    """Return all messages of a subscription's single image."""
    return Reader.of(subscription).until_end()


def test_a_recording_from_start_to_stop(any_client):
    client = any_client
    recording_id, publication, sent = recorded(client, 150)
    assert client.start_position(recording_id) == 0
    assert client.stop_position(recording_id) == -1
    assert client.max_recorded_position(recording_id) == publication.position
    counter = recording_counters.find_by_recording(
        client.aeron.counters, recording_id, client.archive_id
    )
    assert counter.session_id == publication.session_id
    assert client.aeron.counters.value(counter.counter_id) == publication.position
    client.stop_recording_publication(publication)
    client.until_signal(RecordingSignal.STOP, recording_id)
    assert client.stop_position(recording_id) == publication.position
    assert client.recording_position(recording_id) == -1
    found = []
    assert client.list_recording(recording_id, found.append) == 1
    assert found[0].session_id == publication.session_id
    with client.replay(recording_id, "aeron:ipc", new_stream_id()) as subscription:
        assert read_all(subscription) == sent
    publication.close()


def test_listings(client):
    first, publication, _ = recorded(client, 1)
    second, other, _ = recorded(client, 1, f"{IPC}|alias=other")
    found = []
    assert client.list_recordings(first, 10, found.append) == 2
    assert [each.recording_id for each in found] == [first, second]
    assert client.list_recordings(first, 1, found.append) == 1
    assert client.list_recordings_for_uri(first, 10, "=other", other.stream_id, found.append) == 1
    assert client.list_recording(UNKNOWN, found.append) == 0
    assert client.list_recordings(UNKNOWN, 10, found.append) == 0
    assert len(found) == 4
    subscriptions = []
    arguments = (0, 10, "", publication.stream_id, subscriptions.append)
    assert client.list_recording_subscriptions(*arguments) == 1
    assert subscriptions[0].stream_id == publication.stream_id
    assert client.list_recording_subscriptions(0, 1, "", None, subscriptions.append) == 1
    assert client.list_recording_subscriptions(UNKNOWN, 1, "", None, subscriptions.append) == 0
    with pytest.raises(ValueError, match="count=0"):
        client.list_recordings(0, 0, found.append)
    assert client.request_archive_id() == client.archive_id
    for each in (publication, other):
        client.stop_recording_publication(each)
        each.close()


def test_starting_and_stopping(client):
    stream_id = new_stream_id()
    subscription_id = client.start_recording(IPC, stream_id, SourceLocation.LOCAL)
    with pytest.raises(ArchiveError, match="ACTIVE_SUBSCRIPTION") as error:
        client.start_recording(IPC, stream_id)
    assert error.value.code == ErrorCode.ACTIVE_SUBSCRIPTION
    client.stop_recording_subscription(subscription_id)
    assert not client.try_stop_recording_subscription(subscription_id)
    client.start_recording(IPC, stream_id, auto_stop=True)
    assert client.try_stop_recording(IPC, stream_id)
    assert not client.try_stop_recording(IPC, stream_id)
    with pytest.raises(ArchiveError) as error:
        client.stop_recording(IPC, stream_id)
    assert error.value.code == ErrorCode.UNKNOWN_SUBSCRIPTION
    recording_id, publication, _ = recorded(client, 1)
    assert client.stop_recording_by_identity(recording_id)
    client.until_signal(RecordingSignal.STOP, recording_id)
    assert not client.stop_recording_by_identity(recording_id)
    publication.close()
    with pytest.raises(ArchiveError):
        client.stop_recording_by_identity(UNKNOWN)


def test_an_existing_publication_is_not_recorded(client):
    stream_id = new_stream_id()
    first = client.add_recorded_publication(IPC, stream_id)
    with pytest.raises(ArchiveError, match="already exists"):
        client.add_recorded_publication(IPC, stream_id)
    assert not first.is_closed
    client.stop_recording_publication(first)
    first.close()


def test_extending(client):
    recording_id, publication, sent = recorded(client, 10)
    client.stop_recording_publication(publication)
    client.until_signal(RecordingSignal.STOP, recording_id)
    channel = positioned(10 * FRAME, publication.initial_term_id)
    publication.close()
    subscription_id = client.extend_recording(recording_id, IPC, publication.stream_id)
    with client.aeron.add_exclusive_publication(channel, publication.stream_id) as following:
        client.until_signal(RecordingSignal.EXTEND, recording_id)
        sent += write(following, 5, first=10)
        until(lambda: client.recording_position(recording_id) == 15 * FRAME, "the extension")
        client.stop_recording_subscription(subscription_id)
    client.until_signal(RecordingSignal.STOP, recording_id)
    with client.replay(recording_id, "aeron:ipc", new_stream_id()) as subscription:
        assert read_all(subscription) == sent


def test_replays(client):
    recording_id, publication, sent = recorded(client, 20)
    stream_id = new_stream_id()
    started = client.start_replay(recording_id, "aeron:ipc", stream_id)
    reader = Reader(client.aeron, f"aeron:ipc?session-id={session_id_of(started)}", stream_id)
    reader.until_count(20)
    client.stop_replay(started)
    until(lambda: reader.poll() and reader.image.is_closed, "the end of the replay")
    reader.close()
    part = ReplayParams(position=FRAME, length=3 * FRAME, file_io_max_length=64 * 1024)
    with client.replay(recording_id, "aeron:ipc", stream_id, part) as subscription:
        assert read_all(subscription) == sent[1:4]
    with client.aeron.add_counter(1_101, b"", "bound") as bound:
        bound.set(4 * FRAME)
        params = ReplayParams(position=0, bounding_limit_counter_id=bound.counter_id)
        started = client.start_replay(recording_id, "aeron:ipc", stream_id, params)
        reader = Reader(client.aeron, f"aeron:ipc?session-id={session_id_of(started)}", stream_id)
        assert reader.until_count(4) == sent[:4]
        client.stop_all_replays(recording_id)
        until(lambda: reader.poll() and reader.image.is_closed, "the end of the replay")
        reader.close()
    with pytest.raises(ArchiveError, match="INVALID_POSITION"):
        client.replay(recording_id, "aeron:ipc", stream_id, ReplayParams(position=FRAME * 100))
    client.stop_recording_publication(publication)
    publication.close()


def test_a_replay_over_a_response_channel(archive):
    channel = f"aeron:udp?control-mode=response|control=127.0.0.1:{free_port()}"
    with Client.of(
        archive, control_request_channel=archive.control_channel, control_response_channel=ANY_PORT
    ) as client:
        recording_id, publication, sent = recorded(client, 20)
        client.stop_recording_publication(publication)
        publication.close()
        with client.replay(recording_id, channel, new_stream_id()) as subscription:
            assert read_all(subscription) == sent
        with pytest.raises(ArchiveError, match="subscription_registration_id"):
            client.start_replay(recording_id, channel, new_stream_id())
        with pytest.raises(ArchiveError):
            client.replay(UNKNOWN, channel, new_stream_id())


def test_segments_truncation_and_migration(client):
    recording_id, publication, sent = recorded(client, 300, positioned(0))
    assert segment_base_position(0, publication.position, 65_536, SEGMENT) == 2 * SEGMENT
    client.detach_segments(recording_id, SEGMENT)
    assert client.attach_segments(recording_id) == 1
    client.detach_segments(recording_id, SEGMENT)
    assert client.delete_detached_segments(recording_id) == 1
    client.until_signal(RecordingSignal.DELETE, recording_id)
    assert client.purge_segments(recording_id, 2 * SEGMENT) == 1
    client.until_signal(RecordingSignal.DELETE, recording_id)
    client.stop_recording_publication(publication)
    client.until_signal(RecordingSignal.STOP, recording_id)
    client.signals.clear()
    assert client.truncate_recording(recording_id, 2 * SEGMENT + 3 * FRAME) >= 0
    client.until_signal(RecordingSignal.DELETE, recording_id)
    client.update_channel(recording_id, f"{IPC}|alias=renamed")
    assert client.find_last_matching_recording(
        0, "=renamed", publication.stream_id, publication.session_id
    ) == recording_id  # fmt: skip
    with client.replay(recording_id, "aeron:ipc", new_stream_id()) as subscription:
        assert read_all(subscription) == sent[248:251]
    with pytest.raises(ArchiveError, match="MigrateSegmentsRequest"):
        client.migrate_segments(recording_id, recording_id)
    client.signals.clear()
    client.stop_all_replays(recording_id)
    assert client.purge_recording(recording_id) >= 1
    client.until_signal(RecordingSignal.DELETE, recording_id)
    for change in (client.update_channel, client.truncate_recording):
        with pytest.raises(ArchiveError) as error:
            change(recording_id, {client.update_channel: IPC}.get(change, 0))
        assert error.value.code == ErrorCode.UNKNOWN_RECORDING
    with pytest.raises(InvalidChannelError):
        client.update_channel(recording_id, "aeron:")
    publication.close()


def test_replication(client, source):
    with Client.of(source) as other:
        recording_id, publication, sent = recorded(other, 20)
        arguments = (recording_id, source.control_channel, 10)
        replication_id = client.replicate(*arguments)
        until(
            lambda: _has_signal(client, replication_id, RecordingSignal.EXTEND), "the copy's start"
        )
        client.stop_replication(replication_id)
        until(lambda: _has_signal(client, replication_id, RecordingSignal.STOP), "the copy's end")
        assert not client.try_stop_replication(replication_id)
        copy_id = next(
            each.recording_id for each in client.signals if each.correlation_id == replication_id
        )
        other.stop_recording_publication(publication)
        publication.close()
        rest = client.replicate(*arguments, ReplicationParams(dst_recording_id=copy_id))
        until(lambda: _has_signal(client, rest, RecordingSignal.REPLICATE_END), "the rest")
        until(lambda: client.stop_position(copy_id) == 20 * FRAME, "the end of the copy")
    with client.replay(copy_id, "aeron:ipc", new_stream_id()) as subscription:
        assert read_all(subscription) == sent
    with pytest.raises(ValueError, match="remove one of them"):
        client.replicate(
            *arguments, ReplicationParams(live_destination="aeron:ipc", replication_session_id=7)
        )


def _has_signal(client, correlation_id, signal):
    client.poll_for_recording_signals()
    return any(
        (each.correlation_id, each.signal) == (correlation_id, signal) for each in client.signals
    )


@pytest.mark.full
def test_an_unsolicited_error_can_be_polled(short_timeout_archive):
    with Client.of(short_timeout_archive) as client:
        recording_id, publication, _ = recorded(client, 1)
        client.start_replay(recording_id, "aeron:ipc", new_stream_id())
        text = until(client.poll_for_error_response, "the error of the replay without a subscriber")
        assert "GENERIC" in text
        client.check_for_error_response()
        client.start_replay(recording_id, "aeron:ipc", new_stream_id())
        with pytest.raises(ArchiveError, match="GENERIC"):
            until(client.check_for_error_response, "the error of the replay without a subscriber")
        publication.close()


@pytest.mark.full
def test_an_unsolicited_error_is_passed_to_the_handler(short_timeout_archive):
    errors = []
    with Client.of(short_timeout_archive, error_handler=errors.append) as client:
        recording_id, publication, _ = recorded(client, 1)
        client.start_replay(recording_id, "aeron:ipc", new_stream_id())
        until(lambda: client.start_position(recording_id) == 0 and errors, "the handler's call")
        assert errors[0].code == ErrorCode.GENERIC
        publication.close()


@pytest.mark.full
def test_a_challenge_and_rejected_credentials(authenticated_archive):
    challenges = []

    def response(challenge):
        challenges.append(challenge)
        return b"the word"

    with Client.of(authenticated_archive, credentials=b"guest", on_challenge=response) as client:
        assert challenges == [b"which word?"]
        assert client.request_archive_id() == client.archive_id
    for credentials in (b"stranger", b"guest"):
        with pytest.raises(ArchiveError) as error:
            Client.of(
                authenticated_archive, credentials=credentials, on_challenge=lambda _: b"a guess"
            )
        assert error.value.code == ErrorCode.AUTHENTICATION_REJECTED


def test_calls_of_a_closed_client_fail(archive):
    client = Client.of(archive)
    client.close()
    client.close()
    assert client.is_closed
    for call in (client.request_archive_id, client.poll_for_recording_signals, client.keep_alive):
        with pytest.raises(ArchiveClosedError):
            call()


def test_calls_fail_after_the_archive_is_killed(own_archive):
    archive = own_archive().start()
    client = Client.of(archive, message_timeout_ns=30_000_000_000)
    archive.kill_while_connected()
    with pytest.raises(ArchiveError):
        client.request_archive_id()
    archive.aeron.close()
    with pytest.raises(ArchiveClosedError):
        client.request_archive_id()
    client.close()


def test_recording_events(own_archive):
    channel = f"aeron:udp?control-mode=dynamic|control=127.0.0.1:{free_port()}"
    archive = own_archive({
        "aeron.archive.recording.events.enabled": "true",
        "aeron.archive.recording.events.channel": channel,
    }).start()  # fmt: skip
    control = channel.rpartition("=")[2]
    started, progress, stopped = [], [], []
    subscription = archive.aeron.add_subscription(
        f"aeron:udp?endpoint=127.0.0.1:0|control={control}|control-mode=dynamic", 30
    )
    handlers = RecordingEventHandlers(
        on_started=started.append, on_progress=progress.append, on_stopped=stopped.append
    )
    events = RecordingEvents(subscription, handlers)
    until(lambda: subscription.is_connected, "the stream of events")

    def poll_events():
        events.poll()
        return True

    with Client.of(archive) as client:
        recording_id, publication, _ = recorded(client, 10)
        until(
            lambda: poll_events() and progress and progress[-1].position == 10 * FRAME, "progress"
        )
        client.stop_recording_publication(publication)
        until(lambda: poll_events() and stopped, "the end")
    assert [(each.recording_id, each.stream_id, each.channel) for each in started] == [
        (recording_id, publication.stream_id, f"{IPC}|session-id={publication.session_id}")
    ]
    assert [(each.recording_id, each.stop_position) for each in stopped] == [
        (recording_id, 10 * FRAME)
    ]


async def test_the_asyncio_client(archive):
    context = ArchiveContext(control_request_channel=LOCAL, control_response_channel=LOCAL)
    async with await AsyncAeronArchive.connect(archive.aeron, context) as client:
        stream_id = new_stream_id()
        publication = await client.add_recorded_exclusive_publication(IPC, stream_id)
        sent = [message(number) for number in range(80)]
        for each in sent:
            await publication.offer(each)
        own = publication.publication
        recording_id = -1
        while recording_id < 0:
            recording_id = await client.find_last_matching_recording(
                0, "", stream_id, own.session_id
            )
        while await client.recording_position(recording_id) < own.position:
            await asyncio.sleep(0)
        await client.stop_recording_publication(own)
        found = []
        # Several tasks send requests at once, and each receives its own response.
        responses = await asyncio.gather(
            client.start_position(recording_id), client.request_archive_id(),
            client.list_recording(recording_id, found.append), client.stop_position(UNKNOWN),
            return_exceptions=True,
        )  # fmt: skip
        assert responses[:3] == [0, client.archive_id, 1]
        assert responses[3].code == ErrorCode.UNKNOWN_RECORDING
        subscription = await client.replay(recording_id, "aeron:ipc", new_stream_id())
        received = []
        async for each in subscription:
            received.append(each.payload)
            if len(received) == 80:
                break
        assert received == sent
        subscription.subscription.close()
        own.close()
    assert client.is_closed
