"""The CnC file: readiness, liveness of the driver, and validation."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import ConfigurationError, DriverError, StorageError
from windtunnel.driver.cnc import broadcast, cnc_file, ring_buffer, ring_buffer_reader
from windtunnel.driver.cnc.cnc_header import CncHeader

HEADER = CncHeader(
    counters_metadata_buffer_length=4 << 20,
    counters_values_buffer_length=1 << 20,
    start_timestamp_ms=1_600_000_000_000,
    pid=4711,
)
NOW_MS = 1_700_000_000_000


def start_driver(directory: Path, heartbeat_ms: int = NOW_MS) -> cnc_file.CncFile:
    cnc = cnc_file.create(directory, HEADER, sparse=True)
    cnc.set_ready(heartbeat_ms)
    return cnc


def patch(directory: Path, at: int, content: bytes) -> None:
    with (directory / cnc_file.FILE_NAME).open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_is_not_ready_until_the_version_is_stored(tmp_path: Path) -> None:
    driver = cnc_file.create(tmp_path, HEADER, sparse=True)
    assert driver.version == 0
    assert driver.path.stat().st_size == HEADER.file_length
    with pytest.raises(cnc_file.DriverNotReadyError, match="no version yet"):
        cnc_file.attach(tmp_path, NOW_MS)
    driver.set_ready(NOW_MS)
    client = cnc_file.attach(tmp_path, NOW_MS)
    assert client.version == 512
    assert client.header == HEADER
    client.close()
    driver.close()


def test_the_first_client_gets_id_1(tmp_path: Path) -> None:
    start_driver(tmp_path)
    client = cnc_file.attach(tmp_path, NOW_MS)
    assert ring_buffer.next_correlation_id(client.to_driver) == 1


def test_both_sides_see_the_same_sections(tmp_path: Path) -> None:
    driver = start_driver(tmp_path)
    client = cnc_file.attach(tmp_path, NOW_MS)
    receiver = broadcast.make_receiver(client.to_clients)
    scratch = broadcast.make_scratch(client.to_clients)
    assert ring_buffer.write(client.to_driver, 1, scratch, 0, 5) == ring_buffer.OK
    assert tuple(ring_buffer_reader.read(driver.to_driver, scratch)) == (1, 5)
    assert broadcast.transmit(driver.to_clients, 2, scratch, 0, 6) == broadcast.OK
    assert tuple(broadcast.receive(client.to_clients, receiver, scratch)) == (2, 6)
    driver.counters_values[-1] = driver.counters_metadata[-1] = driver.error_log[-1] = 9
    assert client.counters_values[-1] == 9
    assert client.counters_metadata[-1] == 9
    assert client.error_log[-1] == 9
    assert client.error_log.size == HEADER.error_log_buffer_length


def test_the_first_page_is_what_aeron_writes(tmp_path: Path) -> None:
    start_driver(tmp_path).close()
    header = (tmp_path / "cnc.dat").read_bytes()[:128]
    assert header[:4] == b"\0\x02\0\0"
    assert header[4:] == HEADER.encode()[4:]


@pytest.mark.parametrize(
    ("heartbeat_ms", "age_ms", "reason"),
    [
        (NOW_MS, 10_000, None),
        (NOW_MS, 10_001, "10001 ms old, but the limit is 10000 ms"),
        (0, 0, "has not written a heartbeat yet"),
        (-1, 0, "has been shut down"),
    ],
)
def test_only_a_recent_heartbeat_is_a_live_driver(
    tmp_path: Path, heartbeat_ms: int, age_ms: int, reason: str | None
) -> None:
    start_driver(tmp_path, heartbeat_ms).close()
    clock = ManualClock(epoch_ms=NOW_MS + age_ms)
    assert cnc_file.is_driver_active(tmp_path, clock, clock.advance) is (reason is None)
    assert clock.now_ms() == NOW_MS + age_ms
    if reason is None:
        cnc_file.attach(tmp_path, NOW_MS + age_ms).close()
    else:
        with pytest.raises(cnc_file.DriverNotReadyError, match=reason):
            cnc_file.attach(tmp_path, NOW_MS + age_ms)


@pytest.mark.parametrize("heartbeat_ms", [0, -1])
def test_a_missing_heartbeat_is_not_an_old_one(tmp_path: Path, heartbeat_ms: int) -> None:
    assert not start_driver(tmp_path, heartbeat_ms).is_driver_alive(now_ms=5_000)


def test_closing_in_order_is_seen_by_clients(tmp_path: Path) -> None:
    driver = start_driver(tmp_path)
    client = cnc_file.attach(tmp_path, NOW_MS)
    assert client.is_driver_alive(NOW_MS)
    driver.set_closed()
    driver.close()
    assert client.heartbeat_ms() == -1
    assert not client.is_driver_alive(NOW_MS)


@pytest.mark.parametrize(
    ("version", "accepted"),
    [(0x000200, True), (0x0002FF, True), (0x000300, True), (0x000100, False), (0x010200, False)],
)
def test_refuses_an_unsupported_version(tmp_path: Path, version: int, accepted: bool) -> None:
    start_driver(tmp_path).close()
    patch(tmp_path, 0, struct.pack("<i", version))
    if accepted:
        cnc_file.attach(tmp_path, NOW_MS).close()
    else:
        with pytest.raises(StorageError, match=r"expected 0\.2 or later"):
            cnc_file.attach(tmp_path, NOW_MS)


@pytest.mark.parametrize("length", [0, 1, 128])
def test_waits_for_a_file_that_is_still_too_short(tmp_path: Path, length: int) -> None:
    with pytest.raises(cnc_file.DriverNotReadyError, match="does not exist"):
        cnc_file.attach(tmp_path, NOW_MS)
    (tmp_path / "cnc.dat").write_bytes(bytes(length))
    with pytest.raises(cnc_file.DriverNotReadyError, match=f"found {length}"):
        cnc_file.attach(tmp_path, NOW_MS)


def test_a_directory_without_a_file_has_no_driver(tmp_path: Path) -> None:
    clock = ManualClock(epoch_ms=NOW_MS)
    assert not cnc_file.is_driver_active(tmp_path / "none", clock, clock.advance)
    assert clock.now_ms() == NOW_MS


def test_a_driver_that_is_starting_is_waited_for(tmp_path: Path) -> None:
    starting = cnc_file.create(tmp_path, HEADER, sparse=True)
    clock = ManualClock(epoch_ms=NOW_MS)

    def sleep_ns(duration_ns: int) -> None:
        clock.advance(duration_ns)
        if clock.now_ms() == NOW_MS + 500:
            starting.set_ready(clock.now_ms())

    assert cnc_file.is_driver_active(tmp_path, clock, sleep_ns)
    assert clock.now_ms() == NOW_MS + 500


def test_a_driver_that_never_became_ready_is_dead_after_the_timeout(tmp_path: Path) -> None:
    cnc_file.create(tmp_path, HEADER, sparse=True).close()
    clock = ManualClock(epoch_ms=NOW_MS)
    assert not cnc_file.is_driver_active(tmp_path, clock, clock.advance)
    assert clock.now_ms() == NOW_MS + 10_000


def test_a_file_of_another_version_is_not_deleted(tmp_path: Path) -> None:
    start_driver(tmp_path).close()
    patch(tmp_path, 0, b"\0\0\x01\0")
    clock = ManualClock(epoch_ms=NOW_MS)
    with pytest.raises(StorageError, match="has version"):
        cnc_file.is_driver_active(tmp_path, clock, clock.advance)


def test_refuses_a_file_shorter_than_its_sections(tmp_path: Path) -> None:
    start_driver(tmp_path).close()
    path = tmp_path / "cnc.dat"
    with path.open("r+b") as file:
        file.truncate(HEADER.section_offsets[-1] - 1)
    with pytest.raises(StorageError, match="sections end at"):
        cnc_file.attach(tmp_path, NOW_MS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(min_size=124, max_size=4096))
def test_maps_any_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cnc.dat").write_bytes(struct.pack("<i", 0x200) + content)
    try:
        cnc = cnc_file.attach(tmp_path, NOW_MS)
    except DriverError:
        return
    assert cnc.header.section_offsets[-1] <= 4 + len(content)
    cnc.close()


def test_a_directory_is_taken_only_once(tmp_path: Path) -> None:
    start_driver(tmp_path).close()
    with pytest.raises(StorageError, match="cannot create"):
        cnc_file.create(tmp_path, HEADER)


def test_refuses_a_bad_layout_before_it_creates_anything(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        cnc_file.create(tmp_path, CncHeader(error_log_buffer_length=8))
    assert list(tmp_path.iterdir()) == []


class Waiting:
    """A clock that advances only by sleeping, and starts a driver after some time."""

    def __init__(self, directory: Path, start_after_ns: int) -> None:
        self.clock = ManualClock(epoch_ms=NOW_MS)
        self.directory = directory
        self.start_at_ns = self.clock.now_ns() + start_after_ns
        self.driver: cnc_file.CncFile | None = None

    def sleep_ns(self, duration_ns: int) -> None:
        self.clock.advance(duration_ns)
        if self.driver is None and self.clock.now_ns() >= self.start_at_ns:
            self.driver = start_driver(self.directory, self.clock.now_ms())


def test_connect_waits_for_a_driver(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, start_after_ns=3_000_000_000)
    client = cnc_file.connect(tmp_path, waiting.clock, waiting.sleep_ns)
    assert waiting.clock.now_ms() == NOW_MS + 3_000
    assert client.version == 512


def test_connect_raises_after_the_timeout(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, start_after_ns=11_000_000_000)
    with pytest.raises(cnc_file.DriverTimeoutError, match=r"within 10000 ms .*does not exist"):
        cnc_file.connect(tmp_path, waiting.clock, waiting.sleep_ns)
    assert waiting.clock.now_ms() == NOW_MS + 10_000


def test_connect_does_not_wait_for_an_unsupported_version(tmp_path: Path) -> None:
    start_driver(tmp_path).close()
    patch(tmp_path, 0, b"\0\0\x01\0")
    waiting = Waiting(tmp_path, start_after_ns=1 << 62)
    with pytest.raises(StorageError):
        cnc_file.connect(tmp_path, waiting.clock, waiting.sleep_ns)
    assert waiting.clock.now_ms() == NOW_MS


def test_reading_a_dead_drivers_file_needs_no_heartbeat(tmp_path: Path) -> None:
    start_driver(tmp_path, heartbeat_ms=-1).close()
    cnc = cnc_file.open_existing(tmp_path)
    assert cnc.header.pid == 4711
    assert not cnc.counters_values.flags.writeable
    cnc.close()
    assert cnc.error_log.size == 0
