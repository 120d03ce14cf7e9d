"""Lookups by the operating system, with and without a thread."""

import threading
import time

import pytest

from tests.unit.driver.media_driver.name_resolution.rig import NameService
from windtunnel.driver.base.clock import ManualClock, SystemClock
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.media_driver.name_resolution.lookups import Lookups


class BlockingNameService(NameService):
    """A name service that blocks until the test opens it."""

    def __init__(self, clock, **hosts):
        super().__init__(clock, **hosts)
        self.open = threading.Event()
        self.free = set()
        """The hosts that are resolved at once."""
        self.threads = set()

    def resolve(self, host, key):
        self.threads.add(threading.current_thread())
        assert host in self.free or self.open.wait(30)
        return super().resolve(host, key)


@pytest.fixture
def service():
    return BlockingNameService(ManualClock(), one="10.0.0.1", two="10.0.0.2")


def collected(lookups, count):
    deadline_s = time.monotonic() + 30
    while count > 0:
        count -= lookups.collect()
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_slow_results_are_collected_later_and_in_order(service):
    lookups = Lookups(service, SystemClock(), is_threaded=True)
    done = []
    first = lookups.submit("one", "endpoint", on_done=done.append)
    second = lookups.submit("two", "endpoint", on_done=done.append)
    assert lookups.collect() == 0
    assert not first.is_done
    service.open.set()
    collected(lookups, 2)
    assert done == [first, second]
    assert (first.result(), second.result()) == (("10.0.0.1", 0), ("10.0.0.2", 0))
    assert first.duration_ns > 0
    assert threading.current_thread() not in service.threads
    lookups.close()


def test_an_unresolved_name_delays_no_other_name(service):
    service.free = {"two"}
    lookups = Lookups(service, SystemClock(), is_threaded=True, workers_max=2)
    first, second = lookups.submit("one", "endpoint"), lookups.submit("two", "endpoint")
    collected(lookups, 1)
    assert second.result() == ("10.0.0.2", 0)
    assert not first.is_done
    service.open.set()
    collected(lookups, 1)
    assert first.result() == ("10.0.0.1", 0)
    lookups.close()


def test_there_are_no_more_workers_than_lookups_in_progress_and_than_the_limit(service):
    service.open.set()
    lookups = Lookups(service, SystemClock(), is_threaded=True, workers_max=3)
    for _ in range(5):
        lookups.submit("one", "endpoint")
        collected(lookups, 1)
    assert len(service.threads) == 1
    service.open.clear()
    for _ in range(5):
        lookups.submit("two", "endpoint")
    service.open.set()
    collected(lookups, 5)
    assert len(service.threads) <= 3
    lookups.close()


def test_a_result_is_available_only_once_it_was_collected(service):
    service.open.set()
    lookups = Lookups(service, SystemClock(), is_threaded=True)
    lookup = lookups.submit("one", "endpoint")
    lookups.close()
    # The worker ends by itself after its result, and may have ended by now.
    for thread in threading.enumerate():
        if thread.name == "windtunnel-names":
            thread.join(30)
    assert not lookup.is_done
    assert lookups.collect() == 1
    assert lookup.is_done


def test_closing_does_not_wait_for_lookups(service):
    lookups = Lookups(service, SystemClock(), is_threaded=True)
    lookups.submit("one", "endpoint")
    lookups.close()
    service.open.set()


def test_without_a_thread_the_result_is_available_at_once(service):
    service.open.set()
    lookups = Lookups(service, ManualClock(), is_threaded=False)
    assert lookups.submit("one", "endpoint").result() == ("10.0.0.1", 0)
    assert service.threads == {threading.current_thread()}


def test_a_failure_contains_the_name_and_its_parameter(service):
    service.open.set()
    lookups = Lookups(service, ManualClock(), is_threaded=False)
    with pytest.raises(UnknownHostError, match=r"^endpoint=none: unknown host$"):
        lookups.submit("none", "endpoint").result()
    with pytest.raises(UnknownHostError, match=r"^endpoint=alias: endpoint=none: unknown host$"):
        lookups.submit("none", "endpoint", "alias").result()


def test_an_error_of_the_name_service_fails_one_lookup_only(service):
    service.open.set()

    def break_once(host, key):
        del service.resolve
        raise RuntimeError("broken")

    service.resolve = break_once
    lookups = Lookups(service, SystemClock(), is_threaded=True)
    broken, fine = lookups.submit("one", "endpoint"), lookups.submit("one", "endpoint")
    collected(lookups, 2)
    with pytest.raises(UnknownHostError, match=r"^endpoint=one: broken$"):
        broken.result()
    assert fine.result() == ("10.0.0.1", 0)
    lookups.close()
