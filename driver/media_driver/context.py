"""Every setting of a media driver: its unit, default, bounds and the name of its environment
variable.

A setting is read from the environment by the process's entry and then passed down as a value;
`conclude` checks all of them together and reports every failure at once. Names and defaults are
Aeron's. Source: spec 10.1, Aeron 1.53.
"""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from driver.base import idle
from driver.base.arith import is_power_of_two
from driver.base.errors import ConfigurationError
from driver.base.idle import make_idle

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000

DEDICATED = "DEDICATED"
SHARED_NETWORK = "SHARED_NETWORK"
SHARED = "SHARED"
INVOKER = "INVOKER"

IDLE_MODES = {
    "backoff": idle.BACKOFF,
    "yield": idle.YIELD,
    "yielding": idle.YIELD,
    "sleep-ns": idle.SLEEP,
    "sleeping": idle.SLEEP,
    "noop": idle.SPIN,
    "spin": idle.SPIN,
    "spinning": idle.SPIN,
}
"""The idle strategies by the names that settings use; the sleeping ones take a duration."""

_SIZE_SUFFIXES = {"k": KIB, "m": MIB, "g": GIB}
_DURATION_SUFFIXES = (("ns", 1), ("us", US), ("ms", MS), ("s", SECOND))


def default_directory() -> Path:
    """Where a driver lives unless told otherwise: shared memory if there is any."""
    parent = (
        Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(os.environ.get("TMPDIR", "/tmp"))
    )
    return parent / f"aeron-{getpass.getuser()}"


def parse_size(text: str) -> int:
    """`64k` and the like: digits with one optional suffix k, m or g."""
    suffix = text[-1:].lower()
    number, scale = (text[:-1], _SIZE_SUFFIXES[suffix]) if suffix in _SIZE_SUFFIXES else (text, 1)
    if not number.isdigit():
        raise ValueError(f"{text!r} is not a size such as 65536, 64k, 16m or 1g")
    return int(number) * scale


def parse_duration_ns(text: str) -> int:
    """`100ms` and the like; bare digits are nanoseconds."""
    lowered = text.lower()
    number, scale = lowered, 1
    for suffix, factor in _DURATION_SUFFIXES:
        if lowered.endswith(suffix):
            number, scale = lowered[: -len(suffix)], factor
            break
    if not number.isdigit():
        raise ValueError(f"{text!r} is not a duration such as 200ms, 5s or 1000")
    return int(number) * scale


