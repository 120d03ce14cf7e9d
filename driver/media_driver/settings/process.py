"""Settings for the driver's directory, buffers, agents and clients.

Names, defaults and ranges are the same as in the C driver. Source: spec 10.1, Aeron 1.53.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from windtunnel.driver.base.aeron_directory import default_directory
from windtunnel.driver.media_driver.settings.idle_strategy import STRATEGIES
from windtunnel.driver.media_driver.settings.setting import OptionalNumber
from windtunnel.driver.settings.kinds import (
    Choice,
    Directory,
    Duration,
    Flag,
    Number,
    Setting,
    Size,
)
from windtunnel.driver.settings.units import GIB, KIB, MIB, MS, SECOND, US

DEDICATED = "DEDICATED"
SHARED_NETWORK = "SHARED_NETWORK"
SHARED = "SHARED"
INVOKER = "INVOKER"
_MODES = {mode: mode for mode in (DEDICATED, SHARED_NETWORK, SHARED, INVOKER)}

ALLOW = "allow"
DENY = "deny"
_VALIDATORS = {
    ALLOW: ALLOW,
    DENY: DENY,
    "aeron_driver_termination_validator_default_allow": ALLOW,
    "aeron_driver_termination_validator_default_deny": DENY,
}

CLASSIC = "classic"
NEW = "new"
_NAMINGS = {CLASSIC: CLASSIC, NEW: NEW}

RING_TRAILER_LENGTH = 768
BROADCAST_TRAILER_LENGTH = 128

_ARGUMENTS = "for backoff: max spins-max yields-min park-max park; for sleep-ns: a duration"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ProcessSettings:
    """Process settings. Unless stated otherwise, the units are nanoseconds and bytes."""

    dir: Annotated[Path, Directory("AERON_DIR", "directory of the driver's files")] = field(
        default_factory=default_directory
    )
    dir_delete_on_start: Annotated[
        bool,
        Flag("AERON_DIR_DELETE_ON_START", "replace the directory even if a driver is active in it"),
    ] = False
    dir_delete_on_shutdown: Annotated[
        bool, Flag("AERON_DIR_DELETE_ON_SHUTDOWN", "delete the directory on an orderly shutdown")
    ] = False
    dir_warn_if_exists: Annotated[
        bool, Flag("AERON_DIR_WARN_IF_EXISTS", "warn at start if the directory already exists")
    ] = False
    print_configuration: Annotated[
        bool, Flag("AERON_PRINT_CONFIGURATION", "print every setting at start")
    ] = False
    termination_validator: Annotated[
        str,
        Choice(
            "AERON_DRIVER_TERMINATION_VALIDATOR",
            "whether clients may terminate the driver",
            _VALIDATORS,
        ),
    ] = DENY
    driver_timeout_ms: Annotated[
        int,
        Number(
            "AERON_DRIVER_TIMEOUT",
            "heartbeat age after which a driver counts as dead, in ms",
            1,
            1 << 53,
        ),
    ] = 10_000
    client_liveness_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_CLIENT_LIVENESS_TIMEOUT",
            "time without a keepalive after which a client counts as dead",
            US,
        ),
    ] = 10 * SECOND
    timer_interval_ns: Annotated[
        int, Duration("AERON_TIMER_INTERVAL", "interval between checks for expired timeouts", US)
    ] = SECOND
    enable_experimental_features: Annotated[
        bool,
        Flag("AERON_ENABLE_EXPERIMENTAL_FEATURES", "accepted for compatibility; enables nothing"),
    ] = False

    conductor_buffer_length: Annotated[
        int,
        Size(
            "AERON_CONDUCTOR_BUFFER_LENGTH",
            f"command ring buffer: a power of two plus {RING_TRAILER_LENGTH}",
            MIB + RING_TRAILER_LENGTH,
        ),
    ] = MIB + RING_TRAILER_LENGTH
    clients_buffer_length: Annotated[
        int,
        Size(
            "AERON_CLIENTS_BUFFER_LENGTH",
            "broadcast buffer of responses to clients: a power of two plus "
            f"{BROADCAST_TRAILER_LENGTH}",
            MIB + BROADCAST_TRAILER_LENGTH,
        ),
    ] = MIB + BROADCAST_TRAILER_LENGTH
    counters_buffer_length: Annotated[
        int, Size("AERON_COUNTERS_BUFFER_LENGTH", "counter values buffer", MIB, 500 * MIB)
    ] = 8 * MIB
    error_buffer_length: Annotated[
        int, Size("AERON_ERROR_BUFFER_LENGTH", "distinct error log buffer", 4 * MIB)
    ] = 4 * MIB
    loss_report_buffer_length: Annotated[
        int, Size("AERON_LOSS_REPORT_BUFFER_LENGTH", "loss report buffer", KIB)
    ] = MIB
    counters_free_to_reuse_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT", "time before a freed counter id may be reused"
        ),
    ] = SECOND
    file_page_size: Annotated[
        int,
        Size(
            "AERON_FILE_PAGE_SIZE",
            "page size to which file lengths are aligned; a power of two",
            4 * KIB,
            GIB,
        ),
    ] = 4 * KIB
    perform_storage_checks: Annotated[
        bool,
        Flag(
            "AERON_PERFORM_STORAGE_CHECKS",
            "refuse a log buffer that does not fit on the disk, and allocate cnc.dat at once",
        ),
    ] = True
    low_file_store_warning_threshold: Annotated[
        int,
        Size(
            "AERON_LOW_FILE_STORE_WARNING_THRESHOLD",
            "free space below which the driver records a warning",
            0,
            1 << 62,
        ),
    ] = 160 * MIB
    publications_max: Annotated[
        int,
        Number(
            "WINDTUNNEL_PUBLICATIONS_MAX",
            "maximum number of publications, of network publications and of their channels",
            1,
            1 << 16,
        ),
    ] = 2048
    resource_free_limit: Annotated[
        int | None,
        OptionalNumber(
            "AERON_DRIVER_RESOURCE_FREE_LIMIT",
            "maximum number of log buffers to free per duty cycle; no limit if not set",
            1,
        ),
    ] = None

    threading_mode: Annotated[
        str,
        Choice(
            "AERON_THREADING_MODE", "how agents are assigned to threads", _MODES, ignores_case=True
        ),
    ] = DEDICATED
    thread_naming: Annotated[
        str,
        Choice(
            "AERON_THREAD_NAMING",
            "names of the agents' threads: conductor, or aeron-md-cnd",
            _NAMINGS,
        ),
    ] = CLASSIC
    conductor_idle_strategy: Annotated[
        str, Choice("AERON_CONDUCTOR_IDLE_STRATEGY", "idle strategy of the conductor", STRATEGIES)
    ] = "backoff"
    conductor_idle_init_args: Annotated[
        str, Setting("AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS", _ARGUMENTS)
    ] = ""
    sender_idle_strategy: Annotated[
        str, Choice("AERON_SENDER_IDLE_STRATEGY", "idle strategy of the sender", STRATEGIES)
    ] = "backoff"
    sender_idle_init_args: Annotated[
        str, Setting("AERON_SENDER_IDLE_STRATEGY_INIT_ARGS", _ARGUMENTS)
    ] = ""
    receiver_idle_strategy: Annotated[
        str, Choice("AERON_RECEIVER_IDLE_STRATEGY", "idle strategy of the receiver", STRATEGIES)
    ] = "backoff"
    receiver_idle_init_args: Annotated[
        str, Setting("AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS", _ARGUMENTS)
    ] = ""
    shared_network_idle_strategy: Annotated[
        str,
        Choice(
            "AERON_SHAREDNETWORK_IDLE_STRATEGY",
            "idle strategy of a thread that runs sender and receiver",
            STRATEGIES,
        ),
    ] = "backoff"
    shared_network_idle_init_args: Annotated[
        str, Setting("AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS", _ARGUMENTS)
    ] = ""
    shared_idle_strategy: Annotated[
        str,
        Choice(
            "AERON_SHARED_IDLE_STRATEGY",
            "idle strategy of a thread that runs all agents",
            STRATEGIES,
        ),
    ] = "backoff"
    shared_idle_init_args: Annotated[
        str, Setting("AERON_SHARED_IDLE_STRATEGY_INIT_ARGS", _ARGUMENTS)
    ] = ""
    conductor_cpu_affinity: Annotated[
        int,
        Number(
            "AERON_CONDUCTOR_CPU_AFFINITY", "CPU of the conductor thread; -1 for any CPU", -1, 255
        ),
    ] = -1
    sender_cpu_affinity: Annotated[
        int,
        Number("AERON_SENDER_CPU_AFFINITY", "CPU of the sender thread; -1 for any CPU", -1, 255),
    ] = -1
    receiver_cpu_affinity: Annotated[
        int,
        Number(
            "AERON_RECEIVER_CPU_AFFINITY", "CPU of the receiver thread; -1 for any CPU", -1, 255
        ),
    ] = -1
    conductor_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD",
            "conductor duty cycles that take longer are counted",
        ),
    ] = 100 * MS
    sender_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_SENDER_CYCLE_THRESHOLD", "sender duty cycles that take longer are counted"
        ),
    ] = 100 * MS
    receiver_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD",
            "receiver duty cycles that take longer are counted",
        ),
    ] = 100 * MS
