"""Every setting of a client: its unit, default, bounds and, where Aeron has one, its variable.

A context is a value; `conclude` checks it whole. The environment is read by `from_environment`,
which an `Aeron` without a context calls, as Aeron's own clients do.
Source: driver-protocol 10.1 and 6.7, Aeron 1.53, C client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.driver.base.aeron_directory import default_directory
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value
from windtunnel.driver.command.response import PublicationError
from windtunnel.driver.settings.kinds import parse_flag
from windtunnel.driver.settings.variables import Reader, read_variables, text

if TYPE_CHECKING:
    from windtunnel.driver.client.image.image import Image
    from windtunnel.driver.cnc.counters_reader import CountersReader

ErrorHandler = Callable[[Exception], object]
ImageHandler = Callable[["Image"], object]
CounterHandler = Callable[["CountersReader", int, int], object]
"""Called with (reader of all counters, registration id, counter id)."""
PublicationErrorHandler = Callable[[PublicationError], object]
CloseHandler = Callable[[], object]

CLIENT_NAME_LENGTH_MAX = 100


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """The settings of one client."""

    dir: Path = field(default_factory=default_directory)
    """Where the driver's files live. AERON_DIR."""
    driver_timeout_ms: int = 10_000
    """How long the driver may be silent, and how long a command may take; at least 1.
    AERON_DRIVER_TIMEOUT."""
    keepalive_interval_ns: int = 500_000_000
    """Between heartbeats; at least 1 ms."""
    idle_sleep_ns: int = 16_000_000
    """How long the client's own thread sleeps when nothing is asked of it; at least 1 us.
    AERON_CLIENT_IDLE_SLEEP_DURATION."""
    resource_linger_ns: int = 3_000_000_000
    """How long the log of something closed stays mapped for those in the middle of using it.
    AERON_CLIENT_RESOURCE_LINGER_DURATION."""
    close_linger_ns: int = 0
    """How long `close` waits before it unmaps everything, for threads that still poll."""
    client_name: str = ""
    """Shown by tools; at most 100 bytes. AERON_CLIENT_NAME."""
    use_conductor_agent_invoker: bool = False
    """No thread of its own: the program calls `Aeron.invoke` in its duty cycle."""
    pre_touch_mapped_memory: bool = False
    """Read every page of a log when it is mapped. AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY."""
    error_handler: ErrorHandler | None = None
    """Told of what nobody's call can raise: the end of the client, a failed handler, a failed
    socket of a channel. None: such things are logged."""
    publication_error_handler: PublicationErrorHandler | None = None
    """Told when a receiver rejects an image of a publication of this client."""
    on_available_image: ImageHandler | None = None
    """For subscriptions that are added without a handler of their own."""
    on_unavailable_image: ImageHandler | None = None
    """For subscriptions that are added without a handler of their own."""
    on_available_counter: CounterHandler | None = None
    on_unavailable_counter: CounterHandler | None = None
    on_close: CloseHandler | None = None
    """Called once, when the client has closed for whatever reason."""

    def conclude(self) -> "ClientContext":
        """Check every setting; all failures are reported together."""
        floors = {
            "driver_timeout_ms": 1,
            "keepalive_interval_ns": 1_000_000,
            "idle_sleep_ns": 1_000,
            "resource_linger_ns": 0,
            "close_linger_ns": 0,
        }
        failures = [
            f"{name} is {getattr(self, name)}, but must be at least {floor}"
            for name, floor in floors.items()
            if getattr(self, name) < floor
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
    """Read the settings that have variables, the process's by default; `overrides` win.

    Raises ConfigurationError naming the variable that cannot be read.
    """
    return ClientContext(**(read_variables(_VARIABLES, environment, overrides) | overrides))
