"""Parses idle strategy settings, which have a name and arguments that depend on the name.

    noop, spin             start the next duty cycle immediately
    yield                  yield the CPU to other threads
    sleeping, sleep-ns     sleep for a duration                              1us
    backoff                spin, then yield, then sleep, doubling            0-60-1us-1ms

Source: the C driver's idle strategies, Aeron 1.53. Its backoff is 10-20-1us-1ms by default.
"""

import re

import numpy as np

from windtunnel.driver.base import idle
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

STRATEGIES = {
    "backoff": "backoff",
    "aeron_idle_strategy_backoff": "backoff",
    "yield": "yield",
    "yielding": "yield",
    "aeron_idle_strategy_yielding": "yield",
    "sleep-ns": "sleep-ns",
    "sleeping": "sleep-ns",
    "aeron_idle_strategy_sleeping": "sleep-ns",
    "spin": "spin",
    "spinning": "spin",
    "aeron_idle_strategy_busy_spinning": "spin",
    "noop": "noop",
    "aeron_idle_strategy_noop": "noop",
}
"""Maps each accepted name of an idle strategy to its canonical name."""

PARK_NS_MAX = 1_000_000_000
"""Maximum sleep time of an agent in nanoseconds. A sleeping agent ignores shutdown requests."""
COUNT_MAX = 1 << 31

_MODES = {"yield": idle.YIELD, "spin": idle.SPIN, "noop": idle.SPIN}
_BACKOFF = re.compile(r"([^- ]+)[- ]([^- ]+)[- ]([^- ]+)[- ]([^- ]+)")


def make_idle_strategy(variable: str, strategy: str, init_args: str) -> np.recarray:
    """Create the state of an idle strategy, an array of one IDLE record.

    If `init_args` is empty, the arguments have their defaults. Strategies without arguments ignore
    `init_args`. Error messages name the setting `variable`. Raises ConfigurationError.
    """
    name = STRATEGIES[strategy]
    if name == "sleep-ns":
        length_ns = _park_ns(variable, init_args) if init_args else 1
        return idle.make_idle(idle.SLEEP, park_ns_min=length_ns)
    if name != "backoff" or not init_args:
        return idle.make_idle(_MODES.get(name, idle.BACKOFF))
    match = _BACKOFF.fullmatch(init_args)
    if match is None:
        raise ConfigurationError(
            f"{variable}={init_args}: expected max spins, max yields, min park and max park, "
            "such as 10-20-1us-1ms"
        )
    spins, yields, shortest, longest = match.groups()
    return idle.make_idle(
        spins_max=uri_value.parse_int64(variable, spins, 0, COUNT_MAX),
        yields_max=uri_value.parse_int64(variable, yields, 0, COUNT_MAX),
        park_ns_min=_park_ns(variable, shortest),
        park_ns_max=_park_ns(variable, longest),
    )


def _park_ns(variable: str, text: str) -> int:
    return uri_value.parse_duration_ns(variable, text, 0, PARK_NS_MAX)
