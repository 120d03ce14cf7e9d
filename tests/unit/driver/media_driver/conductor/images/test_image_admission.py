"""Which sessions get an image during a flood of forged SETUPs."""

import random

import pytest

from tests.unit.driver.media_driver.invoked_driver import MS, STREAM, Lab, lab_with_long_timeouts
from tests.unit.driver.media_driver.receiving_rig import data, setup
from windtunnel.driver.base import handoff
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.subscription import AddSubscription
from windtunnel.driver.media_driver.conductor.images import image_admission
from windtunnel.driver.media_driver.conductor.images.conductor_image import State
from windtunnel.driver.media_driver.conductor.images.image_admission import (
    HALF_OPEN_IMAGES_MAX,
    HALF_OPEN_TIMEOUT_NS,
    RESTRICTED_NS,
)
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.receiver import receiver_state

STEP_NS = 10 * MS
SETUP_INTERVAL_NS = 100 * MS
"""Interval at which publishers repeat SETUPs."""
PATIENCE_NS = 3_000 * MS
HONEST = 7
SLOTS = 64
FIRST_MAX = HALF_OPEN_IMAGES_MAX[0]
FEW_SLOTS = 16
PEER = SocketAddress("10.0.0.3", 40_001)


@pytest.fixture
def slots(monkeypatch):
    """The number of image slots of the drivers in a test."""

    def set_slots(count):
        monkeypatch.setitem(receiver_state.make_receiver_state.__kwdefaults__, "images", count)

    set_slots(SLOTS)
    return set_slots


def place(number):
    """The socket of a channel."""
    return SocketAddress("10.0.0.1", 20_121 + number)


def settle(driver):
    """Take turns until every event and command of the receiver has been processed."""
    receiver = driver.driver.conductor._resources.receiver
    driver.turn(2)
    while not (handoff.is_empty(receiver.events) and handoff.is_empty(receiver.commands)):
        driver.turn()


def run_for(driver, duration_ns):
    for _ in range(duration_ns // STEP_NS):
        settle(driver)
        driver.clock.advance(STEP_NS)


def subscribe(driver, number, stream_id=STREAM):
    driver.add(AddSubscription, f"aeron:udp?endpoint={place(number)}|term-length=64k", stream_id)
    settle(driver)


def images_of(driver: Lab) -> PublicationImages:
    return driver.driver.conductor.components.images


def count(driver, stream_id=STREAM):
    """The images of a stream that hold a slot."""
    return sum(image.stream_id == stream_id for image in images_of(driver).images)


class Flood:
    """SETUPs of ever new sessions. Each one is sent `repeats` times, a SETUP interval apart."""

    def __init__(self, driver, *targets, per_step=5, repeats=1, has_data=False, step_ns=STEP_NS):
        self.driver, self.targets, self.per_step = driver, targets, per_step
        self.step_ns = step_ns
        self.repeats, self.has_data = repeats, has_data
        self._random = random.Random(3)
        self._sent: list[tuple[int, list[int]]] = []

    def step(self, honest=None):
        """Send the SETUPs of one step, with an honest one in between. Returns whether the honest
        session has its image then.
        """
        now_ns = self.driver.clock.now_ns()
        fresh = [self._random.randrange(1_000, 1 << 31) for _ in range(self.per_step)]
        self._sent.append((now_ns, fresh))
        due = [
            session
            for sent_ns, sessions in self._sent
            if now_ns - sent_ns in [n * SETUP_INTERVAL_NS for n in range(self.repeats)]
            for session in sessions
        ]
        self._sent = [
            item for item in self._sent if now_ns - item[0] < self.repeats * SETUP_INTERVAL_NS
        ]
        place_at = self._random.randrange(len(due) + 1)
        for number, session in enumerate(due):
            if honest is not None and number == place_at:
                self.driver.send(honest[0], setup(session_id=HONEST, stream_id=honest[1]), PEER)
            for to, stream_id in self.targets:
                self.driver.send(to, setup(session_id=session, stream_id=stream_id))
                if self.has_data:
                    frame = data(0, 100, session_id=session, stream_id=stream_id)
                    self.driver.send(to, frame)
        if honest is not None and place_at == len(due):
            self.driver.send(honest[0], setup(session_id=HONEST, stream_id=honest[1]), PEER)
        settle(self.driver)
        self.driver.clock.advance(self.step_ns)
        return any(image.session_id == HONEST for image in images_of(self.driver).images)

    def run(self, duration_ns):
        for _ in range(duration_ns // self.step_ns):
            self.step()

    def wait_of(self, to, stream_id):
        """Return how long an honest publisher of a stream waits for its image."""
        began_ns = self.driver.clock.now_ns()
        while True:
            waited_ns = self.driver.clock.now_ns() - began_ns
            if waited_ns > PATIENCE_NS:
                return waited_ns
            is_due = waited_ns % SETUP_INTERVAL_NS == 0
            if self.step((to, stream_id) if is_due else None):
                return waited_ns


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("has_data", [False, True])
def test_a_flooded_stream_delays_no_other_endpoint_at_any_time(tmp_path, slots, has_data):
    """Images that drain and linger hold their slots, too."""
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), has_data=has_data)
        for number in range(1, 4):
            flood.run(4_000 * MS)
            subscribe(driver, number)
            assert flood.wait_of(place(number), STREAM) == 0
            for image in images_of(driver).images:
                if image.session_id == HONEST:
                    images_of(driver).end(image)
            flood.run(3_000 * MS)


