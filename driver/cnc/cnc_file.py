"""The file `cnc.dat`: a header and five sections, which are checked before use.

    0               128                                                          align(page)
    +---------------+-----------+------------+----------+----------+-----------+-------+
    | header        | to-driver | to-clients | counters | counters | error log | zero  |
    |               | ring      | broadcast  | metadata | values   |           |       |
    +---------------+-----------+------------+----------+----------+-----------+-------+

A driver creates a file of zeros, fills it, and stores the version last: version 0 means that the
driver is not ready. A client waits for the version and for a recent heartbeat in the trailer of the
ring buffer. The header comes from another process, so it is checked against the actual length of
the file before use.
Source: driver-protocol 6.1, 6.2, 10.4.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from windtunnel.driver.base.atomics import get_i32_acquire, put_i32_release
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.cnc_header import HEADER_LENGTH, VERSION, CncHeader
from windtunnel.driver.files import mapping

FILE_NAME = "cnc.dat"

CNC_VERSION = 0 << 16 | 2 << 8 | 0
CNC_MAJOR = 0
CNC_MINOR_MIN = 2

DRIVER_TIMEOUT_MS = 10_000
RETRY_INTERVAL_NS = 100_000_000


class DriverNotReadyError(DriverError):
    """No active driver was found. A later attempt may succeed."""


class DriverTimeoutError(DriverError):
    """No active driver was found within the driver timeout."""


class CncFile:
    """A mapped `cnc.dat` whose header is valid. Its sections are byte arrays."""

    def __init__(self, mapped: mapping.Mapping, header: CncHeader) -> None:
        self.mapping = mapped
        self.header = header
        at = header.section_offsets
        array = mapped.array
        self.to_driver: np.ndarray = array[at[0] : at[1]]
        self.to_clients: np.ndarray = array[at[1] : at[2]]
        self.counters_metadata: np.ndarray = array[at[2] : at[3]]
        self.counters_values: np.ndarray = array[at[3] : at[4]]
        self.error_log: np.ndarray = array[at[4] : at[5]]

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.mapping.path

    @property
    def version(self) -> int:
        """The version in the file, or 0 until the driver is ready."""
        return int(get_i32_acquire(self.mapping.array, VERSION))

    def heartbeat_ms(self) -> int:
        """Return the time of the driver's last heartbeat, or -1 if the driver has shut down."""
        return int(ring_buffer.consumer_heartbeat_ms(self.to_driver))

    def is_driver_alive(self, now_ms: int, driver_timeout_ms: int = DRIVER_TIMEOUT_MS) -> bool:
        """Return whether the driver's last heartbeat is no older than the driver timeout."""
        heartbeat_ms = self.heartbeat_ms()
        return heartbeat_ms > 0 and heartbeat_ms >= now_ms - driver_timeout_ms

    def set_ready(self, now_ms: int) -> None:
        """Mark the driver as ready: write the first heartbeat, then the version.

        This consumes one correlation id, because no client may get 0.
        """
        ring_buffer.next_correlation_id(self.to_driver)
        ring_buffer.set_consumer_heartbeat_ms(self.to_driver, now_ms)
        put_i32_release(self.mapping.array, VERSION, CNC_VERSION)
        self.mapping.flush()

    def set_closed(self) -> None:
        """Mark the driver as shut down."""
        ring_buffer.set_consumer_heartbeat_ms(self.to_driver, ring_buffer.HEARTBEAT_OF_CLOSED)
        self.mapping.flush()

    def close(self) -> None:
        """Unmap the file. Its sections become empty arrays."""
        empty = np.empty(0, dtype=np.uint8)
        self.to_driver = self.to_clients = self.error_log = empty
        self.counters_metadata = self.counters_values = empty
        self.mapping.close()


def create(directory: Path, header: CncHeader, *, sparse: bool = False) -> CncFile:
    """Create the CnC file for a new driver. Clients wait until `set_ready` is called.

    By default all pages are allocated, so a full /dev/shm causes an error here instead of a SIGBUS
    later.
    """
    header.conclude()
    mapped = mapping.create(directory / FILE_NAME, header.file_length, sparse=sparse)
    encoded = np.frombuffer(header.encode(), dtype=np.uint8)
    mapped.array[4:HEADER_LENGTH] = encoded[4:]
    return CncFile(mapped, header)


