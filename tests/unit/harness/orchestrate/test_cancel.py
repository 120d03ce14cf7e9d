"""A signal becomes one exception, which is not raised within shielded blocks."""

import os
import signal
import threading

import pytest

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled, shielded


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_raises_with_its_exit_code(number, exit_code):
    with Cancellation(), pytest.raises(Cancelled) as caught:
        send(number)
    assert caught.value.exit_code == exit_code
    assert signal.Signals(number).name in str(caught.value)


def test_a_shielded_block_runs_to_its_end_first():
    done = []

    def work(cancellation):
        with cancellation.shielded():
            send(signal.SIGINT)
            done.append("work")
        done.append("never")

    with Cancellation() as cancellation, pytest.raises(Cancelled):
        work(cancellation)
    assert done == ["work"]


def test_code_without_the_cancellation_can_shield_itself():
    done = []

    def work():
        with shielded():
            send(signal.SIGINT)
            done.append("work")
        done.append("never")

    with Cancellation(), pytest.raises(Cancelled):
        work()
    assert done == ["work"]
    # A process that a shell starts in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), shielded():
            send(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_nested_shields_end_with_the_outermost():
    done = []

    def work(cancellation):
        with cancellation.shielded():
            with cancellation.shielded():
                send(signal.SIGINT)
            done.append("still shielded")

    with Cancellation() as cancellation, pytest.raises(Cancelled):
        work(cancellation)
    assert done == ["still shielded"]


def test_only_the_first_signal_counts():
    with Cancellation() as cancellation:
        with pytest.raises(Cancelled):
            send(signal.SIGTERM)
        send(signal.SIGINT)
        with cancellation.shielded():
            send(signal.SIGINT)


def test_the_previous_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with Cancellation():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_may_use_it_without_handlers():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work():
        with Cancellation() as cancellation, cancellation.shielded():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("is_ignored", [False, True])
def test_nohup_protects_from_sighup(is_ignored):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    caught = []
    try:
        with Cancellation():
            assert (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN) is is_ignored
            send(signal.SIGHUP)
    except Cancelled as cancelled:
        caught.append(cancelled.signal_number)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert caught == ([] if is_ignored else [signal.SIGHUP])
