"""A shutdown request that may arrive at any moment, including while a thread waits for it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from windtunnel.driver.base.shutdown_signal import ShutdownSignal

ROOT = Path(__file__).resolve().parents[4]
SIGNALS = 10_000
LIMIT_S = 120

SET_AT_ANY_MOMENT = f"""
import random, signal
from windtunnel.driver.base.shutdown_signal import ShutdownSignal

shutdown = ShutdownSignal()
signal.signal(signal.SIGALRM, lambda *_: shutdown.set())
for _ in range({SIGNALS}):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-4))
    while not shutdown.wait(1e-6):
        pass
    shutdown = ShutdownSignal()
"""


def test_is_not_set_at_first():
    shutdown = ShutdownSignal()
    assert not shutdown.is_set
    assert not shutdown.wait(0)


def test_stays_set():
    shutdown = ShutdownSignal()
    shutdown.set()
    assert shutdown.is_set
    assert shutdown.wait(0)
    assert shutdown.wait()


def test_wakes_every_waiting_thread():
    shutdown = ShutdownSignal()
    results = []
    waiting = [
        threading.Thread(target=lambda: results.append(shutdown.wait(LIMIT_S))) for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    shutdown.set()
    for thread in waiting:
        thread.join(LIMIT_S)
    assert results == [True] * 3


@pytest.mark.parametrize("is_ignored", [False, True])
def test_nohup_protects_from_sighup(is_ignored):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
        shutdown = ShutdownSignal.on_signals()
        assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGHUP)
        assert shutdown.is_set is not is_ignored
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_a_signal_may_interrupt_wait_anywhere():
    command = [sys.executable, "-c", SET_AT_ANY_MOMENT]
    # A `threading.Event` in its place deadlocks after some hundred signals.
    subprocess.run(command, cwd=ROOT, timeout=LIMIT_S, check=True)
