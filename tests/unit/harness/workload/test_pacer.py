"""A pacer waits as long as its pace requires, and makes up for only a little lost time."""

import io

import pytest

from tests.unit.harness.workload.test_publisher import PAYLOAD, PLAN, ScriptedPublication
from windtunnel.harness.scenario.schema.pace import UNLIMITED, PaceCase
from windtunnel.harness.workload.pacer import SLACK_NS, Pacer
from windtunnel.harness.workload.publisher import Publisher
from windtunnel.harness.workload.stop import Stop, Stopped
from windtunnel.harness.workload.subscriber import FRAGMENT_LIMIT, PACED_FRAGMENT_LIMIT, Application

NOW_NS = 10**15
MS = 1_000_000


def test_an_unlimited_pacer_never_waits():
    pacer = Pacer(UNLIMITED)
    pacer.add(1 << 30, NOW_NS)
    assert pacer.is_unlimited
    assert pacer.wait_ns(NOW_NS) == 0


def test_a_rate_is_kept_over_time():
    pacer = Pacer(PaceCase(bytes_per_s=1_000_000))
    now_ns, sent = NOW_NS, 0
    while now_ns < NOW_NS + 1000 * MS:
        if pacer.wait_ns(now_ns) == 0:
            pacer.add(1_000, now_ns)
            sent += 1_000
        now_ns += 300_000
    assert 1_000_000 <= sent <= 1_000_000 + 1_000 * (1 + SLACK_NS // MS)


def test_lost_time_is_not_made_up_for_by_a_burst():
    pacer = Pacer(PaceCase(bytes_per_s=1_000_000))
    pacer.add(1_000, NOW_NS)
    later_ns, burst = NOW_NS + 5_000 * MS, 0
    while pacer.wait_ns(later_ns) == 0:
        pacer.add(1_000, later_ns)
        burst += 1
    assert burst == 1 + SLACK_NS // MS


def test_the_first_message_is_not_followed_by_a_burst():
    pacer = Pacer(PaceCase(bytes_per_s=1_000_000))
    assert pacer.wait_ns(NOW_NS) == 0
    pacer.add(1_000, NOW_NS)
    assert pacer.wait_ns(NOW_NS) == MS


@pytest.mark.parametrize(
    ("lengths", "rests"), [([99], 0), ([100], 1), ([60, 60], 1), ([250], 2), ([60, 60, 60, 60], 2)]
)
def test_each_passed_multiple_is_one_rest(lengths, rests):
    pacer = Pacer(PaceCase(rest_every_bytes=100, rest_ns=150 * MS))
    now_ns = NOW_NS
    for length in lengths:
        pacer.add(length, now_ns)
        now_ns += pacer.wait_ns(now_ns)
    assert now_ns == NOW_NS + rests * 150 * MS
    assert pacer.wait_ns(now_ns) == 0


class StillClock:
    """A clock that advances only by sleeping."""

    def __init__(self):
        self.now_ns, self.slept = NOW_NS, 0

    def monotonic_ns(self):
        return self.now_ns

    def monotonic(self):
        return self.now_ns / 1e9

    def sleep(self, seconds):
        self.slept += 1
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch):
    still = StillClock()
    for name in ("monotonic_ns", "sleep"):
        monkeypatch.setattr(
            f"windtunnel.harness.workload.publisher.time.{name}", getattr(still, name)
        )
    return still


def test_a_publisher_rests_between_messages_and_not_after_the_last(clock):
    stop, publication = Stop(), ScriptedPublication()
    pace = PaceCase(rest_every_bytes=8, rest_ns=100 * MS)
    Publisher(PLAN, PAYLOAD, -1, stop, pace).send(publication)
    assert len(publication.taken) == PLAN.count
    # 4 + 4 + 25 bytes pass 8, 16, 24 and 32 before the last message.
    assert clock.now_ns == NOW_NS + 400 * MS


def test_a_publisher_that_rests_can_be_asked_to_end(clock, monkeypatch):
    stop = Stop()
    publisher = Publisher(PLAN, PAYLOAD, -1, stop, PaceCase(rest_every_bytes=4, rest_ns=10**12))
    sleep = clock.sleep

    def sleep_then_request_stop(seconds):
        sleep(seconds)
        stop.request(15)

    monkeypatch.setattr("windtunnel.harness.workload.publisher.time.sleep", sleep_then_request_stop)
    with pytest.raises(Stopped):
        publisher.send(ScriptedPublication())
    assert publisher.accepted_count == 1
    with pytest.raises(Stopped):
        publisher.stay_open(10**12)


def test_a_publisher_stays_open_for_the_configured_time(clock):
    Publisher(PLAN, PAYLOAD, -1, Stop()).stay_open(123 * MS)
    assert clock.now_ns == NOW_NS + 123 * MS


class Image:
    """An image that counts its polls, and the requested bytes."""

    correlation_id = 1
    join_position = position = 0

    def __init__(self):
        self.limits = []

    def poll(self, handler, limit):
        self.limits.append(limit)
        return 1


class Header:
    position, session_id = 64, 1


def test_an_application_that_rests_polls_nothing(tmp_path):
    now_ns = NOW_NS
    image = Image()

    class Counted:
        total_bytes = 1

        def add(self, length):
            pass

    with (tmp_path / "m").open("wb") as messages, (tmp_path / "i").open("wb") as index:
        application = Application(
            messages, index, Counted(), PaceCase(rest_every_bytes=8, rest_ns=150 * MS),
            lambda: now_ns, times=io.BytesIO(), flip_byte=False,
        )  # fmt: skip
        assert application.poll(image) == 1
        application._on_message(memoryview(b"12345678"), Header())
        assert application.poll(image) == 0
        now_ns += 149 * MS
        assert application.poll(image) == 0
        now_ns += MS
        assert application.poll(image) == 1
        free = Application(messages, index, Counted(), times=io.BytesIO(), flip_byte=False)
        free.poll(image)
    assert image.limits == [PACED_FRAGMENT_LIMIT, PACED_FRAGMENT_LIMIT, FRAGMENT_LIMIT]
