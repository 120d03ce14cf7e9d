"""One of several publishers waits for the start signal, whenever it arrives."""

import os
import signal
import threading

import pytest

from windtunnel.harness.workload.start import Start
from windtunnel.harness.workload.stop import Stop, Stopped


@pytest.fixture(autouse=True)
def handler():
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def test_reports_that_it_is_ready_and_continues_after_the_signal(capsys):
    start = Start()
    word = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    word.start()
    start.wait(Stop())
    word.join()
    assert capsys.readouterr().out == "ready\n"


def test_an_earlier_signal_is_not_lost():
    start = Start()
    os.kill(os.getpid(), signal.SIGUSR1)
    start.wait(Stop())
    assert start.given


def test_a_request_to_end_ends_the_wait():
    start, stop = Start(), Stop()
    stop.request(signal.SIGTERM)
    with pytest.raises(Stopped):
        start.wait(stop)
