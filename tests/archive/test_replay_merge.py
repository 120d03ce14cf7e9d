"""Replay merge: from replay to live stream in one image, with no message lost or duplicated."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import LOCAL
from tests.archive.streams import Recorded
from tests.peer.ports import free_port
from windtunnel.driver.archive.client import (
    AeronArchive,
    ArchiveContext,
    ArchiveError,
    MergeState,
    ReplayMerge,
)
from windtunnel.driver.archive.protocol.codes import SourceLocation
from windtunnel.driver.archive.protocol.requests import StartPositionRequest
from windtunnel.driver.client import FragmentAssembler


@pytest.fixture
def client(archive):
    context = ArchiveContext(control_request_channel=LOCAL, control_response_channel=LOCAL)
    with AeronArchive.connect(archive.aeron, context) as made:
        yield made


@pytest.fixture
def live(session):
    """A stream with several subscribers, recorded at its source."""
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length=64k|fc=max"
    recorded = Recorded(session, channel, location=SourceLocation.LOCAL)
    recorded.control = control
    yield recorded
    recorded.stop()


class Merging:
    """A replay merge and the messages that were read from it."""

    def __init__(self, client, live, *, replay_endpoint="127.0.0.1:0", recording_id=None):
        session_id = live.publication.session_id
        self.subscription = client.aeron.add_subscription(
            f"aeron:udp?control-mode=manual|session-id={session_id}", live.stream_id
        )
        self.messages = []
        self._assembler = FragmentAssembler(lambda payload, _: self.messages.append(bytes(payload)))
        self.merge = ReplayMerge(
            self.subscription, client,
            replay_channel=f"aeron:udp?session-id={session_id}",
            replay_destination=f"aeron:udp?endpoint={replay_endpoint}",
            live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control={live.control}",
            recording_id=live.recording_id if recording_id is None else recording_id,
            start_position=0,
            progress_timeout_ns=60_000_000_000,
        )  # fmt: skip

    def poll(self):
        self.merge.poll(self._assembler, 64)
        return self.merge.is_merged

    def close(self):
        self.merge.close()
        self.subscription.close()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("port", ["wildcard", "fixed"])
def test_a_late_reader_reaches_the_live_stream(client, live, port):
    live.send(300)
    endpoint = "127.0.0.1:0" if port == "wildcard" else f"127.0.0.1:{free_port()}"
    merging = Merging(client, live, replay_endpoint=endpoint)

    def is_merged():
        # The reader must read during sending, because the window is shorter than the stream.
        if live.number < 2_000:
            live.send(1)
        return merging.poll()

    until(is_merged, "the merge")
    for _ in range(100):
        live.send(1)
        merging.poll()
    until(lambda: merging.poll() and len(merging.messages) >= live.number, "the live messages")
    assert merging.messages == live.sent
    assert merging.merge.is_live_added
    assert merging.merge.image.active_transport_count >= 1
    merging.close()
    assert merging.merge.state is MergeState.CLOSED


def test_a_merge_of_an_unknown_recording_fails(client, live):
    merging = Merging(client, live, recording_id=1_000_200)
    with pytest.raises(ArchiveError, match="UNKNOWN_RECORDING"):
        until(merging.poll, "the failure")
    assert merging.merge.has_failed
    assert merging.merge.do_work() == 0
    merging.close()


def test_any_error_on_the_session_fails_a_merge(client, live):
    live.send(10)
    merging = Merging(client, live)
    for _ in client.session.begin(StartPositionRequest, {"recording_id": 1_000_201}):
        pass
    client.session.end(client.session.last_correlation_id)
    with pytest.raises(ArchiveError, match="UNKNOWN_RECORDING"):
        until(merging.poll, "the failure")
    assert merging.merge.has_failed
    merging.close()


@pytest.mark.parametrize(
    ("subscription", "replay"),
    [
        ("aeron:ipc", "aeron:udp?session-id=5"),
        ("aeron:udp?control-mode=manual|session-id=5", "aeron:ipc"),
        ("aeron:udp?endpoint=127.0.0.1:0", "aeron:udp?session-id=5"),
    ],
)
def test_invalid_channels_are_rejected(client, subscription, replay):
    with (
        client.aeron.add_subscription(subscription, 999) as made,
        pytest.raises(ValueError, match="expected"),
    ):
        ReplayMerge(
            made, client, replay_channel=replay,
            replay_destination="aeron:udp?endpoint=127.0.0.1:0",
            live_destination="aeron:udp?endpoint=127.0.0.1:0",
            recording_id=0, start_position=0,
        )  # fmt: skip