def parse_bool(text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _setting(
    env: str, default: Any, parse: Any, low: int | None = None, high: int | None = None
) -> Any:
    return field(default=default, metadata={"env": env, "parse": parse, "low": low, "high": high})


def _size(env: str, default: int, low: int = 0, high: int = (1 << 31) - 1) -> Any:
    return _setting(env, default, parse_size, low, high)


def _duration(env: str, default: int, low: int = 0) -> Any:
    return _setting(env, default, parse_duration_ns, low)


def _flag(env: str, default: bool) -> Any:
    return _setting(env, default, parse_bool)


@dataclass(frozen=True, kw_only=True)
class Context:
    """The settings; durations in nanoseconds and lengths in bytes unless a name says else."""

    dir: Path = field(
        default_factory=default_directory, metadata={"env": "AERON_DIR", "parse": Path}
    )
    dir_delete_on_start: bool = _flag("AERON_DIR_DELETE_ON_START", False)
    dir_delete_on_shutdown: bool = _flag("AERON_DIR_DELETE_ON_SHUTDOWN", False)
    threading_mode: str = _setting("AERON_THREADING_MODE", DEDICATED, str.upper)
    driver_timeout_ms: int = _setting("AERON_DRIVER_TIMEOUT", 10_000, int, 1)
    client_liveness_timeout_ns: int = _duration("AERON_CLIENT_LIVENESS_TIMEOUT", 10 * SECOND, 1)
    timer_interval_ns: int = _duration("AERON_TIMER_INTERVAL", SECOND, 1)
    publication_unblock_timeout_ns: int = _duration(
        "AERON_PUBLICATION_UNBLOCK_TIMEOUT", 15 * SECOND, 1
    )
    publication_connection_timeout_ns: int = _duration(
        "AERON_PUBLICATION_CONNECTION_TIMEOUT", 5 * SECOND, 1
    )
    publication_linger_timeout_ns: int = _duration("AERON_PUBLICATION_LINGER_TIMEOUT", 5 * SECOND)
    image_liveness_timeout_ns: int = _duration("AERON_IMAGE_LIVENESS_TIMEOUT", 10 * SECOND, 1)
    status_message_timeout_ns: int = _duration("AERON_RCV_STATUS_MESSAGE_TIMEOUT", 200 * MS, 1)
    initial_window_length: int = _size("AERON_RCV_INITIAL_WINDOW_LENGTH", 128 * KIB, 256)
    socket_rcvbuf_length: int = _size("AERON_SOCKET_SO_RCVBUF", 128 * KIB)
    socket_sndbuf_length: int = _size("AERON_SOCKET_SO_SNDBUF", 0)
    socket_multicast_ttl: int = _setting("AERON_SOCKET_MULTICAST_TTL", 0, int, 0, 255)
    mtu_length: int = _size("AERON_MTU_LENGTH", 1_408, 64, 65_504)
    ipc_mtu_length: int = _size("AERON_IPC_MTU_LENGTH", 1_408, 64, 65_504)
    term_buffer_length: int = _size("AERON_TERM_BUFFER_LENGTH", 16 * MIB, 64 * KIB, GIB)
    ipc_term_buffer_length: int = _size("AERON_IPC_TERM_BUFFER_LENGTH", 64 * MIB, 64 * KIB, GIB)
    term_buffer_sparse_file: bool = _flag("AERON_TERM_BUFFER_SPARSE_FILE", True)
    perform_storage_checks: bool = _flag("AERON_PERFORM_STORAGE_CHECKS", True)
    low_file_store_warning_threshold: int = _size(
        "AERON_LOW_FILE_STORE_WARNING_THRESHOLD", 160 * MIB
    )
    file_page_size: int = _size("AERON_FILE_PAGE_SIZE", 4 * KIB, 4 * KIB, GIB)
    publication_window_length: int = _size("AERON_PUBLICATION_TERM_WINDOW_LENGTH", 0)
    ipc_publication_window_length: int = _size("AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH", 0)
    conductor_buffer_length: int = _size("AERON_CONDUCTOR_BUFFER_LENGTH", MIB + 768)
    clients_buffer_length: int = _size("AERON_CLIENTS_BUFFER_LENGTH", MIB + 128)
    counters_buffer_length: int = _size("AERON_COUNTERS_BUFFER_LENGTH", 8 * MIB, MIB, 500 * MIB)
    error_buffer_length: int = _size("AERON_ERROR_BUFFER_LENGTH", 4 * MIB, 4 * MIB)
    loss_report_buffer_length: int = _size("AERON_LOSS_REPORT_BUFFER_LENGTH", MIB, 4 * KIB)
    counters_free_to_reuse_timeout_ns: int = _duration(
        "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT", SECOND
    )
    send_to_status_poll_ratio: int = _setting("AERON_SEND_TO_STATUS_POLL_RATIO", 6, int, 1)
    nak_unicast_delay_ns: int = _duration("AERON_NAK_UNICAST_DELAY", 1_000, 1_000)
    nak_unicast_retry_delay_ratio: int = _setting(
        "AERON_NAK_UNICAST_RETRY_DELAY_RATIO", 100, int, 1
    )
    retransmit_unicast_delay_ns: int = _duration("AERON_RETRANSMIT_UNICAST_DELAY", 0)
    retransmit_unicast_linger_ns: int = _duration("AERON_RETRANSMIT_UNICAST_LINGER", 10 * MS)
    max_resend: int = _setting("AERON_MAX_RESEND", 16, int, 1, 256)
    reliable_stream: bool = _flag("AERON_RELIABLE_STREAM", True)
    rejoin_stream: bool = _flag("AERON_REJOIN_STREAM", True)
    tether_subscriptions: bool = _flag("AERON_TETHER_SUBSCRIPTIONS", True)
    spies_simulate_connection: bool = _flag("AERON_SPIES_SIMULATE_CONNECTION", False)
    untethered_window_limit_timeout_ns: int = _duration(
        "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", 5 * SECOND
    )
    untethered_resting_timeout_ns: int = _duration("AERON_UNTETHERED_RESTING_TIMEOUT", 10 * SECOND)
    reserved_session_id_low: int = _setting("AERON_PUBLICATION_RESERVED_SESSION_ID_LOW", -1, int)
    reserved_session_id_high: int = _setting(
        "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH", 1_000, int
    )
    conductor_cycle_threshold_ns: int = _duration(
        "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD", 100 * MS
    )
    sender_cycle_threshold_ns: int = _duration("AERON_DRIVER_SENDER_CYCLE_THRESHOLD", 100 * MS)
    receiver_cycle_threshold_ns: int = _duration("AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD", 100 * MS)
    messages_per_send_max: int = _setting(
        "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND", 4, int, 1, 16
    )
    stream_session_limit: int = _setting("AERON_DRIVER_STREAM_SESSION_LIMIT", (1 << 31) - 1, int, 1)

    conductor_idle_strategy: str = _setting("AERON_CONDUCTOR_IDLE_STRATEGY", "backoff", str)
    sender_idle_strategy: str = _setting("AERON_SENDER_IDLE_STRATEGY", "backoff", str)
    receiver_idle_strategy: str = _setting("AERON_RECEIVER_IDLE_STRATEGY", "backoff", str)
    shared_network_idle_strategy: str = _setting(
        "AERON_SHAREDNETWORK_IDLE_STRATEGY", "backoff", str
    )
    shared_idle_strategy: str = _setting("AERON_SHARED_IDLE_STRATEGY", "backoff", str)
    conductor_idle_sleep_ns: int = _duration("AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS", 1_000, 1)
    sender_idle_sleep_ns: int = _duration("AERON_SENDER_IDLE_STRATEGY_INIT_ARGS", 1_000, 1)
    receiver_idle_sleep_ns: int = _duration("AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS", 1_000, 1)
    shared_network_idle_sleep_ns: int = _duration(
        "AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS", 1_000, 1
    )
    shared_idle_sleep_ns: int = _duration("AERON_SHARED_IDLE_STRATEGY_INIT_ARGS", 1_000, 1)

    def idle_of(self, agent: str) -> np.recarray:
        """The idle strategy of `conductor`, `sender`, `receiver`, `shared_network` or `shared`."""
        mode = IDLE_MODES[getattr(self, f"{agent}_idle_strategy")]
        return make_idle(mode, park_ns_min=getattr(self, f"{agent}_idle_sleep_ns"))

    def conclude(self) -> "Context":
        """Check every setting and their relations; all failures are reported together."""
        failures = []
        for item in fields(self):
            value, meta = getattr(self, item.name), item.metadata
            low, high = meta.get("low"), meta.get("high")
            too_low = low is not None and value < low
            too_high = high is not None and value > high
            if too_low or too_high:
                bounds = f"at least {low}" if high is None else f"from {low} to {high}"
                failures.append(f"{meta['env']} is {value}, but must be {bounds}")
        failures += self._broken_relations()
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self

    def _broken_relations(self) -> list[str]:
        failures = []
        for name in ("term_buffer_length", "ipc_term_buffer_length", "file_page_size"):
            if not is_power_of_two(getattr(self, name)):
                failures.append(f"{_env_of(name)} is {getattr(self, name)}, not a power of two")
        for name in ("mtu_length", "ipc_mtu_length"):
            if getattr(self, name) % 32:
                failures.append(f"{_env_of(name)} is {getattr(self, name)}, not a multiple of 32")
        for name, trailer in (("conductor_buffer_length", 768), ("clients_buffer_length", 128)):
            capacity = getattr(self, name) - trailer
            if capacity < MIB or not is_power_of_two(capacity):
                failures.append(
                    f"{_env_of(name)} is {getattr(self, name)}, not {trailer} more than a power "
                    f"of two from {MIB}"
                )
        if self.threading_mode not in (DEDICATED, SHARED_NETWORK, SHARED, INVOKER):
            failures.append(f"AERON_THREADING_MODE is {self.threading_mode}, which is unknown")
        for agent in ("conductor", "sender", "receiver", "shared_network", "shared"):
            name = f"{agent}_idle_strategy"
            if getattr(self, name) not in IDLE_MODES:
                failures.append(
                    f"{_env_of(name)} is {getattr(self, name)}, not one of {', '.join(IDLE_MODES)}"
                )
        if self.client_liveness_timeout_ns <= self.timer_interval_ns:
            failures.append("AERON_CLIENT_LIVENESS_TIMEOUT must be above AERON_TIMER_INTERVAL")
        if self.publication_unblock_timeout_ns <= self.client_liveness_timeout_ns:
            failures.append(
                "AERON_PUBLICATION_UNBLOCK_TIMEOUT must be above AERON_CLIENT_LIVENESS_TIMEOUT"
            )
        if self.initial_window_length < self.mtu_length:
            failures.append("AERON_RCV_INITIAL_WINDOW_LENGTH must not be below AERON_MTU_LENGTH")
        return failures


def _env_of(name: str) -> str:
    return next(str(item.metadata["env"]) for item in fields(Context) if item.name == name)


def from_environment(environment: Mapping[str, str], **overrides: Any) -> Context:
    """Read the settings out of environment variables; `overrides` win."""
    values: dict[str, Any] = {}
    failures = []
    for item in fields(Context):
        text = environment.get(item.metadata["env"])
        if text is None or text == "":
            continue
        try:
            values[item.name] = item.metadata["parse"](text)
        except ValueError as error:
            failures.append(f"{item.metadata['env']}: {error}")
    if failures:
        raise ConfigurationError("; ".join(failures))
    return Context(**(values | overrides)).conclude()
