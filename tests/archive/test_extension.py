"""Extension: a recording continues exactly at its stop position, or is rejected. Cases E1 to E8."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import shape
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
def stopped(talk):
    """A stopped recording of ten messages."""
    recorded = Recorded(talk).send(10)
    recorded.stop()
    return recorded


def test_e1_an_unknown_recording(talk):
    refusal = talk.refused(ExtendRecordingRequest, **extension(1 << 40, new_stream_id()))
    assert refusal == ErrorCode.UNKNOWN_RECORDING


def test_e2_another_stream(talk, stopped):
    asked = extension(stopped.recording_id, new_stream_id())
    assert talk.refused(ExtendRecordingRequest, **asked) == ErrorCode.UNKNOWN_RECORDING


def test_e3_an_active_recording(talk):
    recorded = Recorded(talk)
    asked = extension(recorded.recording_id, recorded.stream_id)
    assert talk.refused(ExtendRecordingRequest, **asked) == ErrorCode.ACTIVE_RECORDING
    recorded.stop()


def answers(talk, extended, count):
    """Summarize the first responses to an extension."""
    until(lambda: len(talk.heard(extended.request)) >= count, f"{count} answers")
    return shape(talk.heard(extended.request))


def test_e4_a_publication_that_leaves_a_hole(talk, stopped):
    extended = Extended(stopped, position=stopped.stop_position + 64)
    assert answers(talk, extended, 2) == ["OK", "INVALID_EXTENSION"]
    extended.publication.close()
    asked = {"subscription_id": extended.subscription_id}
    talk.ok(StopRecordingSubscriptionRequest, **asked)


def test_e5_a_publication_of_another_geometry(talk, stopped):
    extended = Extended(stopped, mtu=2_048)
    others = ({"term_length": 131_072}, {"initial_term_id": 12_345})
    for count, geometry in enumerate(others, 3):
        answers(talk, extended, count - 1)
        extended.publication.close()
        extended.publish(stopped.stop_position, **geometry)
    assert answers(talk, extended, 4) == ["OK", *3 * ["INVALID_EXTENSION"]]
    extended.publication.close()
    extended.publish(stopped.stop_position)
    assert answers(talk, extended, 5)[4] == "EXTEND"
    extended.stop()


def test_e5_with_auto_stop_nothing_better_is_waited_for(talk, stopped):
    extended = Extended(stopped, mtu=2_048, auto_stop=True)
    assert answers(talk, extended, 2) == ["OK", "INVALID_EXTENSION"]
    asked = {"subscription_id": extended.subscription_id}
    refusal = talk.refused(StopRecordingSubscriptionRequest, **asked)
    assert refusal == ErrorCode.UNKNOWN_SUBSCRIPTION
    extended.publication.close()


def test_e6_an_exact_continuation(talk, stopped):
    before = talk.ask(ListRecordingRequest, recording_id=stopped.recording_id)
    extended = Extended(stopped)
    signal = talk.signal(RecordingSignal.EXTEND, extended.request)
    assert (signal.position, signal.recording_id) == (10 * FRAME, stopped.recording_id)
    assert shape(talk.heard(extended.request)) == ["OK", "EXTEND"]
    after = talk.ask(ListRecordingRequest, recording_id=stopped.recording_id)
    assert (after.stop_position, after.stop_timestamp) == (-1, -1)
    assert after.session_id == extended.publication.session_id != before.session_id
    for name in ("original_channel", "stripped_channel", "source_identity", "start_position"):
        assert getattr(after, name) == getattr(before, name)
    extended.send(5)
    assert extended.stop().position == 15 * FRAME


def test_e7_a_replay_passes_the_join(talk, stopped):
    extended = Extended(stopped).send(120)
    extended.stop()
    messages = replayed(talk, stopped.recording_id)
    assert len(messages) == 130
    assert messages == extended.sent


def test_e8_extension_after_truncation(talk, stopped):
    talk.ok(TruncateRecordingRequest, recording_id=stopped.recording_id, position=4 * FRAME)
    refused = Extended(stopped, position=10 * FRAME)
    assert answers(talk, refused, 2) == ["OK", "INVALID_EXTENSION"]
    refused.publication.close()
    refused.publish(4 * FRAME)
    assert talk.signal(RecordingSignal.EXTEND, refused.request).position == 4 * FRAME
    refused.send(3)
    refused.stop()
    asked = {"recording_id": stopped.recording_id}
    assert talk.ok(StopPositionRequest, **asked) == 7 * FRAME
    assert replayed(talk, stopped.recording_id) == stopped.sent[:4] + refused.sent[10:]
