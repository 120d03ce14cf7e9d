"""Launch and shutdown of a driver, its directory and its threads."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import STREAM, TO_PEER, Lab, lab
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import ActiveDriverError
from windtunnel.driver.cnc import cnc_file, ring_buffer
from windtunnel.driver.command.publication import AddExclusivePublication
from windtunnel.driver.media_driver import media_driver
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.conductor import WATCH_INTERVAL_NS, Conductor
from windtunnel.driver.media_driver.context import INVOKER, MS, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.driver.media_driver.name_resolution.reresolution import WatchedName


def test_the_directory_of_an_active_driver_is_rejected(tmp_path):
    with lab(tmp_path / "aeron") as driver:
        with pytest.raises(ActiveDriverError, match="AERON_DIR"):
            Lab(tmp_path / "aeron", driver.clock)
        assert driver.cnc.heartbeat_ms() > 0


def test_the_directory_of_a_dead_driver_is_recreated(tmp_path):
    first = Lab(tmp_path / "aeron", ManualClock())
    first.request(AddExclusivePublication(first.next_id(), first.next_id(), STREAM, TO_PEER))
    left_behind = tmp_path / "aeron" / "images" / "99.logbuffer"
    left_behind.write_text("x")
    later = ManualClock(epoch_ms=first.clock.epoch_ms + 10_001)
    second = Lab(tmp_path / "aeron", later)
    assert second.logs() == []
    assert not left_behind.exists()
    assert second.active_counters() == []
    second.close()
    first.cnc.close()


def test_a_clean_shutdown_leaves_the_cnc_file_and_no_logs(tmp_path):
    driver = Lab(tmp_path / "aeron", ManualClock())
    driver.request(AddExclusivePublication(driver.next_id(), driver.next_id(), STREAM, TO_PEER))
    driver.close()
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["aeron/cnc.dat", "aeron/loss-report.dat"]
    cnc = cnc_file.open_existing(tmp_path / "aeron")
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()
    again = Lab(tmp_path / "aeron", ManualClock())
    again.close()


@pytest.mark.parametrize("is_allocated", [True, False])
def test_files_are_allocated_at_once_unless_storage_is_not_checked(tmp_path, is_allocated):
    driver = Lab(tmp_path / "aeron", ManualClock(), perform_storage_checks=is_allocated)
    for name in ("cnc.dat", "loss-report.dat"):
        file = (tmp_path / "aeron" / name).stat()
        assert (file.st_blocks * 512 >= file.st_size) is is_allocated
    driver.close()


def test_a_directory_may_be_deleted_with_its_driver(tmp_path):
    Lab(tmp_path / "aeron", ManualClock(), dir_delete_on_shutdown=True).close()
    assert not (tmp_path / "aeron").exists()


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED_NETWORK", "SHARED"])
def test_threads_start_respond_and_end(tmp_path, mode):
    driver = MediaDriver(Context(dir=tmp_path / "aeron", threading_mode=mode))
    with driver:
        cnc = cnc_file.open_existing(tmp_path / "aeron", writable=True)
        assert not driver.wait(0.05)
        assert cnc.is_driver_alive(driver.clock.now_ms())
    assert driver.failure is None
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()


def test_a_driver_is_created_with_the_smallest_buffers(tmp_path):
    smallest = {
        "counters_buffer_length": 1 << 20,
        "error_buffer_length": 4 << 20,
        "loss_report_buffer_length": 4096,
        "conductor_buffer_length": (1 << 20) + 768,
        "clients_buffer_length": (1 << 20) + 128,
    }
    MediaDriver(Context(dir=tmp_path / "aeron", threading_mode=INVOKER, **smallest)).close()


def test_duty_cycles_of_an_invoked_driver_are_measured(tmp_path):
    agents = (
        system_counters.CONDUCTOR_MAX_CYCLE_TIME,
        system_counters.SENDER_MAX_CYCLE_TIME,
        system_counters.RECEIVER_MAX_CYCLE_TIME,
    )
    thresholds = {
        "conductor_cycle_threshold_ns": 40 * MS,
        "sender_cycle_threshold_ns": 50 * MS,
        "receiver_cycle_threshold_ns": 60 * MS,
    }
    with lab(tmp_path / "aeron", **thresholds) as driver:
        driver.turn(1)
        for step in (10 * MS, 45 * MS, 55 * MS):
            driver.clock.advance(step)
            driver.turn(1)
        longest = [driver.value(counter_id) for counter_id in agents]
        # The counter of cycles above the threshold follows that of the longest cycle.
        too_long = [driver.value(counter_id + 1) for counter_id in agents]
    assert longest == [55 * MS] * 3
    assert too_long == [2, 1, 0]


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED"])
def test_an_idle_conductor_rarely_enters_python(tmp_path, monkeypatch, mode):
    entered = []

    def do_work(conductor, now_ns):
        entered.append(now_ns)
        return original(conductor, now_ns)

    original = Conductor.do_work
    monkeypatch.setattr(Conductor, "do_work", do_work)
    with MediaDriver(Context(dir=tmp_path / "aeron", threading_mode=mode)) as driver:
        assert not driver.wait(0.3)
        lasted_ns = driver.clock.now_ns() - entered[0]
    # Two more than the time has room for: the first one, and one at which a timer was due.
    assert 1 <= len(entered) <= lasted_ns // (1_000 * MS) + 2


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED_NETWORK", "SHARED"])
def test_a_shutdown_does_not_wait_for_the_end_of_a_compiled_run(tmp_path, monkeypatch, mode):
    # Each thread runs in machine code for a day, unless the driver shuts down.
    monkeypatch.setattr(media_driver, "QUANTUM_NS", 86_400_000 * MS)
    hour_ns = 3_600_000 * MS
    context = Context(
        dir=tmp_path / "aeron",
        threading_mode=mode,
        timer_interval_ns=hour_ns,
        client_liveness_timeout_ns=2 * hour_ns,
        publication_unblock_timeout_ns=3 * hour_ns,
        untethered_window_limit_timeout_ns=2 * hour_ns,
        untethered_resting_timeout_ns=2 * hour_ns,
    )
    with MediaDriver(context) as driver:
        assert not driver.wait(0.05)
    assert driver.failure is None


def test_a_conductor_enters_python_to_look_up_watched_names(tmp_path):
    with lab(tmp_path / "aeron") as driver:
        conductor = driver.driver.conductor
        conductor.do_work(driver.clock.now_ns())
        second_ns, now_ns = 1_000 * MS, driver.clock.now_ns()
        assert conductor._deadline_ns(second_ns) - now_ns > WATCH_INTERVAL_NS
        watched = WatchedName("endpoint", "somewhere:20121", None, lambda address: None)
        conductor.components.reresolution.watch(watched, now_ns)
        assert conductor._deadline_ns(second_ns) - now_ns == WATCH_INTERVAL_NS
        conductor.components.reresolution.unwatch(watched)
        assert conductor._deadline_ns(second_ns) - now_ns > WATCH_INTERVAL_NS
