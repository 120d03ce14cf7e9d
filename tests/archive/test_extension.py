"""Extension: a recording continues exactly at its stop position, or is rejected. Cases E1 to E8."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import summary
from tests.archive.streams import FRAME, IPC, Extended, Recorded, new_stream_id, replayed
from windtunnel.driver.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest,
    ListRecordingRequest,
    StopPositionRequest,
    StopRecordingSubscriptionRequest,
    TruncateRecordingRequest,
)


def extension(recording_id, stream_id):
    return {
        "recording_id": recording_id, "stream_id": stream_id,
        "source_location": SourceLocation.LOCAL, "channel": IPC,
    }  # fmt: skip


@pytest.fixture
def stopped(session):
    """A stopped recording of ten messages."""
    recorded = Recorded(session).send(10)
    recorded.stop()
    return recorded


def test_e1_an_unknown_recording(session):
    error = session.refused(ExtendRecordingRequest, **extension(1 << 40, new_stream_id()))
    assert error == ErrorCode.UNKNOWN_RECORDING


def test_e2_another_stream(session, stopped):
    arguments = extension(stopped.recording_id, new_stream_id())
    assert session.refused(ExtendRecordingRequest, **arguments) == ErrorCode.UNKNOWN_RECORDING


def test_e3_an_active_recording(session):
    recorded = Recorded(session)
    arguments = extension(recorded.recording_id, recorded.stream_id)
    assert session.refused(ExtendRecordingRequest, **arguments) == ErrorCode.ACTIVE_RECORDING
    recorded.stop()


def responses(session, extended, count):
    """Summarize the first responses to an extension."""
    until(lambda: len(session.received(extended.request)) >= count, f"{count} responses")
    return summary(session.received(extended.request))


def test_e4_a_publication_that_leaves_a_gap(session, stopped):
    extended = Extended(stopped, position=stopped.stop_position + 64)
    assert responses(session, extended, 2) == ["OK", "INVALID_EXTENSION"]
    extended.publication.close()
    arguments = {"subscription_id": extended.subscription_id}
    session.ok(StopRecordingSubscriptionRequest, **arguments)


def test_e5_a_publication_of_another_geometry(session, stopped):
    extended = Extended(stopped, mtu=2_048)
    others = ({"term_length": 131_072}, {"initial_term_id": 12_345})
    for count, geometry in enumerate(others, 3):
        responses(session, extended, count - 1)
        extended.publication.close()
        extended.publish(stopped.stop_position, **geometry)
    assert responses(session, extended, 4) == ["OK", *3 * ["INVALID_EXTENSION"]]
    extended.publication.close()
    extended.publish(stopped.stop_position)
    assert responses(session, extended, 5)[4] == "EXTEND"
    extended.stop()


def test_e5_with_auto_stop_the_subscription_ends(session, stopped):
    extended = Extended(stopped, mtu=2_048, auto_stop=True)
    assert responses(session, extended, 2) == ["OK", "INVALID_EXTENSION"]
    arguments = {"subscription_id": extended.subscription_id}
    error = session.refused(StopRecordingSubscriptionRequest, **arguments)
    assert error == ErrorCode.UNKNOWN_SUBSCRIPTION
    extended.publication.close()


def test_e6_an_exact_continuation(session, stopped):
    before = session.request(ListRecordingRequest, recording_id=stopped.recording_id)
    extended = Extended(stopped)
    signal = session.signal(RecordingSignal.EXTEND, extended.request)
    assert (signal.position, signal.recording_id) == (10 * FRAME, stopped.recording_id)
    assert summary(session.received(extended.request)) == ["OK", "EXTEND"]
    after = session.request(ListRecordingRequest, recording_id=stopped.recording_id)
    assert (after.stop_position, after.stop_timestamp) == (-1, -1)
    assert after.session_id == extended.publication.session_id != before.session_id
    for name in ("original_channel", "stripped_channel", "source_identity", "start_position"):
        assert getattr(after, name) == getattr(before, name)
    extended.send(5)
    assert extended.stop().position == 15 * FRAME


def test_e7_a_replay_of_an_extended_recording(session, stopped):
    extended = Extended(stopped).send(120)
    extended.stop()
    messages = replayed(session, stopped.recording_id)
    assert len(messages) == 130
    assert messages == extended.sent


def test_e8_extension_after_truncation(session, stopped):
    session.ok(TruncateRecordingRequest, recording_id=stopped.recording_id, position=4 * FRAME)
    refused = Extended(stopped, position=10 * FRAME)
    assert responses(session, refused, 2) == ["OK", "INVALID_EXTENSION"]
    refused.publication.close()
    refused.publish(4 * FRAME)
    assert session.signal(RecordingSignal.EXTEND, refused.request).position == 4 * FRAME
    refused.send(3)
    refused.stop()
    arguments = {"recording_id": stopped.recording_id}
    assert session.ok(StopPositionRequest, **arguments) == 7 * FRAME
    assert replayed(session, stopped.recording_id) == stopped.sent[:4] + refused.sent[10:]