def test_a_flooded_stream_delays_no_other_stream_of_its_endpoint(tmp_path, slots):
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), repeats=3)
        flood.run(500 * MS)
        subscribe(driver, 0, STREAM + 1)
        assert flood.wait_of(place(0), STREAM + 1) == 0


def test_an_endpoint_with_many_flooded_streams_leaves_several_images_to_another(tmp_path, slots):
    streams = range(STREAM, STREAM + 20)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        for stream_id in streams:
            subscribe(driver, 0, stream_id)
        flood = Flood(driver, *((place(0), each) for each in streams), per_step=1, repeats=3)
        flood.run(500 * MS)
        subscribe(driver, 1, 1)
        for session in range(4):
            driver.send(place(1), setup(session_id=session, stream_id=1))
        settle(driver)
        assert count(driver, 1) == 4


def test_many_flooded_streams_and_endpoints_leave_images_to_another(tmp_path, slots):
    slots(FEW_SLOTS)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        targets = [(place(number), STREAM + n) for number in range(2) for n in range(3)]
        for number in range(2):
            for n in range(3):
                subscribe(driver, number, STREAM + n)
        flood = Flood(driver, *targets, per_step=2, repeats=3)
        flood.run(2_000 * MS)
        subscribe(driver, 2)
        assert flood.wait_of(place(2), STREAM) == 0


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("repeats", "has_data"), [(1, False), (3, False), (1, True)])
def test_a_publisher_of_the_flooded_stream_gets_its_image(tmp_path, slots, repeats, has_data):
    slots(1_024)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(
            driver, (place(0), STREAM), per_step=25 // repeats, repeats=repeats, has_data=has_data
        )
        flood.run(4_000 * MS)
        assert flood.wait_of(place(0), STREAM) <= PATIENCE_NS


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("repeats", "expected"), list(zip((1, 3, 12), HALF_OPEN_IMAGES_MAX, strict=True))
)
def test_sessions_that_send_no_data_have_few_images(tmp_path, slots, repeats, expected):
    slots(1_024)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), repeats=repeats)
        most = 0
        for _ in range(300):
            flood.step()
            most = max(most, count(driver))
        assert most == expected


def test_sessions_that_behave_like_publishers_leave_images_to_other_streams(tmp_path, slots):
    slots(256)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), per_step=5, repeats=12, has_data=True)
        most = 0
        for _ in range(200):
            flood.step()
            most = max(most, count(driver))
        # 3 times the free ones, of which a sixteenth is reserved.
        assert most == 180


def test_rejected_sessions_rarely_reach_the_conductor(tmp_path, slots, monkeypatch):
    handled = []
    create = PublicationImages.on_create
    monkeypatch.setattr(
        PublicationImages, "on_create", lambda *values: (handled.append(1), create(*values))
    )
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), per_step=1, repeats=3, step_ns=MS)
        flood.run(500 * MS)
        handled.clear()
        flood.run(900 * MS)
        # Of 2,700 SETUPs.
        assert len(handled) <= HALF_OPEN_IMAGES_MAX[1] + 3


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_flood_of_setups_creates_no_images_beyond_their_limit(
    tmp_path, slots, monkeypatch, repeats
):
    made = []
    hand_over = PublicationImages._hand_over
    monkeypatch.setattr(
        PublicationImages, "_hand_over", lambda *values: (made.append(1), hand_over(*values))
    )
    slots(256)
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        subscribe(driver, 0)
        flood = Flood(driver, (place(0), STREAM), per_step=20, repeats=repeats, step_ns=50 * MS)
        for _ in range(4):
            flood.run(300 * MS)
            for _ in range(6):
                driver.clock.advance(300 * MS)
                settle(driver)
        assert HALF_OPEN_IMAGES_MAX[0] <= len(made) <= HALF_OPEN_IMAGES_MAX[1]


def restricted(driver):
    """A driver whose stream has the maximum number of images without data."""
    subscribe(driver, 0)
    for session in range(100, 100 + FIRST_MAX):
        driver.send(place(0), setup(session_id=session))
        driver.turn(2)
    assert count(driver) == FIRST_MAX


@pytest.fixture
def no_preference(monkeypatch):
    """Streams get as few images for sessions that repeat their SETUP as for others."""
    monkeypatch.setattr(image_admission, "HALF_OPEN_IMAGES_MAX", (FIRST_MAX,) * 3)


def sessions_of(driver, state=State.ACTIVE):
    return {image.session_id for image in images_of(driver).images if image.state is state}


@pytest.fixture
def driver(tmp_path, slots):
    slots(4 * FIRST_MAX)
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


