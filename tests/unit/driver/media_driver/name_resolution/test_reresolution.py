"""When a name is looked up again, and how the result is applied."""

import pytest

from tests.unit.driver.media_driver.name_resolution.rig import (
    MS,
    SECOND,
    CounterFile,
    HeldLookups,
    NameService,
    make_clock,
)
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.name_resolution.name_resolver import (
    EmptyNameSource,
    NameResolver,
)
from windtunnel.driver.media_driver.name_resolution.reresolution import Reresolution, WatchedName

START = 100 * SECOND
FIRST, SECOND_ADDRESS = SocketAddress("10.0.0.1", 40123), SocketAddress("10.0.0.2", 40123)


class Rig:
    def __init__(self, interval_ns=SECOND):
        self.clock = make_clock()
        self.clock.monotonic_ns = START
        self.file = CounterFile(self.clock)
        self.system = NameService(self.clock, far="10.0.0.1")
        self.lookups = HeldLookups(self.system, self.clock)
        self.names = NameResolver(
            EmptyNameSource(),
            self.system,
            self.lookups,
            self.lookups,
            self.file.values,
            self.clock,
            SECOND,
        )
        self.errors, self.changes, self.heard_ns = [], [], 0
        self.reresolution = Reresolution(
            self.names, interval_ns,
            lambda code, text, kind="": self.errors.append((code, text)), START,
        )  # fmt: skip

    def watch(self, name="far:40123", key="endpoint", address=FIRST, **options):
        return self.reresolution.watch(
            WatchedName(
                key,
                name,
                address,
                self.changes.append,
                **({"last_activity_ns": lambda: self.heard_ns} | options),
            ),
            self.clock.now_ns(),
        )

    def run(self, duration_ns, step_ns=100 * MS):
        """Run for a duration; each lookup is completed before the next duty cycle."""
        for _ in range(duration_ns // step_ns):
            self.clock.advance(step_ns)
            self.turn()

    def turn(self):
        self.lookups.complete()
        self.names.do_work(self.clock.now_ns())
        self.reresolution.do_work(self.clock.now_ns())


@pytest.fixture
def rig():
    return Rig()


def test_a_changed_address_is_used_after_five_seconds_of_silence(rig):
    watched = rig.watch()
    rig.system.hosts["far"] = "10.0.0.2"
    rig.run(5 * SECOND)
    assert rig.system.looked_up == []
    rig.run(2 * SECOND)
    assert rig.changes == [SECOND_ADDRESS]
    assert watched.address == SECOND_ADDRESS
    rig.system.hosts["far"] = "10.0.0.1"
    rig.run(7 * SECOND)
    assert rig.changes == [SECOND_ADDRESS, FIRST]


def test_the_name_of_an_active_peer_is_not_looked_up(rig):
    rig.watch()
    for _ in range(100):
        rig.heard_ns = rig.clock.now_ns()
        rig.run(SECOND)
    assert rig.system.looked_up == []


def test_an_unchanged_address_changes_nothing(rig):
    rig.watch()
    rig.run(20 * SECOND)
    assert rig.system.looked_up == ["far"] * 3
    assert rig.changes == []


def test_an_endpoint_is_looked_up_each_second_while_it_is_silent(rig):
    rig.watch(retries_each_check=True)
    rig.run(12 * SECOND)
    assert len(rig.system.looked_up) == 6


def test_a_destination_without_an_address_gets_one(rig):
    rig.watch(address=None)
    rig.run(7 * SECOND)
    assert rig.changes == [FIRST]


def test_a_failed_lookup_is_an_error_and_repeated(rig):
    rig.watch(key="control")
    del rig.system.hosts["far"]
    rig.run(13 * SECOND)
    assert len(rig.errors) == 2
    assert rig.errors[0][0] == 9
    assert "control=far" in rig.errors[0][1]
    assert rig.changes == []


@pytest.mark.parametrize("name", ["10.0.0.1:40123", "[::1]:40123"])
def test_numeric_addresses_are_not_looked_up(rig, name):
    rig.watch(name)
    rig.run(20 * SECOND)
    assert rig.system.looked_up == []


def test_a_name_that_is_no_longer_watched_is_not_looked_up(rig):
    watched, other = rig.watch(), rig.watch()
    rig.reresolution.unwatch(watched)
    rig.reresolution.unwatch(watched)
    rig.system.hosts["far"] = "10.0.0.2"
    rig.run(7 * SECOND)
    assert rig.changes == [SECOND_ADDRESS]
    assert (watched.address, other.address) == (FIRST, SECOND_ADDRESS)


def test_a_result_that_arrives_after_the_end_is_dropped(rig):
    watched = rig.watch()
    rig.system.hosts["far"] = "10.0.0.2"
    while watched.lookup is None:
        rig.clock.advance(SECOND)
        rig.reresolution.do_work(rig.clock.now_ns())
    rig.reresolution.unwatch(watched)
    rig.turn()
    assert rig.system.looked_up == ["far"]
    assert rig.changes == []


def test_a_name_has_one_lookup_at_a_time(rig):
    rig.watch(retries_each_check=True)
    for _ in range(30):
        rig.clock.advance(SECOND)
        rig.reresolution.do_work(rig.clock.now_ns())
    rig.lookups.complete()
    assert rig.system.looked_up == ["far"]


def test_a_change_handler_may_end_the_watch(rig):
    watched = rig.watch()

    def end(address):
        rig.changes.append("ended")
        rig.reresolution.unwatch(watched)

    watched.set_address = end
    rig.watch()
    rig.system.hosts["far"] = "10.0.0.2"
    rig.run(7 * SECOND)
    assert rig.changes == ["ended", SECOND_ADDRESS]


def test_a_report_of_silence_causes_one_lookup_at_a_time(rig):
    watched = rig.watch(last_activity_ns=None)
    rig.run(20 * SECOND)
    assert rig.system.looked_up == []
    rig.system.hosts["far"] = "10.0.0.2"
    rig.reresolution.request_lookup(watched)
    rig.reresolution.request_lookup(watched)
    rig.turn()
    assert rig.system.looked_up == ["far"]
    assert rig.changes == [SECOND_ADDRESS]
    rig.reresolution.request_lookup(watched)
    rig.turn()
    assert rig.system.looked_up == ["far"] * 2


def test_a_report_about_a_closed_or_numeric_name_is_ignored(rig):
    watched = rig.watch(last_activity_ns=None)
    rig.reresolution.unwatch(watched)
    number = rig.watch("10.0.0.1:40123", last_activity_ns=None)
    for each in (watched, number):
        rig.reresolution.request_lookup(each)
    rig.turn()
    assert rig.system.looked_up == []
    assert watched.lookup is number.lookup is None


def test_an_interval_of_zero_disables_lookups():
    rig = Rig(interval_ns=0)
    rig.watch()
    rig.run(20 * SECOND)
    assert rig.system.looked_up == []


def test_a_change_that_fails_is_an_error_and_retried(rig):
    watched = rig.watch()

    def fail(address):
        watched.set_address = rig.changes.append
        raise DriverError(f"cannot reconnect to {address}")

    watched.set_address = fail
    rig.system.hosts["far"] = "10.0.0.2"
    rig.run(7 * SECOND)
    assert rig.errors == [(11, "cannot reconnect to 10.0.0.2:40123")]
    assert watched.address == FIRST
    rig.run(6 * SECOND)
    assert rig.changes == [SECOND_ADDRESS]
    assert watched.address == SECOND_ADDRESS
