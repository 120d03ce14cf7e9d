"""The watch on virtual time: the time and the place that it reports."""

import itertools
import threading
import time

import pytest

from windtunnel.harness.simulator.turn_watch import TurnWatch

LIMIT_S = 5.0
PATIENCE_S = 60.0


class Watched:
    """A watch whose clocks advance by one step each time that they are read."""

    def __init__(self, ns_per_look=0, cpu_s_per_look=1.0):
        self.has_reported = threading.Event()
        self.looked = threading.Semaphore(0)
        self.found = []
        times, spent = itertools.count(0, ns_per_look), itertools.count(0.0, cpu_s_per_look)

        def cpu_s():
            self.looked.release()
            return next(spent)

        self.watch = TurnWatch(
            lambda: next(times), self._note, cpu_s=cpu_s, limit_s=LIMIT_S, poll_s=0.001
        )

    def _note(self, cpu_s, frame):
        self.found.append((cpu_s, frame.f_code.co_name))
        self.has_reported.set()

    def look(self, count):
        for _ in range(count):
            assert self.looked.acquire(timeout=PATIENCE_S)


def test_reports_cpu_time_and_place_once_the_limit_is_exceeded():
    watched = Watched()
    with watched.watch:
        assert watched.has_reported.wait(PATIENCE_S)
    ((cpu_s, _),) = watched.found
    assert cpu_s == LIMIT_S + 1


@pytest.mark.parametrize(("ns", "cpu_s"), [(1, 1.0), (0, 0.0)], ids=["time moves", "no work"])
def test_reports_nothing_while_time_advances_or_no_cpu_time_is_used(ns, cpu_s):
    watched = Watched(ns, cpu_s)
    with watched.watch:
        watched.look(20)
    assert not watched.found


def as_the_compiler(work):
    """Call a function from one whose module has the name of the compiler."""
    space = {"__name__": "numba.core.compiler", "work": work}
    exec("def compile_it():\n    work()", space)
    space["compile_it"]()


@pytest.mark.parametrize(("call", "count"), [(as_the_compiler, 0), (lambda work: work(), 1)])
def test_does_not_count_compilation(call, count):
    watched = Watched()

    # All CPU time of the watch is that of the compiler, however long its start takes.
    def work():
        with watched.watch:
            watched.look(20)

    call(work)
    assert len(watched.found) == count


def test_default_clock_is_cpu_time_of_the_process():
    watch = TurnWatch(lambda: 0, lambda *_: None)
    assert watch._cpu_s is time.process_time


def test_one_thread_serves_all_watches_and_ends_after_the_last():
    first, second = Watched(ns_per_look=1), Watched(ns_per_look=1)
    first.watch._poll_s = second.watch._poll_s = 0.002
    before = set(threading.enumerate())
    for _ in range(2):
        with first.watch, second.watch:
            first.look(2)
            second.look(2)
            (thread,) = set(threading.enumerate()) - before
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
