"""The recorder: its sessions and its two queues."""

from windtunnel.driver.archive.recording.recorder import Recorder


class Session:
    """A session with a number of blocks to record."""

    def __init__(self, blocks):
        self.blocks, self.is_done, self.stops = blocks, False, 0

    def do_work(self):
        if self.blocks == 0:
            self.stop()
            return 0
        self.blocks -= 1
        return 1

    def stop(self):
        self.stops += not self.is_done
        self.is_done = True


def test_sessions_run_in_turn_and_end_once():
    turns = []
    recorder, short, long = Recorder(turns.append), Session(1), Session(3)
    recorder.add(short)
    recorder.add(long)
    assert recorder.do_work(10) == 4
    assert (short.blocks, long.blocks) == (0, 2)
    assert recorder.take_ended() is None
    assert recorder.do_work(20) == 1
    assert recorder.take_ended() is short
    assert recorder.take_ended() is None
    assert turns == [10, 20]


def test_a_session_is_stopped_in_the_recorders_duty_cycle():
    recorder, session = Recorder(), Session(5)
    recorder.add(session)
    recorder.stop(session)
    assert not session.is_done
    recorder.do_work(0)
    assert recorder.take_ended() is session
    recorder.stop(session)
    recorder.do_work(0)
    assert recorder.take_ended() is None
    assert session.stops == 1


class Broken(Session):
    """A session whose `stop` raises an error."""

    def stop(self):
        self.is_done = True
        raise ZeroDivisionError

    def fail(self, error):
        self.failure = error


def test_a_session_that_fails_to_stop_does_not_keep_others_from_ending():
    recorder, broken, other = Recorder(), Broken(5), Session(5)
    recorder.add(broken)
    recorder.stop(broken)
    recorder.add(other)
    recorder.do_work(0)
    assert recorder.take_ended() is broken
    assert other.blocks == 4
    recorder.add(Broken(5))
    recorder.do_work(0)
    recorder.close()
    assert other.stops == 1
    assert isinstance(broken.failure, ZeroDivisionError)


def test_closing_ends_running_and_waiting_sessions():
    recorder, running, waiting = Recorder(), Session(5), Session(5)
    recorder.add(running)
    recorder.do_work(0)
    recorder.add(waiting)
    recorder.close()
    assert {recorder.take_ended(), recorder.take_ended()} == {running, waiting}
    assert running.is_done
    assert waiting.is_done
