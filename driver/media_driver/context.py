"""Every setting of a media driver together, checked as a whole.

    ProcessSettings + StreamSettings + NetworkSettings  =  Context
          each field: type, variable, meaning, bounds, default

`conclude` checks all settings and their relations and reports every failure at once, each with its
name, its value and its bounds. Where Aeron would quietly take the nearest value that is allowed,
this refuses. Reading the environment is `from_environment`'s, once, at the process's entry; after
that a context is passed down as a value. Source: spec 10.1, Aeron 1.53.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import numpy as np

from windtunnel.driver.base.arith import I32_MAX, I64_MAX, is_power_of_two
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.settings import loss_interceptors
from windtunnel.driver.media_driver.settings.idle_strategy import make_strategy
from windtunnel.driver.media_driver.settings.known_names import (
    ALIASES,
    NATIVE_ONLY,
    native_faults,
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


@dataclass(frozen=True, kw_only=True)
class Context(NetworkSettings, StreamSettings, ProcessSettings):
    """The settings; durations in nanoseconds and lengths in bytes unless a name says else."""

    def idle_of(self, agent: str) -> np.recarray:
        """A fresh idle strategy of `conductor`, `sender`, `receiver`, `shared_network` or `shared`.

        Each call makes a state of its own; ConfigurationError for arguments that are malformed.
        """
        return make_strategy(
            SETTINGS[f"{agent}_idle_init_args"].variable,
            getattr(self, f"{agent}_idle_strategy"),
            getattr(self, f"{agent}_idle_init_args"),
        )

    def allows_termination(self, token: bytes) -> bool:
        """Whether a client that shows this token may end the driver; Aeron's own do not read it."""
        return self.termination_validator == ALLOW

    def conclude(self) -> "Context":
        """Check every setting and their relations; all failures are reported together."""
        failures = self.faults()
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self

    def faults(self) -> list[str]:
        """What is wrong, one sentence each."""
        found = [kind.fault(getattr(self, name)) for name, kind in SETTINGS.items()]
        named = [fault for fault in found if fault is not None]
        # A relation between values that are wrong by themselves would only repeat the news.
        return named + [
            fault for fault in self._broken_relations() if not _is_about_any(fault, named)
        ]

    def _broken_relations(self) -> list[str]:
        return [
            *self._broken_lengths(),
            *self._broken_times(),
            *self._broken_strategies(),
            *self._broken_names(),
        ]

    def _broken_lengths(self) -> list[str]:
        failures = []
        for name in ("term_buffer_length", "ipc_term_buffer_length", "file_page_size"):
            if not is_power_of_two(getattr(self, name)):
                failures.append(f"{self._said(name)}, not a power of two")
        for name in ("mtu_length", "ipc_mtu_length"):
            if getattr(self, name) % 32:
                failures.append(f"{self._said(name)}, not a multiple of 32")
        for name, trailer in (
            ("conductor_buffer_length", RING_TRAILER_LENGTH),
            ("clients_buffer_length", BROADCAST_TRAILER_LENGTH),
        ):
            if not is_power_of_two(getattr(self, name) - trailer):
                failures.append(
                    f"{self._said(name)}, not {trailer} more than a power of two from {MIB}"
                )
        if self.initial_window_length < self.mtu_length:
            failures.append(
                f"{self._said('initial_window_length')}, but must not be below "
                f"{self._said('mtu_length')}"
            )
        lengths = ("conductor_buffer_length", "clients_buffer_length", "error_buffer_length")
        # The metadata of the counters are four times as long as their values.
        total = 5 * self.counters_buffer_length + sum(getattr(self, name) for name in lengths)
        if total + self.file_page_size > I32_MAX:
            failures.append(
                f"cnc.dat would have {total} bytes, but may have {I32_MAX}: "
                f"{self._said('counters_buffer_length')} and counts five times"
            )
        return failures

    def _broken_times(self) -> list[str]:
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
                failures.append(f"{self._said(longer)}, but must be above {self._said(shorter)}")
        if self.nak_unicast_delay_ns * self.nak_unicast_retry_delay_ratio > I64_MAX:
            failures.append(
                f"{self._said('nak_unicast_delay_ns')} and "
                f"{self._said('nak_unicast_retry_delay_ratio')}: their product is above {I64_MAX}"
            )
        return failures

    def _broken_strategies(self) -> list[str]:
        failures = []
        for agent in _AGENTS:
            name = f"{agent}_idle_strategy"
            if SETTINGS[name].fault(getattr(self, name)) is None:
                try:
                    self.idle_of(agent)
                except ConfigurationError as error:
                    failures.append(str(error))
        return failures

    def _broken_names(self) -> list[str]:
        failures = []
        if self.resolver_interface and not self.resolver_name:
            failures.append(
                f"{self._said('resolver_interface')}, which needs "
                f"{SETTINGS['resolver_name'].variable} as well"
            )
        if self.name_resolver == "csv_table" and not self.name_resolver_init_args:
            failures.append(
                f"{self._said('name_resolver')}, which needs "
                f"{SETTINGS['name_resolver_init_args'].variable} as well"
            )
        if (
            loss_interceptors.FIXED_LOSS in self.incoming_interceptors
            and self.fixed_loss.term_offset < 0
        ):
            failures.append(
                f"{self._said('incoming_interceptors')}, which needs "
                f"{SETTINGS['fixed_loss'].variable} as well"
            )
        return failures

    def _said(self, name: str) -> str:
        kind = SETTINGS[name]
        return f"{kind.variable} is {kind.write(getattr(self, name))}"


def _settings() -> dict[str, Setting]:
    hints = get_type_hints(Context, include_extras=True)
    return {item.name: hints[item.name].__metadata__[0] for item in fields(Context)}


SETTINGS: dict[str, Setting] = _settings()
"""What is known of each field of a Context, in the order of its classes."""


def _is_about_any(fault: str, others: list[str]) -> bool:
    """Whether a fault names a variable that another fault begins with."""
    return any(other.split(" ", 1)[0] in fault.replace(",", "").split() for other in others)


def from_environment(
    environment: Mapping[str, str], *, shared: Collection[str] = (), **overrides: Any
) -> Context:
    """Read the settings out of environment variables; `overrides` win.

    A variable that begins with AERON_ and belongs to nobody is refused; an empty one counts as not
    set. Those in `shared` may be another program's, and are refused only when they look misspelt.
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
            failures += native_faults(variable, text)
    context = Context(**(values | overrides))
    failures += context.faults()
    if failures:
        raise ConfigurationError("; ".join(failures))
    return context
