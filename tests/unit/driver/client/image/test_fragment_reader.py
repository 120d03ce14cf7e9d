"""Actions, bounds, peeks, batches and compiled handlers, compared with a simple reference."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import polling as naive
from tests.unit.driver.client.compiled_handlers import answer_from, count_bytes, fail_at_third
from tests.unit.driver.client.own_stream import MTU, SESSION_ID, STREAM_ID, TERM_LENGTH, OwnStream
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.header import Action
from windtunnel.driver.client.image.log_reader import FRAMES_PER_WALK
from windtunnel.driver.logbuffer import descriptor

ONE = 64  # what a message of up to 32 bytes occupies
FRAMES = st.lists(st.tuples(st.binary(max_size=70), st.booleans()), max_size=12)
ANSWERS = st.lists(st.sampled_from(list(Action)), max_size=12)


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


def never(*_):
    raise AssertionError("a closed image was read")


def collect(stream, limit=10):
    seen = []
    stream.image.poll(lambda payload, header: seen.append(bytes(payload)), limit)
    return seen


class ScriptedHandler:
    """A controlled handler that returns the given actions and records its fragments."""

    def __init__(self, stream, actions=()):
        self._stream, self._actions = stream, list(actions)
        self.handed, self.positions, self.counted = [], [], []

    def __call__(self, payload, header):
        self.handed.append(bytes(payload))
        self.positions.append(header.position)
        self.counted.append(self._stream.counted_position())
        return self._actions.pop(0) if self._actions else None


def written(frames, position):
    """A stream with these frames, and an image at `position`."""
    with tempfile.TemporaryDirectory() as folder:
        stream = OwnStream(Path(folder))
    for payload, is_padding in frames:
        if is_padding:
            stream.pad(len(payload))
        else:
            stream.write(payload)
    stream.image.position = position
    return stream


def positions_in(frames):
    ends = np.cumsum([0] + [naive.occupied(payload) for payload, _ in frames])
    return st.sampled_from(ends.tolist())


@settings(deadline=None, max_examples=60)
@given(FRAMES, ANSWERS, st.integers(0, 12), st.data())
def test_a_controlled_poll_agrees_with_the_reference(frames, actions, fragment_limit, data):
    position = data.draw(positions_in(frames))
    limit = data.draw(positions_in(frames)) + data.draw(st.integers(-40, 40))
    stream = written(frames, position)
    handler = ScriptedHandler(stream, actions)
    count = stream.image.bounded_controlled_poll(handler, limit, fragment_limit)
    handed, positions, expected, reached, _ = naive.controlled_poll(
        frames, position, limit, fragment_limit, [action.name for action in actions]
    )
    assert (handler.handed, handler.positions, count) == (handed, positions, expected)
    assert stream.image.position == reached == stream.counted_position()


@settings(deadline=None, max_examples=40)
@given(FRAMES, st.integers(0, 12), st.data())
def test_a_bounded_poll_agrees_with_the_reference(frames, fragment_limit, data):
    position = data.draw(positions_in(frames))
    limit = data.draw(positions_in(frames)) + data.draw(st.integers(-40, 40))
    stream = written(frames, position)
    handler = ScriptedHandler(stream)
    count = stream.image.bounded_poll(handler, limit, fragment_limit)
    handed, positions, expected, reached, _ = naive.controlled_poll(
        frames, position, limit, fragment_limit, []
    )
    assert (handler.handed, handler.positions, count) == (handed, positions, expected)
    assert stream.image.position == reached


@settings(deadline=None, max_examples=40)
@given(FRAMES, ANSWERS, st.data())
def test_a_peek_agrees_with_the_reference_and_keeps_the_position(frames, actions, data):
    position = data.draw(positions_in(frames))
    initial = max(position, data.draw(positions_in(frames)))
    limit = data.draw(positions_in(frames))
    stream = written(frames, position)
    handler = ScriptedHandler(stream, actions)
    reached = stream.image.controlled_peek(initial, handler, limit)
    expected = naive.peek(frames, initial, limit, [action.name for action in actions])
    assert (handler.handed, reached) == expected
    assert stream.image.position == position == stream.counted_position()


@settings(deadline=None, max_examples=40)
@given(FRAMES, st.integers(0, 12), st.integers(1, 12), st.data())
def test_a_batch_holds_the_fragments_of_a_poll(frames, fragment_limit, fragments_max, data):
    position = data.draw(positions_in(frames))
    stream = written(frames, position)
    batch = FragmentBatch(fragments_max, MTU)
    added = stream.image.poll_batch(batch, fragment_limit)
    handed, positions, count, reached, _ = naive.controlled_poll(
        frames, position, 1 << 60, min(fragment_limit, fragments_max), []
    )
    assert [bytes(batch[index]) for index in range(len(batch))] == handed
    assert batch.fragments["position"][:added].tolist() == positions
    assert (added, batch.count, batch.used_bytes) == (count, count, sum(map(len, handed)))
    assert stream.image.position == reached == stream.counted_position()


def test_commit_publishes_the_position_during_the_poll(stream):
    stream.write(b"1", b"2", b"3")
    handler = ScriptedHandler(stream, [Action.CONTINUE, Action.COMMIT, Action.CONTINUE])
    assert stream.image.controlled_poll(handler) == 3
    assert handler.counted == [0, 0, 2 * ONE]
    assert stream.counted_position() == 3 * ONE


def test_an_aborted_fragment_is_delivered_again(stream):
    stream.write(b"1", b"2")
    assert stream.image.controlled_poll(ScriptedHandler(stream, [None, Action.ABORT])) == 1
    assert stream.counted_position() == ONE
    assert collect(stream) == [b"2"]


def test_a_fragment_counts_as_consumed_when_its_controlled_handler_raises(stream):
    stream.write(b"1", b"2")

    def handler(payload, header):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        stream.image.controlled_poll(handler)
    assert stream.counted_position() == ONE


def test_a_long_poll_takes_several_walks(stream):
    count = 2 * FRAMES_PER_WALK + 3
    stream.write(*[b"%d" % number for number in range(count)])
    assert collect(stream, 10_000) == [b"%d" % number for number in range(count)]


def test_a_handler_that_closes_the_image_is_the_last_to_be_called(stream):
    stream.write(b"1", b"2", b"3")
    for poll in (stream.image.poll, stream.image.controlled_poll):
        calls = []

        def handler(payload, header, calls=calls):
            calls.append(bytes(payload))
            stream.image.on_unavailable()

        assert poll(handler) == len(calls) <= 1
    assert stream.counted_position() == 0


def test_a_poll_inside_a_handler_never_moves_the_position_back(stream):
    stream.write(b"1", b"2", b"3")
    seen = []

    def handler(payload, header):
        seen.append(bytes(payload))
        if len(seen) == 1:
            stream.image.poll(handler)

    stream.image.poll(handler, 1)
    assert seen == [b"1", b"1", b"2", b"3"]
    assert stream.counted_position() == 3 * ONE


def test_a_peek_ends_after_the_last_complete_message(stream):
    stream.write(b"whole", bytes(3_000))
    at = stream.image.controlled_peek(0, ScriptedHandler(stream, [None, None, Action.BREAK]))
    assert at == ONE
    whole = stream.image.controlled_peek(at, ScriptedHandler(stream))
    assert whole == stream.publication.position
    stream.image.position = at
    assert collect(stream, 1)[0] == bytes(MTU - 32)


@pytest.mark.parametrize("position", [-32, 0, ONE - 1, ONE + 32 + 1, TERM_LENGTH + 32])
def test_the_position_can_only_be_set_to_a_frame_boundary(stream, position):
    stream.write(b"1", b"2")
    collect(stream, 1)
    with pytest.raises(ValueError, match=f"position {position}: expected"):
        stream.image.position = position
    with pytest.raises(ValueError, match=f"position {position}: expected"):
        stream.image.controlled_peek(position, never)
    assert stream.counted_position() == ONE


@pytest.mark.parametrize("position", [ONE, 2 * ONE, TERM_LENGTH])
def test_the_position_may_be_set_ahead_in_the_term(stream, position):
    stream.write(b"1", b"2")
    collect(stream, 1)
    stream.image.position = position
    assert stream.image.position == stream.counted_position() == position


def test_a_raw_poll_passes_the_location_in_the_file(stream):
    stream.write(b"1", b"22")
    blocks = []

    def handler(file, file_offset, length, session_id, term_id):
        file.seek(file_offset)
        blocks.append((file.read(length), session_id, term_id))
        handler.file = file

    handler.file = None
    assert stream.image.raw_poll(handler, 4096) == 2 * ONE
    log = stream.mapped.log
    assert blocks == [(log[: 2 * ONE].tobytes(), SESSION_ID, stream.image.initial_term_id)]
    assert stream.image.raw_poll(never, 4096) == 0
    assert stream.counted_position() == 2 * ONE
    descriptor = handler.file.fileno()
    stream.image.on_unavailable()
    assert os.fstat(descriptor).st_size == log.size
    handler.file = None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_batch_keeps_its_fragments_until_it_is_cleared(stream):
    stream.write(b"1", b"22")
    batch = FragmentBatch(8, MTU)
    assert stream.image.poll_batch(batch, 1) == 1
    assert stream.image.poll_batch(batch) == 1
    assert (bytes(batch[0]), bytes(batch[1])) == (b"1", b"22")
    with pytest.raises(IndexError, match="fragment 2: expected 0 to 1"):
        batch[2]
    fragment = batch.fragments[1]
    assert (fragment.session_id, fragment.stream_id) == (SESSION_ID, STREAM_ID)
    assert (fragment.frame_flags, fragment.reserved_value) == (0xC0, 0)
    batch.clear()
    assert (len(batch), batch.used_bytes) == (0, 0)


def test_a_batch_without_room_leaves_the_rest_in_the_log(stream):
    stream.write(bytes(1_000), bytes(1_000))
    batch = FragmentBatch(8, MTU - 32)
    assert stream.image.poll_batch(batch) == 1
    assert stream.image.poll_batch(batch) == 0
    batch.clear()
    assert stream.image.poll_batch(batch) == 1


def test_a_batch_too_small_for_a_fragment_is_refused(stream):
    with pytest.raises(ValueError, match="expected at least 1376"):
        stream.image.poll_batch(FragmentBatch(8, MTU - 33))
    with pytest.raises(ValueError, match="at least 1"):
        FragmentBatch(0, MTU)


def test_a_compiled_handler_sees_every_fragment(stream):
    stream.write(b"\x01\x02", b"\x03")
    stream.pad(100)
    stream.publication.offer(b"\x04", reserved_value=77)
    state = np.zeros(5, np.int64)
    assert stream.image.poll_kernel(count_bytes, state) == 3
    assert state.tolist() == [3, 4, 10, stream.publication.position, 77]
    assert stream.counted_position() == stream.publication.position
    assert stream.image.poll_kernel(count_bytes, state) == 0


def test_a_compiled_handler_stops_at_the_limit_and_at_the_end_of_the_term(stream):
    size = TERM_LENGTH // 64
    stream.write(*[bytes(size - 32)] * 65)
    state = np.zeros(5, np.int64)
    assert stream.image.poll_kernel(count_bytes, state, 3) == 3
    assert stream.counted_position() == 3 * size
    assert stream.image.poll_kernel(count_bytes, state) == 61
    assert stream.counted_position() == TERM_LENGTH
    assert stream.image.poll_kernel(count_bytes, state) == 1


def test_a_compiled_handler_may_return_actions(stream):
    stream.write(b"1", b"2", b"3")
    actions = [0, Action.CONTINUE, Action.ABORT, Action.BREAK, Action.COMMIT]
    state = np.array(actions, dtype=np.int64)
    assert stream.image.poll_kernel(answer_from, state) == 1
    assert stream.counted_position() == ONE
    assert stream.image.poll_kernel(answer_from, state) == 1
    assert stream.counted_position() == 2 * ONE
    assert stream.image.poll_kernel(answer_from, state) == 1


def test_a_fragment_counts_as_consumed_when_its_compiled_handler_raises(stream):
    stream.write(b"1", b"2", b"3", b"4")
    with pytest.raises(ValueError, match="third"):
        stream.image.poll_kernel(fail_at_third, np.zeros(1, np.int64))
    assert stream.counted_position() == 3 * ONE


def test_a_closed_image_reads_nothing(stream):
    stream.write(b"1")
    stream.image.on_unavailable()
    assert stream.image.controlled_poll(never) == 0
    assert stream.image.bounded_poll(never, 1 << 40) == 0
    assert stream.image.raw_poll(never, 4096) == 0
    assert stream.image.poll_kernel(count_bytes, np.zeros(5, np.int64)) == 0
    assert stream.image.poll_batch(FragmentBatch(8, MTU)) == 0
    assert stream.image.controlled_peek(0, never) == 0
    stream.image.position = ONE
    assert stream.image.position == stream.counted_position() == 0


def test_a_log_stays_readable_while_a_view_of_it_exists(stream):
    stream.write(b"kept")
    kept = []
    stream.image.poll(lambda payload, header: kept.append(payload))
    stream.image.on_unavailable()
    stream.publication.on_client_closed("test")
    stream.mapped.close()
    assert bytes(kept[0]) == b"kept"
    assert stream.image._log.size == 0


def test_a_closed_image_keeps_its_final_values(stream):
    stream.write(b"1")
    log, meta_at = stream.mapped.log, stream.mapped.meta_at
    descriptor.put_active_transport_count_release(log, meta_at, 2)
    assert (stream.image.active_transport_count, stream.image.is_publication_revoked) == (2, False)
    descriptor.put_is_publication_revoked_release(log, meta_at)
    assert stream.image.is_publication_revoked
    stream.image.on_unavailable()
    assert (stream.image.active_transport_count, stream.image.is_publication_revoked) == (0, True)
