"""The settings of an archive client, with their defaults, limits and environment variables.

    credentials    for the connect request         () -> bytes
    challenge      the response to a challenge     (bytes) -> bytes

A context is an immutable value. `conclude` checks all settings, and `from_environment` reads them
from environment variables.
Source: archive-protocol 2.2, 2.3, 8.2; Aeron 1.53.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.archive.client.errors import ArchiveError
from windtunnel.driver.archive.protocol.responses import RecordingSignalEvent
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri
from windtunnel.driver.channel.uri_value import parse_duration_ns, parse_int32, parse_size
from windtunnel.driver.settings.kinds import parse_flag
from windtunnel.driver.settings.variables import Reader, read_variables, text

ErrorHandler = Callable[[ArchiveError], object]
SignalHandler = Callable[[RecordingSignalEvent], object]
ChallengeHandler = Callable[[bytes], bytes]

CLIENT_NAME_LENGTH_MAX = 100
TERM_LENGTH_MIN, TERM_LENGTH_MAX = 64 * 1024, 1 << 30


def no_challenge(challenge: bytes) -> bytes:
    """Respond to a challenge with empty credentials. This is the default handler."""
    return b""


@dataclass(frozen=True, kw_only=True)
class ArchiveContext:
    """The settings of one archive client."""

    control_request_channel: str = ""
    """The channel for requests. It must be set. Variable: AERON_ARCHIVE_CONTROL_CHANNEL."""
    control_request_stream_id: int = 10
    """The stream id for requests. Variable: AERON_ARCHIVE_CONTROL_STREAM_ID."""
    control_response_channel: str = ""
    """The channel for responses. It must be set. Variable:
    AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL.
    """
    control_response_stream_id: int = 20
    """The stream id for responses. Variable: AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID."""
    control_term_buffer_length: int = 64 * 1024
    """The term length of both control channels unless a channel specifies it, from 64 KiB to 1 GiB.
    Variable: AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH.
    """
    control_term_buffer_sparse: bool = True
    """Whether the term buffers of both control channels are sparse files. Variable:
    AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE.
    """
    control_mtu_length: int = 1408
    """The MTU of both control channels unless a channel specifies it. Variable:
    AERON_ARCHIVE_CONTROL_MTU_LENGTH.
    """
    recording_events_channel: str = ""
    """The channel for the archive's recording events. Variable:
    AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL.
    """
    recording_events_stream_id: int = 30
    """The stream id for recording events. Variable: AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID."""
    message_timeout_ns: int = 10_000_000_000
    """The timeout for connecting and for each response, at least 1 ms. Variable:
    AERON_ARCHIVE_MESSAGE_TIMEOUT.
    """
    message_retry_attempts: int = 3
    """The number of attempts to send a request before the call fails, at least 1. Variable:
    AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS.
    """
    client_name: str = ""
    """The client name that the archive shows in its counters, at most 100 characters. Variable:
    AERON_ARCHIVE_CLIENT_NAME.
    """
    credentials: bytes = b""
    """The credentials that are sent with the connect request."""
    on_challenge: ChallengeHandler = no_challenge
    """Function that is called with a challenge from the archive. Returns the credentials for the
    response."""
    on_recording_signal: SignalHandler | None = None
    """Function that is called with the signals of recordings that this session started."""
    error_handler: ErrorHandler | None = None
    """Function that is called with unclaimed errors: those that belong to no pending request. If it
    is None, the errors are kept for `poll_for_error_response`.
    """

    def conclude(self) -> "ArchiveContext":
        """Check every setting. All errors are reported in one exception."""
        failures = []
        for name in ("control_request_channel", "control_response_channel"):
            text = getattr(self, name)
            if not text:
                failures.append(f"{name} must be set")
                continue
            try:
                uri.parse(text)
            except ConfigurationError as error:
                failures.append(f"{name}: {error}")
        length = self.control_term_buffer_length
        if not TERM_LENGTH_MIN <= length <= TERM_LENGTH_MAX or length & (length - 1):
            failures.append(
                f"control_term_buffer_length is {length}, but must be a power of two "
                f"from {TERM_LENGTH_MIN} to {TERM_LENGTH_MAX}"
            )
        for name, floor in (("message_timeout_ns", 1_000_000), ("message_retry_attempts", 1)):
            if getattr(self, name) < floor:
                failures.append(f"{name} is {getattr(self, name)}, but must be at least {floor}")
        if len(self.client_name) > CLIENT_NAME_LENGTH_MAX:
            failures.append(
                f"client_name has {len(self.client_name)} characters, "
                f"but may have at most {CLIENT_NAME_LENGTH_MAX}"
            )
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self


_VARIABLES: dict[str, tuple[str, Reader]] = {
    "control_request_channel": ("AERON_ARCHIVE_CONTROL_CHANNEL", text),
    "control_request_stream_id": ("AERON_ARCHIVE_CONTROL_STREAM_ID", parse_int32),
    "control_response_channel": ("AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL", text),
    "control_response_stream_id": (
        "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID",
        parse_int32,
    ),
    "control_term_buffer_length": (
        "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH",
        parse_size,
    ),
    "control_term_buffer_sparse": ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", parse_flag),
    "control_mtu_length": ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", parse_size),
    "recording_events_channel": ("AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL", text),
    "recording_events_stream_id": (
        "AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID",
        parse_int32,
    ),
    "message_timeout_ns": ("AERON_ARCHIVE_MESSAGE_TIMEOUT", parse_duration_ns),
    "message_retry_attempts": ("AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS", parse_int32),
    "client_name": ("AERON_ARCHIVE_CLIENT_NAME", text),
}


def from_environment(
    environment: Mapping[str, str] | None = None, **overrides: Any
) -> ArchiveContext:
    """Read the settings from environment variables. Explicit `overrides` take precedence.

    The variables are those of this process by default. Raises ConfigurationError with the name of a
    variable that cannot be parsed.
    """
    return ArchiveContext(**(read_variables(_VARIABLES, environment, overrides) | overrides))
