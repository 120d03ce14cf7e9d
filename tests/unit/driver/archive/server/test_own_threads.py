"""Interleavings of agents, as if each had its own thread: one may run many duty cycles during
another's.

    conductor   reads requests, runs replications | finishes recordings, replays
    recorder                             many duty cycles
    replayer                                                           half a duty cycle

The test chooses which agent runs next, so that rare interleavings occur in every run.
"""

import pytest

from tests.unit.driver.archive.server.own_copy import LINGERED, SOURCE_ID, UDP, replicate, until_end
from tests.unit.driver.archive.server.own_stream import FRAME, IPC, STREAM, Reader, continuing
from windtunnel.driver.archive.protocol.requests import TruncateRecordingRequest
from windtunnel.driver.archive.replication.replication_session import State

TURNS = 5


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("channel", [UDP, "aeron:ipc"])
def test_the_end_of_a_replication_is_signalled_before_that_of_its_recording(
    two, monkeypatch, channel
):
    """Even if the recorder sees the end of the replay during the conductor's duty cycle."""
    env, client, source = two
    recordings = env.archive._conductor._operations.recordings
    finish = recordings.finish

    def after_others():
        for _ in range(TURNS):
            env.others[0].invoke()
            env.world.driver.turn(1)
            env.archive._recorder.do_work(env.clock.now_ns())
        return finish()

    monkeypatch.setattr(recordings, "finish", after_others)
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    env.run_for(LINGERED)
    copied = replicate(client, replication_channel=channel)
    assert until_end(env, client, copied.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("SYNC", 0, end),
        ("REPLICATE_END", 0, -1), ("STOP", 0, end),
    ]  # fmt: skip


def test_a_replay_may_end_before_the_response_to_its_request(two):
    env, client, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    env.run_for(LINGERED)
    copied = replicate(client, replication_channel="aeron:ipc")
    (copy,) = env.archive._conductor._operations.replications._running.values()
    ask = copy._turns[State.REPLAY]

    def late():
        is_over = any(each.image.is_closed for each in copy._recording.stream.active)
        return ask() if copy._correlation_id is None or is_over else 0

    copy._turns[State.REPLAY] = late
    assert until_end(env, client, copied.relevant_id, "STOP")[3:] == [
        ("SYNC", 0, end), ("REPLICATE_END", 0, -1), ("STOP", 0, end)
    ]  # fmt: skip


def test_an_aborted_replay_sends_no_error(env, client):
    """Even if its file was truncated before the replayer read it."""
    client.stopped_recording(300)
    reader = Reader(client)
    response = client.request_replay(0)
    env.until(lambda: reader.subscription.images)
    env.run_for(100_000_000)
    (run,) = (each.run for each in env.archive._conductor._operations.replays.of(0))
    client.send(TruncateRecordingRequest, recording_id=0, position=FRAME)
    now_ns = env.clock.now_ns()
    env.archive._conductor.do_work(now_ns)
    reader.poll()
    env.world.driver.turn(1)
    run.do_work(now_ns)
    assert run.failure
    env.run_for(100_000_000)
    assert client.summaries(response.correlation_id) == [("OK", response.relevant_id)]
    assert any(run.failure in each for each in env.errors)


@pytest.mark.parametrize("turns", [0, TURNS], ids=["late", "early"])
def test_a_stream_that_returns_continues_its_recording(env, client, turns):
    """Whether or not the recorder has seen the end of the previous stream."""
    first = client.stopped_recording(10)
    initial_term_id = first.publication.initial_term_id
    order = client.extend(0, IPC)
    one = client.aeron.add_exclusive_publication(continuing(first.end, initial_term_id), STREAM)
    env.until(lambda: ("EXTEND", 0, first.end) in client.summaries(order.correlation_id))
    end = client.publish(one, 10, first=10)
    client.recorded(0, end)
    one.close()
    other = client.aeron.add_exclusive_publication(continuing(end, initial_term_id), STREAM)
    for _ in range(turns):
        env.archive._recorder.do_work(env.clock.now_ns())
    last = client.publish(other, 10, first=20)
    client.recorded(0, last)
    assert client.summaries(order.correlation_id) == [
        ("OK", order.relevant_id), ("EXTEND", 0, first.end), ("STOP", 0, end), ("EXTEND", 0, end)
    ]  # fmt: skip
