"""Interleavings of agents in separate threads, where one may run many duty cycles during another's.

    conductor   reads requests, runs replications | finishes recordings, replays
    recorder                             many turns
    replayer                                                           half a turn

The test chooses which agent runs next, so that rare interleavings happen every time.
"""

import pytest

from tests.unit.driver.archive.server.own_copy import LINGERED, SOURCE_ID, UDP, replicate, until_end
from tests.unit.driver.archive.server.own_stream import FRAME, IPC, STREAM, Reader, continuing
from windtunnel.driver.archive.protocol.requests import TruncateRecordingRequest
from windtunnel.driver.archive.replication.replication_session import State

TURNS = 5


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("channel", [UDP, "aeron:ipc"])
def test_the_end_of_a_copy_is_told_before_its_recordings(two, monkeypatch, channel):
    """Though the recorder sees the end of the replay during the conductor's duty cycle."""
    own, talker, source = two
    recordings = own.archive._conductor._operations.recordings
    finish = recordings.finish

    def after_others():
        for _ in range(TURNS):
            own.others[0].invoke()
            own.made.driver.turn(1)
            own.archive._recorder.do_work(own.clock.now_ns())
        return finish()

    monkeypatch.setattr(recordings, "finish", after_others)
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    own.run_for(LINGERED)
    copied = replicate(talker, replication_channel=channel)
    assert until_end(own, talker, copied.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("SYNC", 0, end),
        ("REPLICATE_END", 0, -1), ("STOP", 0, end),
    ]  # fmt: skip


def test_a_replay_may_be_over_before_the_answer_that_promised_it(two):
    own, talker, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    own.run_for(LINGERED)
    copied = replicate(talker, replication_channel="aeron:ipc")
    (copy,) = own.archive._conductor._operations.replications._running.values()
    ask = copy._turns[State.REPLAY]

    def late():
        is_over = any(each.image.is_closed for each in copy._stream.active)
        return ask() if copy._correlation_id is None or is_over else 0

    copy._turns[State.REPLAY] = late
    assert until_end(own, talker, copied.relevant_id, "STOP")[3:] == [
        ("SYNC", 0, end), ("REPLICATE_END", 0, -1), ("STOP", 0, end)
    ]  # fmt: skip


def test_a_replay_that_was_aborted_has_not_failed(own, talker):
    """Though its file was truncated before the replayer read it."""
    talker.stopped_recording(300)
    reader = Reader(talker)
    answer = talker.ask_replay(0)
    own.until(lambda: reader.subscription.images)
    own.run_for(100_000_000)
    (run,) = (each.run for each in own.archive._conductor._operations.replays.of(0))
    talker.send(TruncateRecordingRequest, recording_id=0, position=FRAME)
    now_ns = own.clock.now_ns()
    own.archive._conductor.do_work(now_ns)
    reader.poll()
    own.made.driver.turn(1)
    run.do_work(now_ns)
    assert run.failure
    own.run_for(100_000_000)
    assert talker.about(answer.correlation_id) == [("OK", answer.relevant_id)]
    assert any(run.failure in each for each in own.errors)


@pytest.mark.parametrize("turns", [0, TURNS], ids=["late", "early"])
def test_a_stream_that_comes_again_goes_on_in_its_recording(own, talker, turns):
    """Whether or not the recorder has seen the end of the previous stream."""
    first = talker.stopped_recording(10)
    initial_term_id = first.publication.initial_term_id
    order = talker.extend(0, IPC)
    one = talker.client.add_exclusive_publication(continuing(first.end, initial_term_id), STREAM)
    own.until(lambda: ("EXTEND", 0, first.end) in talker.about(order.correlation_id))
    end = talker.publish(one, 10, first=10)
    talker.recorded(0, end)
    one.close()
    other = talker.client.add_exclusive_publication(continuing(end, initial_term_id), STREAM)
    for _ in range(turns):
        own.archive._recorder.do_work(own.clock.now_ns())
    last = talker.publish(other, 10, first=20)
    talker.recorded(0, last)
    assert talker.about(order.correlation_id) == [
        ("OK", order.relevant_id), ("EXTEND", 0, first.end), ("STOP", 0, end), ("EXTEND", 0, end)
    ]  # fmt: skip
