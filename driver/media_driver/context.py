"""All settings of a media driver. They are validated together.

    ProcessSettings + StreamSettings + NetworkSettings  =  Context
          each field: type, variable, meaning, range, default

`conclude` validates all settings and their relations and reports all failures together, with the
name, value and range of each setting. Values out of range are refused, although Aeron silently
clamps them. `from_environment` reads the environment once, at process start. Source: spec 10.1,
Aeron 1.53.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from windtunnel.driver.base.arith import I32_MAX, I64_MAX, is_power_of_two
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.settings import loss_interceptors
from windtunnel.driver.media_driver.settings.idle_strategy import make_idle_strategy
from windtunnel.driver.media_driver.settings.known_names import (
    ALIASES,
    NATIVE_ONLY,
    native_only_faults,
    unknown_faults,
)
from windtunnel.driver.media_driver.settings.network import NetworkSettings
from windtunnel.driver.media_driver.settings.process import (
    ALLOW,
    BROADCAST_TRAILER_LENGTH,
    DEDICATED,
    INVOKER,
    RING_TRAILER_LENGTH,
    SHARED,
    SHARED_NETWORK,
    ProcessSettings,
)
from windtunnel.driver.media_driver.settings.stream import StreamSettings
from windtunnel.driver.settings.kinds import Setting
from windtunnel.driver.settings.units import GIB, KIB, MIB, MS, SECOND, US

__all__ = [
    "DEDICATED",
    "GIB",
    "INVOKER",
    "KIB",
    "MIB",
    "MS",
    "SECOND",
    "SETTINGS",
    "SHARED",
    "SHARED_NETWORK",
    "US",
    "Context",
    "from_environment",
]

_AGENTS = ("conductor", "sender", "receiver", "shared_network", "shared")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Context(NetworkSettings, StreamSettings, ProcessSettings):
    """All driver settings. Unless stated otherwise, the units are nanoseconds and bytes."""

    def __post_init__(self) -> None:
        """Convert the directory to a Path, since it may be given as a string."""
        if isinstance(self.dir, str):
            object.__setattr__(self, "dir", Path(self.dir))

    def idle_of(self, agent: str) -> np.recarray:
        """Create the state of an agent's idle strategy. `agent` is a name such as `conductor`.

        Each call returns a new state. Raises ConfigurationError for malformed arguments.
        """
        return make_idle_strategy(
            SETTINGS[f"{agent}_idle_init_args"].variable,
            getattr(self, f"{agent}_idle_strategy"),
            getattr(self, f"{agent}_idle_init_args"),
        )

    def allows_termination(self, token: bytes) -> bool:
        """Return whether clients may terminate the driver. The token is ignored, as in Aeron."""
        return self.termination_validator == ALLOW

    def conclude(self) -> "Context":
        """Validate all settings and their combinations. Raises one ConfigurationError that lists
        all faults.
        """
        failures = self.faults()
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self

    def faults(self) -> list[str]:
        """Return an error message for each invalid setting or combination of settings."""
        return list(self._faults)

    @cached_property
    def _faults(self) -> list[str]:
        found = [kind.fault(getattr(self, name)) for name, kind in SETTINGS.items()]
        named = [fault for fault in found if fault is not None]
        # Skip the relations of values that are already invalid.
        return named + [
            fault for fault in self._relation_faults() if not _is_about_any(fault, named)
        ]

    def _relation_faults(self) -> list[str]:
        return [
            *self._length_faults(),
            *self._time_faults(),
            *self._strategy_faults(),
            *self._dependency_faults(),
        ]

    def _length_faults(self) -> list[str]:
        failures = []
        for name in ("term_buffer_length", "ipc_term_buffer_length", "file_page_size"):
            if not is_power_of_two(getattr(self, name)):
                failures.append(f"{self._setting_text(name)}, but must be a power of two")
        for name in ("mtu_length", "ipc_mtu_length"):
            if getattr(self, name) % 32:
                failures.append(f"{self._setting_text(name)}, but must be a multiple of 32")
        for name, trailer in (
            ("conductor_buffer_length", RING_TRAILER_LENGTH),
            ("clients_buffer_length", BROADCAST_TRAILER_LENGTH),
        ):
            if not is_power_of_two(getattr(self, name) - trailer):
                failures.append(
                    f"{self._setting_text(name)}, but must be {trailer} more than a power of two "
                    f"of at least {MIB}"
                )
        if self.initial_window_length < self.mtu_length:
            failures.append(
                f"{self._setting_text('initial_window_length')}, but must not be below "
                f"{self._setting_text('mtu_length')}"
            )
        lengths = ("conductor_buffer_length", "clients_buffer_length", "error_buffer_length")
        # The counters' metadata is four times as long as their values.
        total = 5 * self.counters_buffer_length + sum(getattr(self, name) for name in lengths)
        if total + self.file_page_size > I32_MAX:
            failures.append(
                f"cnc.dat would be {total} bytes long, but the maximum is {I32_MAX}: "
                f"{self._setting_text('counters_buffer_length')} and counts five times in the total"
            )
        return failures

    def _time_faults(self) -> list[str]:
        failures = []
        for longer, shorter in (
            ("client_liveness_timeout_ns", "timer_interval_ns"),
            ("publication_unblock_timeout_ns", "client_liveness_timeout_ns"),
            ("untethered_window_limit_timeout_ns", "timer_interval_ns"),
            ("untethered_linger_timeout_ns", "timer_interval_ns"),
            ("untethered_resting_timeout_ns", "timer_interval_ns"),
        ):
            value = getattr(self, longer)
            if value is not None and value <= getattr(self, shorter):
                failures.append(
                    f"{self._setting_text(longer)}, but must be above {self._setting_text(shorter)}"
                )
        if self.nak_unicast_delay_ns * self.nak_unicast_retry_delay_ratio > I64_MAX:
            failures.append(
                f"{self._setting_text('nak_unicast_delay_ns')} and "
                f"{self._setting_text('nak_unicast_retry_delay_ratio')}: their product is above "
                f"{I64_MAX}"
            )
        return failures

    def _strategy_faults(self) -> list[str]:
        failures = []
        for agent in _AGENTS:
            name = f"{agent}_idle_strategy"
            if SETTINGS[name].fault(getattr(self, name)) is None:
                try:
                    self.idle_of(agent)
                except ConfigurationError as error:
                    failures.append(str(error))
        return failures

    def _dependency_faults(self) -> list[str]:
        failures = []
        if self.resolver_interface and not self.resolver_name:
            failures.append(
                f"{self._setting_text('resolver_interface')}, which also requires "
                f"{SETTINGS['resolver_name'].variable}"
            )
        if self.name_resolver == "csv_table" and not self.name_resolver_init_args:
            failures.append(
                f"{self._setting_text('name_resolver')}, which also requires "
                f"{SETTINGS['name_resolver_init_args'].variable}"
            )
        if (
            loss_interceptors.FIXED_LOSS in self.incoming_interceptors
            and self.fixed_loss.term_offset < 0
        ):
            failures.append(
                f"{self._setting_text('incoming_interceptors')}, which also requires "
                f"{SETTINGS['fixed_loss'].variable}"
            )
        return failures

    def _setting_text(self, name: str) -> str:
        kind = SETTINGS[name]
        return f"{kind.variable} is {kind.write(getattr(self, name))}"


def _settings() -> dict[str, Setting]:
    hints = get_type_hints(Context, include_extras=True)
    return {item.name: hints[item.name].__metadata__[0] for item in fields(Context)}


SETTINGS: dict[str, Setting] = _settings()
"""Maps each field of a Context to its setting, in declaration order."""


def _is_about_any(fault: str, others: list[str]) -> bool:
    """Return whether a fault message names one of the variables that are already reported as
    invalid.
    """
    return any(other.split(" ", 1)[0] in fault.replace(",", "").split() for other in others)


def from_environment(
    environment: Mapping[str, str], *, shared: Collection[str] = (), **overrides: Any
) -> Context:
    """Read the settings from environment variables. `overrides` take precedence.

    An empty variable counts as not set. An unknown variable with the prefix AERON_ is refused.
    Variables in `shared` may belong to other programs and are refused only if they look misspelt.
    Raises ConfigurationError.
    """
    own = {kind.variable: (name, kind) for name, kind in SETTINGS.items()}
    values: dict[str, Any] = {}
    failures = unknown_faults(list(environment), list(own), shared)
    for variable, alias in [*ALIASES.items(), *((name, name) for name in own)]:
        text = environment.get(variable, "").strip()
        if not text:
            continue
        name, kind = own[alias]
        try:
            values[name] = kind.parse(text)
        except ConfigurationError as error:
            failures.append(
                f"{error} ({kind.bounds()})" if kind.bounds() not in str(error) else str(error)
            )
    for variable in NATIVE_ONLY:
        text = environment.get(variable, "").strip()
        if text:
            failures += native_only_faults(variable, text)
    context = Context(**(values | overrides))
    failures += context.faults()
    if failures:
        raise ConfigurationError("; ".join(failures))
    return context
