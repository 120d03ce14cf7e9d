"""Every setting of a client: its unit, default and bounds.

Source: spec 10.1 and 6.7, Aeron 1.53.
"""

from dataclasses import dataclass, field
from pathlib import Path

from driver.base.errors import ConfigurationError


def _default_directory() -> Path:
    import getpass

    parent = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
    return parent / f"aeron-{getpass.getuser()}"


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """The settings of one client."""

    dir: Path = field(default_factory=_default_directory)
    """Where the driver's files live."""
    driver_timeout_ms: int = 10_000
    """How long the driver may be silent, and how long a command may take; at least 1."""
    keepalive_interval_ns: int = 500_000_000
    """Between heartbeats; at least 1 ms."""
    idle_sleep_ns: int = 16_000_000
    """How long the client's own thread sleeps when nothing is asked of it; at least 1 us."""
    client_name: str = ""
    """Shown by tools; at most 100 characters."""

    def conclude(self) -> "ClientContext":
        """Check every setting; all failures are reported together."""
        failures = []
        if self.driver_timeout_ms < 1:
            failures.append(
                f"driver_timeout_ms is {self.driver_timeout_ms}, but must be at least 1"
            )
        if self.keepalive_interval_ns < 1_000_000:
            failures.append(
                f"keepalive_interval_ns is {self.keepalive_interval_ns}, "
                "but must be at least 1000000"
            )
        if self.idle_sleep_ns < 1_000:
            failures.append(f"idle_sleep_ns is {self.idle_sleep_ns}, but must be at least 1000")
        if len(self.client_name) > 100:
            failures.append(
                f"client_name has {len(self.client_name)} characters, but may have at most 100"
            )
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self
