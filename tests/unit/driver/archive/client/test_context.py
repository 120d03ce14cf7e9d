"""Settings of an archive client: defaults, bounds, environment variables, derived channels."""

import pytest

from windtunnel.driver.archive.client import ArchiveContext, from_environment
from windtunnel.driver.archive.client.control_channels import (
    is_response_channel,
    with_correlation,
    with_defaults,
    with_session,
)
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri

GIVEN = {
    "control_request_channel": "aeron:udp?endpoint=localhost:8010",
    "control_response_channel": "aeron:udp?endpoint=localhost:0",
}


def test_defaults():
    context = ArchiveContext(**GIVEN).conclude()
    assert (context.control_request_stream_id, context.control_response_stream_id) == (10, 20)
    assert (context.message_timeout_ns, context.message_retry_attempts) == (10_000_000_000, 3)
    assert context.recording_events_stream_id == 30
    assert context.on_challenge(b"who?") == b""


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"control_request_channel": ""}, "control_request_channel must be set"),
        ({"control_response_channel": "pigeon"}, "control_response_channel: "),
        ({"control_term_buffer_length": 65_537}, "65537, but must be a power of two"),
        ({"control_term_buffer_length": 32_768}, "32768, but must be a power of two"),
        ({"message_retry_attempts": 0}, "message_retry_attempts is 0, but must be at least 1"),
        ({"message_timeout_ns": 999_999}, "must be at least 1000000"),
        ({"client_name": 101 * "x"}, "101 characters, but may have at most 100"),
    ],
)
def test_a_setting_out_of_bounds_is_rejected(settings, text):
    with pytest.raises(ConfigurationError, match=text):
        ArchiveContext(**GIVEN | settings).conclude()
    nearest = {"control_term_buffer_length": 65_536, "message_retry_attempts": 1,
               "message_timeout_ns": 1_000_000, "client_name": 100 * "x"}  # fmt: skip
    ArchiveContext(**GIVEN | nearest).conclude()


def test_all_invalid_settings_are_reported_together():
    with pytest.raises(ConfigurationError, match=r"request_channel.*response_channel.*attempts"):
        ArchiveContext(message_retry_attempts=0).conclude()


def test_settings_are_read_from_the_environment():
    environment = {
        "AERON_ARCHIVE_CONTROL_CHANNEL": "aeron:udp?endpoint=localhost:1",
        "AERON_ARCHIVE_CONTROL_STREAM_ID": "11",
        "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH": "128k",
        "AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE": "false",
        "AERON_ARCHIVE_MESSAGE_TIMEOUT": "3s",
        "AERON_ARCHIVE_CLIENT_NAME": "mine",
    }
    context = from_environment(environment, control_request_stream_id=12)
    assert context.control_request_channel == "aeron:udp?endpoint=localhost:1"
    assert context.control_request_stream_id == 12
    assert context.control_term_buffer_length == 131_072
    assert context.control_term_buffer_sparse is False
    assert (context.message_timeout_ns, context.client_name) == (3_000_000_000, "mine")
    with pytest.raises(ConfigurationError, match="AERON_ARCHIVE_MESSAGE_TIMEOUT=soon"):
        from_environment({"AERON_ARCHIVE_MESSAGE_TIMEOUT": "soon"})
    with pytest.raises(ConfigurationError, match="SPARSE=perhaps: expected true or false"):
        from_environment({"AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE": "perhaps"})


def test_explicit_channel_parameters_override_the_defaults():
    context = ArchiveContext(**GIVEN)
    channel = with_defaults("aeron:ipc?mtu=4k", context)
    assert dict(channel.params) == {"mtu": "4k", "term-length": "65536", "sparse": "true"}
    bound = with_session(channel, -5)
    assert bound.int32("session-id") == -5
    correlated = uri.parse(with_correlation(bound, 99))
    assert "session-id" not in correlated
    assert correlated.get("response-correlation-id") == "99"
    assert is_response_channel("aeron:udp?control-mode=response|control=localhost:1")
    assert not is_response_channel("aeron:udp?control-mode=manual")
