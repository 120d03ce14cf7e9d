"""Hostile messages: all templates, equal for equal seeds, and detection of guarded recordings."""

import random

import pytest

from windtunnel.driver.archive.protocol.codec import decode, encode
from windtunnel.driver.archive.protocol.requests import (
    PurgeRecordingRequest,
    StartPositionRequest,
    StopAllReplaysRequest,
)
from windtunnel.harness.fuzz.archive.messages import (
    ANY,
    READABLE,
    REQUESTS,
    SESSION,
    SESSION_BYTES,
    any_request,
    hostile_message,
    names_recording,
)


def messages(seed, count=600):
    chance = random.Random(seed)
    return [hostile_message(chance) for _ in range(count)]


def test_equal_seeds_make_equal_messages():
    assert messages(3) == messages(3)
    assert messages(3) != messages(4)


def test_all_templates_are_sent():
    templates = {content[2:4] for content in messages(3, 3_000) if len(content) >= 4}
    assert templates >= {encode(any_request(random.Random(1), kind, 1))[2:4] for kind in READABLE}
    assert set(REQUESTS) <= set(ANY)


def test_requests_contain_the_placeholder_of_the_session():
    content = encode(any_request(random.Random(1), StartPositionRequest, SESSION))
    assert SESSION_BYTES in content
    assert decode(content).control_session_id == SESSION


@pytest.mark.parametrize("kind", [PurgeRecordingRequest, StopAllReplaysRequest])
def test_a_request_for_a_guarded_recording_is_recognised(kind):
    content = encode(kind(control_session_id=1, correlation_id=2, recording_id=7))
    assert names_recording(content, {6, 7})
    assert not names_recording(content, {6, 8})
    assert not names_recording(content[:9], {7})
