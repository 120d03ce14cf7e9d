"""Floods of SETUP frames cost the conductor no files, little time, and no memory."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    MS,
    STREAM,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import setup
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.error_log import TEXTS_PER_KIND_MAX, read_errors
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.subscription import AddSubscription, SubscriptionReady
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.conductor import (
    CHECKS_DURATION_NS_MAX,
    EVENTS_DURATION_NS_MAX,
    EVENTS_PER_TURN_MAX,
    PENDING_WORK_INTERVAL_NS,
)
from windtunnel.driver.media_driver.conductor.images import image_factory
from windtunnel.driver.media_driver.conductor.images.image_admission import RESTRICTED_NS
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.receiver import receiver_state

HERE = SocketAddress("10.0.0.1", 20_121)


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        opened.add(AddSubscription, CHANNEL)
        yield opened


@pytest.fixture
def created(monkeypatch):
    """The log files that were created."""
    create, paths = LogBuffer.create, []

    def remember(path, *arguments, **options):
        paths.append(path)
        return create(path, *arguments, **options)

    monkeypatch.setattr(LogBuffer, "create", remember)
    return paths


def send_sessions(driver, first, count):
    for session_id in range(first, first + count):
        driver.send(HERE, setup(session_id=session_id))
        driver.turn(2)


def images_of(driver):
    return driver.driver.conductor.components.images


def test_without_a_free_slot_no_file_is_created_and_most_setups_never_reach_python(
    driver, created, monkeypatch
):
    slots = images_of(driver)._factory.slots
    free, slots._free = slots._free, []
    handled = []
    fail = PublicationImages._fail
    monkeypatch.setattr(
        PublicationImages, "_fail", lambda *values: (handled.append(1), fail(*values))
    )
    send_sessions(driver, 100, 200)
    assert created == []
    assert len(handled) <= 2
    assert driver.value(system_counters.CONDUCTOR_PROXY_FAILS) >= 198
    (entry,) = read_errors(driver.cnc.error_log)
    assert "images are in use" in entry.text
    slots._free = free
    driver.clock.advance(1_001 * MS)
    send_sessions(driver, 100, 1)
    assert [type(item) for item in driver.take()] == [AvailableImage]


def test_without_free_counters_no_file_is_created(driver, created):
    manager = driver.driver.conductor._resources.counters._manager
    manager._high_water_mark = manager.capacity - image_factory.COUNTERS_PER_IMAGE
    send_sessions(driver, 100, 3)
    assert created == []
    text = read_errors(driver.cnc.error_log)[0].text
    assert text.startswith("(12) Cannot allocate memory\nimage of UDP-")
    assert "no free counter" in text


@pytest.mark.parametrize("limit", [65_536, 131_072])
def test_a_term_within_the_limit_is_accepted(tmp_path, limit):
    with lab_with_long_timeouts(tmp_path / "aeron", image_term_length_max=limit) as driver:
        driver.add(AddSubscription, CHANNEL)
        driver.send(HERE, setup(term_length=65_536))
        driver.turn(4)
        assert [type(item) for item in driver.take()] == [AvailableImage]


def test_a_term_beyond_the_limit_is_rejected_before_a_file_is_created(tmp_path, created):
    with lab_with_long_timeouts(tmp_path / "aeron", image_term_length_max=65_536) as driver:
        driver.add(AddSubscription, CHANNEL)
        driver.send(HERE, setup(term_length=131_072))
        driver.turn(4)
        assert driver.take() == []
        assert created == []
        (entry,) = read_errors(driver.cnc.error_log)
        assert "termLength=131072 > WINDTUNNEL_IMAGE_TERM_LENGTH_MAX=65536" in entry.text


def test_long_events_do_not_delay_commands_and_agents(driver, monkeypatch):
    handled = []

    def create(event, now_ns):
        handled.append(now_ns)
        driver.clock.advance(EVENTS_DURATION_NS_MAX // 2)

    monkeypatch.setattr(images_of(driver), "on_create", create)
    conductor = driver.driver.conductor
    conductor._receiver_events = conductor._make_receiver_events()
    for session_id in range(5):
        driver.send(HERE, setup(session_id=session_id))
    turns = []
    for _ in range(5):
        before = len(handled)
        driver.turn()
        turns.append(len(handled) - before)
    assert sum(turns) == 5
    assert max(turns) == 2


def test_many_short_events_do_not_delay_commands_and_agents(driver, monkeypatch):
    handled = []
    monkeypatch.setattr(images_of(driver), "on_create", lambda event, now_ns: handled.append(event))
    conductor = driver.driver.conductor
    conductor._receiver_events = conductor._make_receiver_events()
    for session_id in range(EVENTS_PER_TURN_MAX + 10):
        driver.send(HERE, setup(session_id=session_id))
    for _ in range(EVENTS_PER_TURN_MAX):
        driver.driver._receiver_duty_cycle()
    assert conductor._on_events(driver.clock.now_ns()) == len(handled) == EVENTS_PER_TURN_MAX
    assert conductor._on_events(driver.clock.now_ns()) == 10


def test_checks_of_many_images_do_not_delay_commands_and_agents(driver, monkeypatch):
    conductor, images = driver.driver.conductor, images_of(driver)
    send_sessions(driver, 100, 10)
    driver.take()
    checked = []

    def check(image, now_ns):
        checked.append(image.session_id)
        driver.clock.advance(CHECKS_DURATION_NS_MAX // 2)

    monkeypatch.setattr(images, "_drain_if_over", check)
    driver.clock.advance(2_000 * MS)
    for turn in range(1, 5):
        driver.turn()
        assert len(checked) == 2 * turn
        # In SHARED mode, the agents run in between, but not until the next timer.
        now_ns = driver.clock.now_ns()
        assert conductor._deadline_ns(1_000 * MS) == now_ns + PENDING_WORK_INTERVAL_NS
    assert type(driver.add(AddSubscription, CHANNEL, STREAM + 1)[1][0]) is SubscriptionReady
    driver.turn()
    assert sorted(checked) == list(range(100, 110))
    assert conductor._deadline_ns(1_000 * MS) > driver.clock.now_ns() + PENDING_WORK_INTERVAL_NS


def test_a_timer_does_not_restart_the_checks_of_images(driver, monkeypatch):
    send_sessions(driver, 100, 10)
    checked = []

    def check(image, now_ns):
        checked.append(image.session_id)
        driver.clock.advance(driver.driver.context.timer_interval_ns)

    monkeypatch.setattr(images_of(driver), "_drain_if_over", check)
    driver.clock.advance(2_000 * MS)
    driver.turn(10)
    assert sorted(checked) == list(range(100, 110))


def test_errors_of_forged_setups_leave_space_in_the_error_log(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron", image_term_length_max=65_536) as driver:
        driver.add(AddSubscription, CHANNEL)
        for session_id in range(100):
            driver.send(HERE, setup(session_id=session_id, term_length=131_072))
            driver.turn(3)
            driver.clock.advance(RESTRICTED_NS)
        found = read_errors(driver.cnc.error_log)
    assert len(found) == TEXTS_PER_KIND_MAX + 1
    assert sum(entry.observation_count for entry in found) == 100


def test_images_are_refused_when_existing_sparse_logs_may_need_the_space(
    tmp_path, created, monkeypatch
):
    log_length = 3 * 65_536 + 4_096
    monkeypatch.setattr(image_factory, "usable_bytes", lambda _: 3 * log_length + 100_000)
    with lab_with_long_timeouts(tmp_path / "aeron", perform_storage_checks=True) as driver:
        driver.add(AddSubscription, CHANNEL)
        for session_id in range(6):
            driver.send(HERE, setup(session_id=session_id))
            driver.turn(3)
            driver.clock.advance(RESTRICTED_NS)
        assert len(created) == 3
        texts = [entry.text for entry in read_errors(driver.cnc.error_log)]
    (text,) = {text for text in texts if "insufficient usable storage" in text}
    assert text.startswith("(-12) insufficient storage space\n")


def test_a_flood_of_sessions_leaves_images_to_other_streams(tmp_path, monkeypatch):
    monkeypatch.setitem(receiver_state.make_receiver_state.__kwdefaults__, "images", 16)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        for stream_id in (STREAM, STREAM + 1):
            driver.add(AddSubscription, CHANNEL, stream_id)
        send_sessions(driver, 100, 40)
        driver.send(HERE, setup(session_id=7, stream_id=STREAM + 1))
        driver.turn(4)
        streams = [image.stream_id for image in images_of(driver).images]
        assert (streams.count(STREAM), streams.count(STREAM + 1)) == (10, 1)
