"""A wish to end that may come at any moment, in the midst of the waiting for it."""

import subprocess
import sys
import threading
from pathlib import Path

from windtunnel.driver.base.shutdown_signal import ShutdownSignal

ROOT = Path(__file__).resolve().parents[4]
NOTES = 10_000
LIMIT_S = 120

ASKED_AT_ANY_MOMENT = f"""
import random, signal
from windtunnel.driver.base.shutdown_signal import StopNote

note = StopNote()
signal.signal(signal.SIGALRM, lambda *_: note.leave())
for _ in range({NOTES}):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-4))
    while not note.wait(1e-6):
        pass
    note = StopNote()
"""


def test_nobody_asked():
    note = ShutdownSignal()
    assert not note.is_left
    assert not note.wait(0)


def test_what_was_asked_stays_asked():
    note = ShutdownSignal()
    note.leave()
    assert note.is_left
    assert note.wait(0)
    assert note.wait()


def test_everybody_who_waits_hears_of_it():
    note = ShutdownSignal()
    heard = []
    waiting = [threading.Thread(target=lambda: heard.append(note.wait(LIMIT_S))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    note.leave()
    for thread in waiting:
        thread.join(LIMIT_S)
    assert heard == [True] * 3


def test_a_signal_may_interrupt_the_waiting_anywhere():
    command = [sys.executable, "-c", ASKED_AT_ANY_MOMENT]
    # With an event of `threading` in its place this stands still after some hundred signals.
    subprocess.run(command, cwd=ROOT, timeout=LIMIT_S, check=True)
