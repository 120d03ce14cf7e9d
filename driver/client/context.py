"""Settings of a client: units, defaults, bounds and Aeron's environment variables.

A context is an immutable value; `conclude` validates all its settings. `from_environment` reads the
environment; an `Aeron` without a context calls it, as Aeron's own clients do.
Source: driver-protocol 10.1 and 6.7, Aeron 1.53, C client.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.driver.base.aeron_directory import default_directory
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value
from windtunnel.driver.client.handlers import (
    AvailableImageHandler,
    CloseHandler,
    CounterHandler,
    ErrorHandler,
    PublicationErrorHandler,
    UnavailableImageHandler,
)
from windtunnel.driver.settings.kinds import parse_flag
from windtunnel.driver.settings.variables import Reader, read_variables, text

CLIENT_NAME_LENGTH_MAX = 100


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """Settings of one client."""

    dir: Path = field(default_factory=default_directory)
    """Directory of the driver's files. AERON_DIR."""
    driver_timeout_ms: int = 10_000
    """Maximum age of the driver's heartbeat and maximum time for the response to a command; at
    least 1. AERON_DRIVER_TIMEOUT.
    """
    keepalive_interval_ns: int = 500_000_000
    """Interval between the client's heartbeats; at least 1 ms."""
    idle_sleep_ns: int = 16_000_000
    """Sleep of the client's conductor thread between two duty cycles; at least 1 us.
    AERON_CLIENT_IDLE_SLEEP_DURATION.
    """
    resource_linger_ns: int = 3_000_000_000
    """Time that the log of a closed publication or image stays mapped for threads that still use
    it. AERON_CLIENT_RESOURCE_LINGER_DURATION.
    """
    close_linger_ns: int = 0
    """Time that `close` waits before it unmaps all logs, for threads that still poll."""
    client_name: str = ""
    """Name that tools show; at most 100 bytes. AERON_CLIENT_NAME."""
    use_conductor_agent_invoker: bool = False
    """Start no conductor thread: the program calls `Aeron.invoke` in its duty cycle."""
    pre_touch_mapped_memory: bool = False
    """Read every page of a log after mapping it. AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY."""
    error_handler: ErrorHandler | None = None
    """Called with errors that no call of the program can raise: termination of the client, an
    exception in a handler, a failed socket of a channel. None logs such errors.
    """
    publication_error_handler: PublicationErrorHandler | None = None
    """Called when a receiver rejects an image of a publication of this client."""
    on_available_image: AvailableImageHandler | None = None
    """Default for subscriptions that are added without this handler."""
    on_unavailable_image: UnavailableImageHandler | None = None
    """Default for subscriptions that are added without this handler."""
    on_available_counter: CounterHandler | None = None
    on_unavailable_counter: CounterHandler | None = None
    on_close: CloseHandler | None = None
    """Called once after the client has closed, for whatever reason."""

    def conclude(self) -> "ClientContext":
        """Validate all settings and return the context.

        Raises ConfigurationError that lists every invalid setting.
        """
        minimums = {
            "driver_timeout_ms": 1,
            "keepalive_interval_ns": 1_000_000,
            "idle_sleep_ns": 1_000,
            "resource_linger_ns": 0,
            "close_linger_ns": 0,
        }
        failures = [
            f"{name} is {getattr(self, name)}, but must be at least {minimum}"
            for name, minimum in minimums.items()
            if getattr(self, name) < minimum
        ]
        name_length = len(self.client_name.encode("utf-8", "replace"))
        if name_length > CLIENT_NAME_LENGTH_MAX:
            failures.append(
                f"client_name has {name_length} bytes, "
                f"but may have at most {CLIENT_NAME_LENGTH_MAX}"
            )
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self


_VARIABLES: dict[str, tuple[str, Reader]] = {
    "dir": ("AERON_DIR", lambda name, text: Path(text)),
    "driver_timeout_ms": ("AERON_DRIVER_TIMEOUT", uri_value.parse_int64),
    "idle_sleep_ns": ("AERON_CLIENT_IDLE_SLEEP_DURATION", uri_value.parse_duration_ns),
    "resource_linger_ns": ("AERON_CLIENT_RESOURCE_LINGER_DURATION", uri_value.parse_duration_ns),
    "client_name": ("AERON_CLIENT_NAME", text),
    "pre_touch_mapped_memory": ("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", parse_flag),
}


def from_environment(
    environment: Mapping[str, str] | None = None, **overrides: Any
) -> ClientContext:
    """Create a context from environment variables.

    `environment` defaults to that of the process; `overrides` take precedence over it. Raises
    ConfigurationError that names the variable with an invalid value.
    """
    return ClientContext(**(read_variables(_VARIABLES, environment, overrides) | overrides))
