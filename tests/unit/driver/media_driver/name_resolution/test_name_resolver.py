"""The conductor's resolver: immediate results, pending lookups, and measured durations."""

import pytest

from tests.unit.driver.media_driver.name_resolution.rig import (
    FIRST_FREE,
    MS,
    CounterFile,
    HeldLookups,
    NameService,
    make_clock,
)
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.media_driver.agent.system_counters import (
    NAME_RESOLVER_MAX_TIME,
    NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED,
)
from windtunnel.driver.media_driver.command_error import CommandPendingError
from windtunnel.driver.media_driver.name_resolution.csv_table import CsvTable, parse_table
from windtunnel.driver.media_driver.name_resolution.name_resolver import (
    EmptyNameSource,
    NameResolver,
)

KEY = "endpoint"
TABLE = "moved,10.0.0.8,10.0.0.9|named,one,two"


class Rig:
    def __init__(self, names=None):
        self.clock = make_clock()
        self.file = CounterFile(self.clock)
        self.system = NameService(self.clock, one="10.0.0.1", two="10.0.0.2")
        self.commands, self.background = (HeldLookups(self.system, self.clock) for _ in range(2))
        table = CsvTable(parse_table(TABLE), self.file.manager, self.file.values)
        self.resolver = NameResolver(
            table if names is None else names, self.system, self.commands, self.background,
            self.file.values, self.clock, 5 * MS,
        )  # fmt: skip

    @property
    def measured(self):
        return (
            self.file.get(NAME_RESOLVER_MAX_TIME),
            self.file.get(NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED),
        )


@pytest.fixture
def rig():
    return Rig()


def test_a_numeric_address_needs_no_lookup(rig):
    assert rig.resolver.resolve("10.1.2.3", KEY) == ("10.1.2.3", 0)
    assert rig.resolver.resolve("fe80::1%3", KEY) == ("fe80::1", 3)
    assert rig.system.looked_up == []


def test_a_command_waits_for_one_lookup_of_each_of_its_names(rig):
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    assert rig.resolver.resolve("one", KEY) == ("10.0.0.1", 0)
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("two", "control")
    rig.commands.complete()
    assert rig.resolver.resolve("one", KEY) == ("10.0.0.1", 0)
    assert rig.resolver.resolve("two", "control") == ("10.0.0.2", 0)
    assert rig.system.looked_up == ["one", "two"]


def test_the_next_command_looks_the_name_up_again(rig):
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    rig.resolver.resolve("one", KEY)
    rig.resolver.on_command_end()
    rig.system.hosts["one"] = "10.7.7.7"
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    assert rig.resolver.resolve("one", KEY) == ("10.7.7.7", 0)


def test_a_failure_is_raised_for_the_command_and_for_its_next_attempt(rig):
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("none", KEY)
    rig.commands.complete()
    for _ in range(2):
        with pytest.raises(UnknownHostError, match="endpoint=none"):
            rig.resolver.resolve("none", KEY)


def test_a_table_may_resolve_a_name_or_substitute_another_host(rig):
    assert rig.resolver.resolve("moved", KEY) == ("10.0.0.8", 0)
    rig.file.set(FIRST_FREE, 1)
    assert rig.resolver.submit("moved", KEY).result() == ("10.0.0.9", 0)
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("named", KEY)
    rig.commands.complete()
    assert rig.resolver.resolve("named", KEY) == ("10.0.0.1", 0)


def test_a_disabled_name_fails_at_once_and_never_reaches_the_system(rig):
    rig.file.set(FIRST_FREE, -1)
    with pytest.raises(UnknownHostError, match="forced"):
        rig.resolver.resolve("moved", KEY)
    with pytest.raises(UnknownHostError, match="forced"):
        rig.resolver.submit("moved", KEY).result()
    assert rig.system.looked_up == []


def test_repeated_lookups_have_their_own_queue(rig):
    again = rig.resolver.submit("two", KEY)
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    assert rig.resolver.resolve("one", KEY) == ("10.0.0.1", 0)
    assert not again.is_done
    rig.background.complete()
    assert rig.resolver.do_work(0) == 1
    assert again.result() == ("10.0.0.2", 0)
    assert rig.resolver.submit("::1", KEY).result() == ("::1", 0)


@pytest.mark.parametrize(("duration_ns", "exceeded"), [(5 * MS, 0), (5 * MS + 1, 1)])
def test_lookup_durations_are_counted_before_the_result_is_used(rig, duration_ns, exceeded):
    rig.system.duration_ns = duration_ns
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    rig.resolver.resolve("one", KEY)
    assert rig.measured == (duration_ns, exceeded)
    rig.resolver.on_command_end()
    rig.system.duration_ns = MS
    with pytest.raises(CommandPendingError):
        rig.resolver.resolve("one", KEY)
    rig.commands.complete()
    rig.resolver.resolve("one", KEY)
    assert rig.measured == (duration_ns, exceeded)


def test_lookups_in_a_table_are_measured():
    class Slow(EmptyNameSource):
        def substitute(self, host, key):
            rig.clock.advance(9 * MS)
            return "10.0.0.1"

    rig = Rig(Slow())
    rig.resolver.resolve("one", KEY)
    assert rig.measured == (9 * MS, 1)


def test_name_sources_run_in_the_duty_cycle_and_are_closed(rig):
    class Busy(EmptyNameSource):
        is_closed = False

        def do_work(self, now_ns):
            return now_ns

        def close(self):
            self.is_closed = True

    names = Busy()
    rig = Rig(names)
    assert rig.resolver.do_work(3) == 3
    rig.resolver.close()
    assert names.is_closed
    assert rig.resolver.interfaces() == []


@pytest.mark.parametrize("is_polled", [True, False])
def test_name_sources_that_need_polling_are_polled(is_polled):
    class Names(EmptyNameSource):
        pass

    Names.is_polled = is_polled
    assert Rig(Names()).resolver.is_polled is is_polled


def test_lookups_are_polled_until_their_results_are_collected(rig):
    assert not rig.resolver.is_polled
    lookup = rig.resolver.submit("one", KEY)
    assert rig.resolver.is_polled
    rig.background.complete()
    rig.resolver.do_work(0)
    assert lookup.result() == ("10.0.0.1", 0)
    assert not rig.resolver.is_polled
