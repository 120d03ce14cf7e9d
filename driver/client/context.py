"""The settings of a client, with their defaults, ranges and environment variables.

A context is an immutable value, whose settings `conclude` validates. `from_environment` reads the
environment. An `Aeron` object without a context calls it, like Aeron's clients. Source:
driver-protocol 10.1 and 6.7, Aeron 1.53, C client.
"""

from collections.abc import Callable, Mapping
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
    """The settings of a client."""

    dir: Path = field(default_factory=default_directory)
    """Directory of the driver's files. Set by AERON_DIR."""
    driver_timeout_ms: int = 10_000
    """Maximum age of the driver's heartbeat, and maximum time until the response to a command. At
    least 1. Set by AERON_DRIVER_TIMEOUT.
    """
    keepalive_interval_ns: int = 500_000_000
    """Interval between the client's heartbeats in nanoseconds, at least 1 ms."""
    idle_sleep_ns: int = 16_000_000
    """Sleep time of the conductor thread between duty cycles, in nanoseconds, at least 1 us.
    Set by AERON_CLIENT_IDLE_SLEEP_DURATION.
    """
    resource_linger_ns: int = 3_000_000_000
    """Time in nanoseconds for which the log of a closed publication or image stays mapped for
    threads that still use the log. Set by AERON_CLIENT_RESOURCE_LINGER_DURATION.
    """
    close_linger_ns: int = 0
    """Time in nanoseconds that `close` waits before it unmaps all logs, for threads that are still
    polling."""
    client_name: str = ""
    """Name of the client in tools, at most 100 bytes. Set by AERON_CLIENT_NAME."""
    use_conductor_agent_invoker: bool = False
    """Whether the application calls `Aeron.invoke` regularly and the client needs no conductor
    thread."""
    driver_agent_invoker: Callable[[], object] | None = None
    """Function that runs one duty cycle of the driver, for a driver in INVOKER mode in the same
    thread. The client calls it instead of sleeping while it waits for the response to a command."""
    pre_touch_mapped_memory: bool = False
    """Whether to read each page of a log when it is mapped. Set by
    AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY."""
    error_handler: ErrorHandler | None = None
    """Function called with errors that no API call of the application can raise: termination of the
    client, an exception in a handler, or a failed socket of a channel. None logs these errors.
    """
    publication_error_handler: PublicationErrorHandler | None = None
    """Function called when a receiver rejects an image of one of this client's publications."""
    on_available_image: AvailableImageHandler | None = None
    """Default handler for available images, used by subscriptions that are added without a
    handler."""
    on_unavailable_image: UnavailableImageHandler | None = None
    """Default handler for unavailable images, used by subscriptions that are added without a
    handler."""
    on_available_counter: CounterHandler | None = None
    on_unavailable_counter: CounterHandler | None = None
    on_close: CloseHandler | None = None
    """Function called once after the client has closed, for any reason."""

    def __post_init__(self) -> None:
        """Convert the directory to a Path, since it may be given as a string."""
        if isinstance(self.dir, str):
            object.__setattr__(self, "dir", Path(self.dir))

    def conclude(self) -> "ClientContext":
        """Validate all settings and return the context.

        Raises ConfigurationError, which lists all invalid settings.
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

    The default `environment` is that of the process. `overrides` take precedence over it. Raises
    ConfigurationError, which names the variable with an invalid value.
    """
    return ClientContext(**(read_variables(_VARIABLES, environment, overrides) | overrides))