def test_images_without_data_give_way_only_if_their_stream_is_full(driver, monkeypatch):
    restricted(driver)
    subscribe(driver, 1)
    driver.send(place(1), setup(session_id=5, stream_id=STREAM))
    driver.send(place(0), data(0, 100, session_id=100))
    settle(driver)
    monkeypatch.setattr(image_admission, "HALF_OPEN_IMAGES_MAX", (FIRST_MAX - 1,) * 3)
    run_for(driver, HALF_OPEN_TIMEOUT_NS - STEP_NS)
    assert count(driver) == FIRST_MAX + 1
    run_for(driver, 2 * HALF_OPEN_TIMEOUT_NS)
    assert sessions_of(driver) == {5, 100}


def test_an_image_without_data_is_not_given_up_by_a_check_soon_after_its_setup(
    driver, no_preference
):
    conductor = driver.driver.conductor
    driver.turn()
    driver.clock.advance(conductor._next_timer_ns - driver.clock.now_ns() - 100 * MS)
    restricted(driver)
    checked_ns = conductor._next_timer_ns
    run_for(driver, 200 * MS)
    assert conductor._next_timer_ns > checked_ns
    assert len(sessions_of(driver)) == FIRST_MAX


def test_images_without_data_stay_while_sessions_that_repeat_their_setup_get_images(driver):
    restricted(driver)
    run_for(driver, 5 * HALF_OPEN_TIMEOUT_NS)
    assert len(sessions_of(driver)) == FIRST_MAX


def test_images_without_data_stay_when_their_stream_has_few(driver, no_preference):
    subscribe(driver, 0)
    for session in range(100, 100 + FIRST_MAX - 1):
        driver.send(place(0), setup(session_id=session))
        driver.turn(2)
    run_for(driver, 5 * HALF_OPEN_TIMEOUT_NS)
    assert len(sessions_of(driver)) == FIRST_MAX - 1


def test_an_image_without_data_frees_its_slot_soon(driver, no_preference):
    restricted(driver)
    run_for(driver, 5 * HALF_OPEN_TIMEOUT_NS)
    assert count(driver) == 0


def test_an_image_with_data_lingers_for_the_liveness_timeout(driver):
    subscribe(driver, 0)
    driver.send(place(0), setup(session_id=5))
    driver.turn(4)
    driver.send(place(0), data(0, 100, session_id=5))
    driver.turn(2)
    (image,) = images_of(driver).images
    images_of(driver).end(image)
    run_for(driver, 5 * HALF_OPEN_TIMEOUT_NS)
    assert sessions_of(driver, State.LINGER) == {5}


def test_a_session_whose_image_was_displaced_gets_another_one_even_without_rejoin(
    driver, no_preference
):
    driver.add(AddSubscription, f"aeron:udp?endpoint={place(0)}|rejoin=false")
    driver.turn(4)
    for session in range(100, 100 + FIRST_MAX):
        driver.send(place(0), setup(session_id=session))
        driver.turn(2)
    run_for(driver, 5 * HALF_OPEN_TIMEOUT_NS)
    driver.send(place(0), setup(session_id=100))
    driver.turn(4)
    assert sessions_of(driver) == {100}


@pytest.mark.parametrize(("after_ns", "is_accepted"), [(49 * MS, False), (50 * MS, True)])
def test_a_restricted_stream_accepts_a_session_that_repeats_its_setup(
    driver, after_ns, is_accepted
):
    restricted(driver)
    driver.send(place(0), setup(session_id=8))
    driver.turn(4)
    for interval_ns in (0, after_ns):
        driver.clock.advance(interval_ns)
        driver.send(place(0), setup(session_id=HONEST))
        driver.turn(4)
    assert (HONEST in sessions_of(driver)) == is_accepted


def test_a_restricted_stream_accepts_a_session_that_answers_an_elicitation(driver):
    restricted(driver)
    driver.send(place(0), setup(session_id=8))
    driver.turn(4)
    driver.send(place(0), data(0, 100, session_id=HONEST))
    driver.turn(2)
    driver.send(place(0), setup(session_id=HONEST))
    driver.turn(2)
    assert HONEST in sessions_of(driver)


def test_a_restriction_ends_after_its_duration(driver):
    restricted(driver)
    driver.send(place(0), setup(session_id=8))
    driver.turn(4)
    for image in images_of(driver).images:
        driver.send(place(0), data(0, 100, session_id=image.session_id))
        driver.turn(1)
    for after_ns, is_accepted in ((0, False), (RESTRICTED_NS, True)):
        driver.clock.advance(after_ns)
        driver.send(place(0), setup(session_id=HONEST + after_ns // MS))
        driver.turn(4)
        assert (HONEST + after_ns // MS in sessions_of(driver)) == is_accepted


def test_a_failed_image_creation_restricts_its_stream(driver, monkeypatch):
    subscribe(driver, 0)
    monkeypatch.setattr(images_of(driver)._factory, "_check_setup", lambda *_: 1 / 0)
    driver.send(place(0), setup(session_id=8))
    driver.turn(4)
    monkeypatch.undo()
    driver.send(place(0), setup(session_id=9))
    driver.turn(4)
    assert sessions_of(driver) == set()
