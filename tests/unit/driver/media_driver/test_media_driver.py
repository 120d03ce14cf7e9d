"""Taking a directory, leaving it, and threads of one's own."""

import pytest

from driver.base.clock import ManualClock
from driver.base.errors import ActiveDriverError, ConfigurationError
from driver.cnc import cnc_file, ring_buffer
from driver.command.publication import AddExclusivePublication
from driver.media_driver import context as settings
from driver.media_driver.context import INVOKER, Context
from driver.media_driver.media_driver import MediaDriver
from tests.unit.driver.media_driver.invoked_driver import STREAM, TO_PEER, Lab, lab


def test_a_directory_with_a_living_driver_is_refused(tmp_path):
    with lab(tmp_path / "aeron") as driver:
        with pytest.raises(ActiveDriverError, match="AERON_DIR"):
            Lab(tmp_path / "aeron", driver.clock)
        assert driver.cnc.heartbeat_ms() > 0


def test_a_directory_of_the_dead_is_made_anew(tmp_path):
    first = Lab(tmp_path / "aeron", ManualClock())
    first.ask(AddExclusivePublication(first.next_id(), first.next_id(), STREAM, TO_PEER))
    (tmp_path / "aeron" / "left-behind").write_text("x")
    later = ManualClock(epoch_ms=first.clock.epoch_ms + 10_001)
    second = Lab(tmp_path / "aeron", later)
    assert second.logs() == []
    assert not (tmp_path / "aeron" / "left-behind").exists()
    assert second.living() == []
    second.close()
    first.cnc.close()


def test_an_orderly_end_leaves_the_file_and_no_logs(tmp_path):
    driver = Lab(tmp_path / "aeron", ManualClock())
    driver.ask(AddExclusivePublication(driver.next_id(), driver.next_id(), STREAM, TO_PEER))
    driver.close()
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["aeron/cnc.dat", "aeron/loss-report.dat"]
    cnc = cnc_file.open_existing(tmp_path / "aeron")
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()
    again = Lab(tmp_path / "aeron", ManualClock())
    again.close()


def test_a_directory_may_go_with_its_driver(tmp_path):
    Lab(tmp_path / "aeron", ManualClock(), dir_delete_on_shutdown=True).close()
    assert not (tmp_path / "aeron").exists()


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED_NETWORK", "SHARED"])
def test_threads_start_answer_and_end(tmp_path, mode):
    driver = MediaDriver(Context(dir=tmp_path / "aeron", threading_mode=mode))
    with driver:
        cnc = cnc_file.open_existing(tmp_path / "aeron", writable=True)
        assert not driver.wait(0.05)
        assert cnc.is_driver_alive(driver.clock.now_ms())
    assert driver.failure is None
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()


def test_every_broken_setting_is_named_at_once():
    broken = Context(
        threading_mode="ALONE",
        mtu_length=1401,
        term_buffer_length=65_537,
        conductor_buffer_length=4096,
        sender_idle_strategy="nap",
        timer_interval_ns=0,
    )
    with pytest.raises(ConfigurationError) as caught:
        broken.conclude()
    for name in (
        "AERON_THREADING_MODE",
        "AERON_MTU_LENGTH",
        "AERON_TERM_BUFFER_LENGTH",
        "AERON_CONDUCTOR_BUFFER_LENGTH",
        "AERON_SENDER_IDLE_STRATEGY",
        "AERON_TIMER_INTERVAL",
    ):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("mtu_length", 64, 32),
        ("mtu_length", 65_504, 65_536),
        ("term_buffer_length", 65_536, 32_768),
        ("term_buffer_length", 1 << 30, 1 << 31),
        ("counters_buffer_length", 1 << 20, (1 << 20) - 1),
        ("error_buffer_length", 4 << 20, (4 << 20) - 1),
        ("messages_per_send_max", 16, 17),
        ("max_resend", 256, 257),
        ("max_resend", 1, 0),
        ("file_page_size", 4096, 2048),
        ("nak_unicast_delay_ns", 1_000, 999),
        ("socket_multicast_ttl", 255, 256),
        ("client_liveness_timeout_ns", 10**9 + 1, 10**9),
        ("publication_unblock_timeout_ns", 10**10 + 1, 10**10),
        ("conductor_buffer_length", (2 << 20) + 768, 2 << 20),
    ],
)
def test_bounds_are_where_they_are(name, good, bad):
    related = {"initial_window_length": 131_072}
    Context(**(related | {name: good})).conclude()
    with pytest.raises(ConfigurationError, match="AERON_"):
        Context(**(related | {name: bad})).conclude()


def test_whatever_passes_the_check_makes_a_driver(tmp_path):
    smallest = {
        "counters_buffer_length": 1 << 20,
        "error_buffer_length": 4 << 20,
        "loss_report_buffer_length": 4096,
        "conductor_buffer_length": (1 << 20) + 768,
        "clients_buffer_length": (1 << 20) + 128,
    }
    MediaDriver(Context(dir=tmp_path / "aeron", threading_mode=INVOKER, **smallest)).close()


def test_the_environment_speaks_aeron(tmp_path):
    found = settings.from_environment(
        {
            "AERON_DIR": str(tmp_path),
            "AERON_TERM_BUFFER_LENGTH": "64k",
            "AERON_MTU_LENGTH": "8k",
            "AERON_TIMER_INTERVAL": "100ms",
            "AERON_CLIENT_LIVENESS_TIMEOUT": "2s",
            "AERON_THREADING_MODE": "shared",
            "AERON_RELIABLE_STREAM": "false",
            "AERON_SENDER_IDLE_STRATEGY": "noop",
            "AERON_DRIVER_TIMEOUT": "5000",
            "AERON_MAX_RESEND": "",
        }
    )
    assert (found.dir, found.term_buffer_length, found.mtu_length) == (tmp_path, 65_536, 8192)
    assert (found.timer_interval_ns, found.client_liveness_timeout_ns) == (10**8, 2 * 10**9)
    assert (found.threading_mode, found.reliable_stream, found.max_resend) == ("SHARED", False, 16)
    with pytest.raises(ConfigurationError) as caught:
        settings.from_environment({"AERON_MTU_LENGTH": "8kk", "AERON_RELIABLE_STREAM": "maybe"})
    assert "AERON_MTU_LENGTH" in str(caught.value)
    assert "AERON_RELIABLE_STREAM" in str(caught.value)


@pytest.mark.parametrize("text", ["", "k", "1.5k", "-1", "1t", "0x10"])
def test_what_is_no_size_is_no_size(text):
    with pytest.raises(ValueError, match="not a size"):
        settings.parse_size(text)


@pytest.mark.parametrize("text", ["", "ms", "1.5s", "-1ns", "1h"])
def test_what_is_no_duration_is_no_duration(text):
    with pytest.raises(ValueError, match="not a duration"):
        settings.parse_duration_ns(text)