def open_existing(directory: Path, *, writable: bool = False) -> CncFile:
    """Map an existing CnC file, whether or not its driver is active.

    Raises DriverNotReadyError if the driver may still be starting, and StorageError for an error
    that waiting cannot resolve.
    """
    path = directory / FILE_NAME
    try:
        length = path.stat().st_size
    except FileNotFoundError:
        raise DriverNotReadyError(f"{path} does not exist") from None
    except OSError as error:
        raise StorageError(f"cannot stat {path}: {error.strerror}") from error
    if length <= HEADER_LENGTH:
        raise DriverNotReadyError(
            f"{path}: expected more than {HEADER_LENGTH} bytes, found {length}"
        )
    mapped = mapping.open_file(path, writable=writable)
    try:
        return CncFile(mapped, _checked_header(path, mapped))
    except DriverError:
        mapped.close()
        raise


def _checked_header(path: Path, mapped: mapping.Mapping) -> CncHeader:
    version = int(get_i32_acquire(mapped.array, VERSION)) if mapped.length > HEADER_LENGTH else 0
    if version == 0:
        raise DriverNotReadyError(f"{path} has no version yet: the driver is not ready")
    major, minor = version >> 16 & 0xFF, version >> 8 & 0xFF
    if major != CNC_MAJOR or minor < CNC_MINOR_MIN:
        raise StorageError(
            f"{path} has version {major}.{minor}, expected {CNC_MAJOR}.{CNC_MINOR_MIN} or later"
        )
    header = CncHeader.decode(mapped.array)
    found = header.faults(mapped.length)
    if found:
        raise StorageError(f"{path} has an invalid header: " + "; ".join(found))
    return header


def attach(directory: Path, now_ms: int, driver_timeout_ms: int = DRIVER_TIMEOUT_MS) -> CncFile:
    """Map the cnc.dat of an active driver for reading and writing. Does not wait for a driver to
    start.

    Raises DriverNotReadyError if a later attempt may succeed.
    """
    cnc = open_existing(directory, writable=True)
    if cnc.is_driver_alive(now_ms, driver_timeout_ms):
        return cnc
    heartbeat_ms = cnc.heartbeat_ms()
    path = cnc.path
    cnc.close()
    if heartbeat_ms == ring_buffer.HEARTBEAT_OF_CLOSED:
        raise DriverNotReadyError(f"the driver that owns {path} has been shut down")
    if heartbeat_ms <= 0:
        raise DriverNotReadyError(f"the driver that owns {path} has not written a heartbeat yet")
    age_ms = now_ms - heartbeat_ms
    raise DriverNotReadyError(
        f"the last heartbeat in {path} is {age_ms} ms old, but the limit is {driver_timeout_ms} ms"
    )


def connect(
    directory: Path,
    clock: Clock,
    sleep_ns: Callable[[int], None],
    driver_timeout_ms: int = DRIVER_TIMEOUT_MS,
) -> CncFile:
    """Map the CnC file of an active driver. If no driver is active, waits for one until the timeout
    expires.

    Raises DriverTimeoutError.
    """
    deadline_ns = clock.now_ns() + driver_timeout_ms * NS_PER_MS
    while True:
        try:
            return attach(directory, clock.now_ms(), driver_timeout_ms)
        except DriverNotReadyError as error:
            if clock.now_ns() >= deadline_ns:
                raise DriverTimeoutError(
                    f"no driver was found within {driver_timeout_ms} ms (driver timeout): {error}"
                ) from error
        sleep_ns(RETRY_INTERVAL_NS)


def is_driver_active(
    directory: Path,
    clock: Clock,
    sleep_ns: Callable[[int], None],
    driver_timeout_ms: int = DRIVER_TIMEOUT_MS,
) -> bool:
    """Return whether an active driver uses the directory. Waits if a driver is just starting.

    Raises StorageError for a file with an unsupported version or an invalid header, because its
    driver may be active.
    """
    deadline_ns = clock.now_ns() + driver_timeout_ms * NS_PER_MS
    while (directory / FILE_NAME).exists():
        try:
            cnc = open_existing(directory)
        except DriverNotReadyError:
            if clock.now_ns() >= deadline_ns:
                return False
            sleep_ns(RETRY_INTERVAL_NS)
            continue
        alive = cnc.is_driver_alive(clock.now_ms(), driver_timeout_ms)
        cnc.close()
        return alive
    return False
